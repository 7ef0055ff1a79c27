package claims

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// unreachable returns an error for a limit that every value of the figure keeps, or that none does: then no
// measurement can change the verdict.
func (e expectation) unreachable() error {
	var problems []error
	check := func(name string, l results.Limit) {
		kept, broken := e.Figure.reaches(l)
		switch {
		case !kept:
			problems = append(problems, fmt.Errorf("%s: no value of %s can be %s", name, e.Figure.Text, l.Text))
		case !broken:
			problems = append(problems, fmt.Errorf("%s: every value of %s is %s", name, e.Figure.Text, l.Text))
		}
	}
	if e.Is.Text != "" {
		check("is", e.Is)
	}
	if e.Opposite != nil {
		check("opposite", *e.Opposite)
	}
	return errors.Join(problems...)
}

// reaches says whether some value of the figure keeps the limit, and whether some value breaks it. A figure
// and a ratio are never negative, and a count is a whole number.
func (e expression) reaches(l results.Limit) (kept, broken bool) {
	candidates := []float64{l.Value - 1, l.Value, l.Value + 1}
	single := len(e.operands) == 1
	if single || e.divided {
		candidates = append(candidates, 0, l.Value/2)
		candidates = slices.DeleteFunc(candidates, func(x float64) bool { return x < 0 })
	}
	if single && e.operands[0].metric.Whole {
		candidates = append(candidates, math.Max(0, math.Floor(l.Value)), math.Max(0, math.Ceil(l.Value)))
		candidates = slices.DeleteFunc(candidates, func(x float64) bool { return x != math.Trunc(x) })
	}
	for _, x := range candidates {
		keeps, _ := l.Keeps(results.Figure{Value: x})
		kept, broken = kept || keeps, broken || !keeps
	}
	return kept, broken
}
