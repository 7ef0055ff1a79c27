package claims

import (
	"slices"

	"github.com/lockbench/lockbench/results"
)

// settle says what the values of an expectation's rounds come to.
//
// It is held or contradicted if every round says so. Where a bound is given for
// the opposite too there is a margin between: values there, without any on both
// sides of it, are partly what was claimed. All else, such as a value that is not
// known, is unclear.
func (e expectation) settle(values []*results.Figure) Outcome {
	if e.Total {
		values = []*results.Figure{sum(values)}
	}
	var held, contradicted, between int
	for _, value := range values {
		if value == nil {
			return Unclear
		}
		inside, known := e.Is.Keeps(*value)
		if !known {
			return Unclear
		}
		against := !inside
		if e.Opposite != nil && !inside {
			if against, known = e.Opposite.Keeps(*value); !known {
				return Unclear
			}
		}
		switch {
		case inside:
			held++
		case against:
			contradicted++
		default:
			between++
		}
	}
	switch {
	case len(values) == 0, held > 0 && contradicted > 0:
		return Unclear
	case held == len(values):
		return Held
	case contradicted == len(values):
		return Contradicted
	default:
		return Partly
	}
}

// sum is nil where one of the values is not known.
func sum(values []*results.Figure) *results.Figure {
	if len(values) == 0 {
		return nil
	}
	total := &results.Figure{}
	for _, value := range values {
		if value == nil {
			return nil
		}
		total.Value += value.Value
		total.AtLeast = total.AtLeast || value.AtLeast
	}
	return total
}

// conclude makes a verdict of the outcomes: all held is confirmed, all
// contradicted or missed refuted, one that is unclear makes it inconclusive, and
// everything else is a qualification. What is only reported does not count.
func conclude(outcomes []Outcome) Verdict {
	count := map[Outcome]int{}
	for _, o := range outcomes {
		count[o]++
	}
	outcomes = slices.DeleteFunc(slices.Clone(outcomes), func(o Outcome) bool { return o == Reported })
	switch {
	case len(outcomes) == 0, count[Unclear] > 0:
		return Inconclusive
	case count[Held] == len(outcomes):
		return Confirmed
	case count[Contradicted]+count[Missed] == len(outcomes):
		return Refuted
	default:
		return Qualified
	}
}
