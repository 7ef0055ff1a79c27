package claims

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
)

// judge returns the verdict on a claim from its runs.
func (c Claim) judge(runs map[string]*measured) Result {
	judged := Result{Name: c.Name(), Says: c.Says, About: c.About, Tests: c.Tests, Runs: []RunResult{}, Figures: []FigureResult{}}
	for _, run := range c.Runs {
		why, invalid := c.wrong(run, runs[run.Name])
		judged.Why = append(judged.Why, why...)
		judged.Runs = append(judged.Runs, RunResult{Name: run.Name, Command: c.Command(run), Invalid: invalid, Shown: c.shown(runs[run.Name])})
	}
	var outcomes []Outcome
	for _, e := range c.expect {
		f := c.figure(e, runs)
		outcomes = append(outcomes, f.Outcome)
		judged.Figures = append(judged.Figures, f)
	}
	judged.Verdict = conclude(outcomes)
	if len(judged.Why) > 0 {
		judged.Verdict = Inconclusive
	}
	if judged.Verdict == Qualified {
		judged.Qualified = c.Qualified
	}
	return judged
}

// figure returns the result of an expectation.
func (c Claim) figure(e expectation, runs map[string]*measured) FigureResult {
	f := FigureResult{What: e.What, Figure: e.Figure.Text, Unit: e.Figure.unit, Values: make([]*results.Figure, c.Rounds), Is: e.Is.Text, Total: e.Total}
	if slices.ContainsFunc(e.Figure.operands, operand.best) {
		f.Best = make([]string, c.Rounds)
	}
	for i := range f.Values {
		whose := ""
		f.Values[i] = e.Figure.in(func(o operand) *results.Figure {
			value, best := o.look(runs[o.run], i+1)
			whose += best
			return value
		})
		if f.Best != nil && f.Values[i] != nil {
			f.Best[i] = whose
		}
	}
	if e.Opposite != nil {
		f.Opposite = e.Opposite.Text
	}
	if e.By != "" {
		e.settleTogether(&f)
	} else {
		f.Outcome = e.settle(f.Values)
	}
	return f
}

// wrong says why a run is inconclusive for this claim, and whether the reason is that figures cannot be
// trusted.
func (c Claim) wrong(run Run, m *measured) (all []string, invalid bool) {
	add := func(format string, args ...any) {
		if why := run.Name + ": " + fmt.Sprintf(format, args...); !slices.Contains(all, why) {
			all = append(all, why)
		}
	}
	if m == nil {
		add("it was not measured")
		return all, false
	}
	used, missing := c.used(run, m)
	if missing && m.err != nil {
		add("%s", strings.Join(strings.Fields(untrusted.Printable(m.err.Error())), " "))
	}
	if m.report == nil {
		return all, false
	}
	if missing {
		for _, left := range m.report.LeftOut {
			add("%s was left out: %s", left.Strategy, left.Why)
		}
	}
	for _, r := range m.report.Runs {
		if !slices.Contains(used, r.Title()) {
			continue
		}
		for _, why := range r.Invalid {
			invalid = true
			add("%s is INVALID in round %d: %s", r.Title(), r.Round, why)
		}
	}
	return all, invalid
}

// used returns the titles in a run's report whose rounds the claim judges one by one, and whether any
// title of the claim lacks a round.
func (c Claim) used(run Run, m *measured) (titles []string, missing bool) {
	for _, e := range c.expect {
		for _, o := range e.Figure.operands {
			if o.run != run.Name {
				continue
			}
			for _, title := range o.titles {
				found, err := o.titled(title, m.titles())
				missing = missing || err != nil || len(m.runs(found)) < c.Rounds
				if e.By == "" {
					titles = append(titles, found)
				}
			}
		}
	}
	return titles, missing
}

// titles returns the titles in the report.
func (m *measured) titles() []string {
	if m == nil || m.report == nil {
		return nil
	}
	var all []string
	for _, run := range m.report.Runs {
		all = append(all, run.Title())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// runs returns the runs of a title, in the order of the rounds.
func (m *measured) runs(of string) []results.Run {
	return slices.DeleteFunc(slices.Clone(m.report.Runs), func(run results.Run) bool { return run.Title() != of })
}

// of returns the operand's figure in a round of one of its titles; nil if it cannot be trusted.
func (o operand) of(m *measured, title string, round int) *results.Figure {
	wanted, err := o.titled(title, m.titles())
	if err != nil {
		return nil
	}
	for _, run := range m.runs(wanted) {
		if run.Round == round && run.Complete() {
			return o.metric.Of(run)
		}
	}
	return nil
}

// titled returns the title that is meant: the one with that name, or the only one with all its words, or
// the only one.
func (o operand) titled(wanted string, all []string) (string, error) {
	if slices.Contains(all, wanted) {
		return wanted, nil
	}
	var fits []string
	for _, t := range all {
		words := strings.Fields(t)
		if !slices.ContainsFunc(strings.Fields(wanted), func(w string) bool { return !slices.Contains(words, w) }) {
			fits = append(fits, t)
		}
	}
	if len(fits) == 1 {
		return fits[0], nil
	}
	return "", fmt.Errorf("%s has %d that fit [%s], there are: %s", o.run, len(fits), wanted, strings.Join(all, "; "))
}
