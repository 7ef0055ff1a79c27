package selfcheck

import (
	"fmt"
	"math"

	"github.com/lockbench/lockbench/results"
)

// check is one under way.
type check struct{ results.Check }

// inform notes a figure of which nothing is wanted.
func (c *check) inform(name string, value float64, unit results.Unit) {
	c.note(results.Measure{Name: name, Unit: unit}, value)
}

// want notes a figure and whether it is as wanted.
func (c *check) want(ok bool, name string, value float64, unit results.Unit, wanted string, args ...any) {
	verdict := results.Fail
	switch {
	case math.IsNaN(value):
		verdict = results.Inconclusive
	case ok:
		verdict = results.Pass
	}
	c.judge(verdict, name, value, unit, wanted, args...)
}

// hope is want where a figure that is not as wanted may be somebody else's doing.
func (c *check) hope(ok bool, name string, value float64, unit results.Unit, wanted string, args ...any) {
	verdict := results.Inconclusive
	if ok {
		verdict = results.Pass
	}
	c.judge(verdict, name, value, unit, wanted, args...)
}

// judge notes a figure with its verdict.
func (c *check) judge(verdict results.Finding, name string, value float64, unit results.Unit, wanted string, args ...any) {
	c.note(results.Measure{Name: name, Unit: unit, Wanted: fmt.Sprintf(wanted, args...), Verdict: verdict}, value)
}

func (c *check) note(m results.Measure, value float64) {
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		m.Value = &value
	}
	c.Measured = append(c.Measured, m)
}

// unsure notes why nothing can be said.
func (c *check) unsure(format string, args ...any) {
	c.Why = append(c.Why, fmt.Sprintf(format, args...))
}

// conclude makes a verdict of the figures.
func (c *check) conclude() {
	c.Verdict = results.Pass
	if len(c.Why) > 0 || len(c.Measured) == 0 {
		c.Verdict = results.Inconclusive
	}
	for _, m := range c.Measured {
		switch {
		case m.Verdict == results.Fail:
			c.Verdict = results.Fail
		case m.Verdict == results.Inconclusive && c.Verdict == results.Pass:
			c.Verdict = results.Inconclusive
		}
	}
}
