package selfcheck

import (
	"fmt"
	"math"

	"github.com/lockbench/lockbench/results"
)

// inform adds a figure without a requirement.
func (c *Check) inform(name string, value float64, unit results.Unit) {
	c.note(Measure{Name: name, Unit: unit}, value)
}

// want adds a figure and whether it is as required.
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

// hope is want for a figure that other processes may spoil: then it is inconclusive.
func (c *Check) hope(ok bool, name string, value float64, unit results.Unit, wanted string, args ...any) {
	verdict := Inconclusive
	if ok {
		verdict = Pass
	}
	c.judge(verdict, name, value, unit, wanted, args...)
}

// judge adds a figure with its verdict.
func (c *Check) judge(verdict Verdict, name string, value float64, unit results.Unit, wanted string, args ...any) {
	c.note(Measure{Name: name, Unit: unit, Wanted: fmt.Sprintf(wanted, args...), Verdict: verdict}, value)
}

func (c *Check) note(m Measure, value float64) {
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		m.Value = &value
	}
	c.Measured = append(c.Measured, m)
}

// unsure adds a reason why the check is inconclusive.
func (c *Check) unsure(format string, args ...any) {
	c.Why = append(c.Why, fmt.Sprintf(format, args...))
}

// conclude makes a verdict from the figures.
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
