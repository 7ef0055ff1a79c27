package claims

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Bound is a range of values: >= 3, < 10ms, == 0.
type Bound struct {
	Text     string
	operator string
	limit    float64 // in the figure's unit
}

var operators = []string{">=", "<=", "==", ">", "<"} // those first that begin with others

// ParseBound reads one of a figure in this unit.
func ParseBound(text string, unit results.Unit) (Bound, error) {
	b := Bound{Text: strings.TrimSpace(text)}
	for _, operator := range operators {
		rest, is := strings.CutPrefix(b.Text, operator)
		if !is {
			continue
		}
		limit, err := results.ParseLimit(strings.TrimSpace(rest), unit)
		if err != nil {
			return b, err
		}
		b.operator, b.limit = operator, limit
		return b, nil
	}
	return b, fmt.Errorf("%q begins with none of %s", b.Text, strings.Join(operators, " "))
}

// contains says whether a value is in the range, and whether that is known: of a
// value that is only a lower bound it may not be.
func (b Bound) contains(f results.Figure) (inside, known bool) {
	if !f.AtLeast {
		return b.holds(f.Value), true
	}
	switch inside = b.holds(f.Value); b.operator {
	case ">", ">=":
		return inside, inside
	default:
		return false, !inside && f.Value >= b.limit
	}
}

func (b Bound) holds(x float64) bool {
	switch b.operator {
	case ">=":
		return x >= b.limit
	case "<=":
		return x <= b.limit
	case ">":
		return x > b.limit
	case "<":
		return x < b.limit
	default:
		return x == b.limit
	}
}
