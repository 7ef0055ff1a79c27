package claims

import (
	"slices"

	"github.com/lockbench/lockbench/results"
)

// settle returns the outcome of the values of an expectation's rounds.
//
// It is held or contradicted if every round is. A limit for the opposite leaves a margin between the
// limits: values there make it partly, unless other values are on both sides. Everything else, such
// as an unknown value, is unclear.
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

// sum returns nil if one of the values is not known.
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

// conclude makes a verdict from the outcomes: confirmed if all held, refuted if all are contradicted or
// missed, inconclusive if one is unclear, and otherwise qualified. Reported figures do not count.
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
