package selfcheck

import (
	"fmt"
	"math"

	"github.com/lockbench/lockbench/results"
)

// inform notes a figure of which nothing is wanted.
func (c *Check) inform(name string, value float64, unit results.Unit) {
	c.note(Measure{Name: name, Unit: unit}, value)
}

// want notes a figure and whether it is as wanted.
func (c *Check) want(ok bool, name string, value float64, unit results.Unit, wanted string, args ...any) {
	verdict := Fail
	switch {
	case math.IsNaN(value):
		verdict = Inconclusive
	case ok:
		verdict = Pass
	}
	c.judge(verdict, name, value, unit, wanted, args...)
}

// hope is want where a figure that is not as wanted may be somebody else's doing.
func (c *Check) hope(ok bool, name string, value float64, unit results.Unit, wanted string, args ...any) {
	verdict := Inconclusive
	if ok {
		verdict = Pass
	}
	c.judge(verdict, name, value, unit, wanted, args...)
}

// judge notes a figure with its verdict.
func (c *Check) judge(verdict Verdict, name string, value float64, unit results.Unit, wanted string, args ...any) {
	c.note(Measure{Name: name, Unit: unit, Wanted: fmt.Sprintf(wanted, args...), Verdict: verdict}, value)
}

func (c *Check) note(m Measure, value float64) {
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		m.Value = &value
	}
	c.Measured = append(c.Measured, m)
}

// unsure notes why nothing can be said.
func (c *Check) unsure(format string, args ...any) {
	c.Why = append(c.Why, fmt.Sprintf(format, args...))
}

// conclude makes a verdict of the figures.
func (c *Check) conclude() {
	c.Verdict = Pass
	if len(c.Why) > 0 || len(c.Measured) == 0 {
		c.Verdict = Inconclusive
	}
	for _, m := range c.Measured {
		switch {
		case m.Verdict == Fail:
			c.Verdict = Fail
		case m.Verdict == Inconclusive && c.Verdict == Pass:
			c.Verdict = Inconclusive
		}
	}
}
