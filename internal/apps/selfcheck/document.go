package selfcheck

import (
	"fmt"
	"math"
	"strings"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/results"
)

// schema is the version of the document.
const schema = "lockbench/selfcheck/1"

// Document is the result of the harness's checks of itself on one machine.
type Document struct {
	document.Head
	Checks      []Check `json:"checks"`
	Interrupted bool    `json:"interrupted,omitempty"` // stopped by the user: checks are missing
}

// Check is one case with a known answer.
type Check struct {
	Name     string    `json:"name"`
	Shows    string    `json:"shows"` // what a pass shows, one line
	Verdict  Verdict   `json:"verdict"`
	Why      []string  `json:"why,omitempty"` // reasons why it could not run, or not completely
	Seconds  float64   `json:"seconds"`
	Measured []Measure `json:"measured"`
}

// Measure is one figure of a check.
type Measure struct {
	Name    string       `json:"name"`
	Value   *float64     `json:"value"` // nil if not known
	Unit    results.Unit `json:"unit"`
	Wanted  string       `json:"wanted,omitempty"`  // "" if there is no requirement
	Verdict Verdict      `json:"verdict,omitempty"` // "" if there is no requirement
}

// Verdict is how a check ended.
type Verdict string

// The verdicts. Inconclusive means that the check could not run, or that the machine was too busy for a
// result.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	Inconclusive Verdict = "inconclusive"
)

// With returns the names of the checks with this verdict.
func (d *Document) With(v Verdict) []string {
	var names []string
	for _, c := range d.Checks {
		if c.Verdict == v {
			names = append(names, c.Name)
		}
	}
	return names
}

// inform adds a figure without a requirement.
func (c *Check) inform(name string, value float64, unit results.Unit) {
	c.add("", name, value, unit, "")
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
	c.add(verdict, name, value, unit, wanted, args...)
}

// count is want for a plain number.
func (c *Check) count(ok bool, name string, value float64, wanted string, args ...any) {
	c.want(ok, name, value, results.Number, wanted, args...)
}

// hope is want for a figure that other processes may spoil: then it is inconclusive.
func (c *Check) hope(ok bool, name string, value float64, unit results.Unit, wanted string, args ...any) {
	verdict := Inconclusive
	if ok {
		verdict = Pass
	}
	c.add(verdict, name, value, unit, wanted, args...)
}

func (c *Check) add(verdict Verdict, name string, value float64, unit results.Unit, wanted string, args ...any) {
	m := Measure{Name: name, Unit: unit, Wanted: fmt.Sprintf(wanted, args...), Verdict: verdict}
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

// Lay writes the document for people: for each check its verdict, what a pass shows, and every figure with
// its requirement.
func (d *Document) Lay(p *layout.Page) {
	fmt.Fprintln(p, d.Setup())
	for _, c := range d.Checks {
		fmt.Fprintf(p, "\n%s  %s  %s (%.0f s)\n", p.Bold(c.Name), c.Verdict.painted(p.Paint), c.Shows, c.Seconds)
		for _, why := range c.Why {
			p.Remark("! ", why)
		}
		var rows [][]string
		for _, m := range c.Measured {
			value, fault := results.NotKnown, map[Verdict]string{Fail: "FAIL", Inconclusive: "inconclusive"}[m.Verdict]
			if m.Value != nil {
				value = m.Unit.Signed(*m.Value)
			}
			rows = append(rows, []string{m.Name, value, m.Wanted, fault})
		}
		p.Columns(rows)
	}
	if d.Interrupted {
		fmt.Fprintln(p, "\ninterrupted: checks are missing")
	}
}

func (v Verdict) painted(p layout.Paint) string {
	switch v {
	case Pass:
		return p.Green(string(v))
	case Fail:
		return p.Red(strings.ToUpper(string(v)))
	}
	return p.Yellow(string(v))
}
