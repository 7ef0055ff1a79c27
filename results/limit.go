package results

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limit is a bound for a figure: < 50ms, >= 800/s, == 0.
type Limit struct {
	Text     string // as written
	Operator string
	Value    float64 // in the figure's unit
}

// operators; an operator comes before its own prefixes.
var operators = []string{"===", "<=", ">=", "==", "!=", "<", ">"}

// ParseLimit parses a limit for a figure in this unit: an operator and a value such as 50ms,
// 800/s, 5%, 2KB, or a plain number.
func ParseLimit(text string, unit Unit) (Limit, error) {
	l := Limit{Text: strings.TrimSpace(text)}
	at := slices.IndexFunc(operators, func(o string) bool { return strings.HasPrefix(l.Text, o) })
	if at < 0 {
		return l, noOperator(l.Text)
	}
	l.Operator = operators[at]
	var err error
	l.Value, err = parseValue(strings.TrimSpace(l.Text[len(l.Operator):]), unit)
	return l, err
}

func noOperator(text string) error {
	return fmt.Errorf("%q has no operator (%s)", text, strings.Join(operators, " "))
}

func parseValue(text string, unit Unit) (float64, error) {
	number := func(text string) (float64, bool) {
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	switch unit {
	case Nanoseconds:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, fmt.Errorf("the limit is to be a duration such as 500us, 50ms or 2s, not %q", text)
		}
		return float64(d), nil
	case PerSecond:
		text = strings.TrimSuffix(text, "/s")
	case Percent:
		text = strings.TrimSuffix(text, "%")
	case Bytes:
		for _, u := range octets {
			if digits, ok := strings.CutSuffix(text, strings.TrimSpace(u.name)); ok {
				if x, ok := number(digits); ok {
					return x * u.from, nil
				}
				break
			}
		}
	}
	x, ok := number(text)
	if !ok {
		example := map[Unit]string{PerSecond: " such as 800/s", Percent: " such as 5%", Bytes: " such as 2KB"}[unit]
		return 0, fmt.Errorf("the limit is to be a number%s, not %q", example, text)
	}
	return x, nil
}

// Keeps says whether a figure keeps the limit, and whether that is known. It may be unknown
// for a lower bound: the true figure may be any larger value.
func (l Limit) Keeps(f Figure) (kept, known bool) {
	kept = l.holds(f.Value)
	if !f.AtLeast {
		return kept, true
	}
	switch l.Operator {
	case ">", ">=":
		return kept, kept
	case "!=":
		kept = f.Value > l.Value
		return kept, kept
	default: // a larger figure cannot keep it again
		return false, !kept && f.Value >= l.Value
	}
}

func (l Limit) holds(x float64) bool {
	switch l.Operator {
	case "<":
		return x < l.Value
	case "<=":
		return x <= l.Value
	case ">":
		return x > l.Value
	case ">=":
		return x >= l.Value
	case "!=":
		return x != l.Value
	default: // == and ===
		return x == l.Value
	}
}
