package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// advise makes advice from what was measured.
func (q Question) advise(m measured) *Document {
	candidates, out := q.candidates()
	a := &Document{
		Head: document.Begin(schema), For: q.For, Workload: q.Workload, Rounds: q.Rounds,
		Measured: []Row{}, LeftOut: out, Commands: []string{},
	}
	for _, r := range m.reports() {
		a.LeftOut = append(a.LeftOut, r.LeftOut...)
		for _, run := range r.Runs {
			if len(run.Safety.Broken) > 0 {
				a.Broken = append(a.Broken, run.Strategy)
			}
		}
	}
	field := contenders(m.Locks, candidates)
	fit := q.eligible(field)
	var chosen, second contender
	if len(fit) > 0 {
		chosen, _ = choose(q.criteria(), fit)
		a.Choice = q.lock(chosen, fit)
		a.Before = q.before(m, chosen, field)
	}
	if rest := without(fit, chosen.Name); len(rest) > 0 {
		second, _ = choose(q.criteria(), rest)
		a.RunnerUp = q.lock(second, fit)
	}
	alternative := q.somebodyElses(fit, chosen)
	if a.Choice != nil {
		a.Headline = q.headline(chosen, alternative)
		a.Assumes = q.assumes(chosen)
	}
	if instead := q.instead(m, chosen, field); instead != nil {
		if a.Choice != nil {
			a.RunnerUp = a.Choice
			second = contender{}
		}
		a.Choice = instead
		a.Headline = q.without(instead.Name, alternative)
		a.Assumes = nil
		a.Before = slices.DeleteFunc(a.Before, func(s Sentence) bool { return s.Text == instead.Reasons[0].Text })
	}
	a.Cautions = append(append(q.repeated(m), q.tooShort()...), m.cautions()...)
	a.Repeated = m.Repeated
	for _, c := range field {
		a.Measured = append(a.Measured, q.row(c, chosen, second))
	}
	return a
}

// chosen returns the lock that the matrix recommends; false if there is none.
func (q Question) chosen(locks []*results.Report) (strategies.Variant, bool) {
	candidates, _ := q.candidates()
	fit := q.eligible(contenders(locks, candidates))
	if len(fit) == 0 {
		return strategies.Variant{}, false
	}
	chosen, _ := choose(q.criteria(), fit)
	return candidates[chosen.order], true
}

// contenders returns the candidates that were measured.
func contenders(reports []*results.Report, candidates []strategies.Variant) []contender {
	var field []contender
	for _, s := range results.Summarise(reports) {
		at := slices.IndexFunc(candidates, func(v strategies.Variant) bool { return v.Name() == s.Name })
		if at >= 0 {
			field = append(field, contender{Summary: s, info: candidates[at].Info(), order: at})
		}
	}
	return field
}

// eligible returns those that may be recommended.
func (q Question) eligible(field []contender) []contender {
	return slices.DeleteFunc(slices.Clone(field), func(c contender) bool { return q.unfit(c) != "" })
}

// unfit says why a contender must not be recommended, by its claims or its figures; "" if it may be.
func (q Question) unfit(c contender) string {
	served, _ := c.figure("served_per_s")
	violations, number := c.figure("violations")
	failures, errors := c.figure("errors")
	switch {
	case q.unsafe(c.info) != "":
		return q.unsafe(c.info)
	case q.For == Correctness && !c.info.Claims.Fencing:
		return fmt.Sprintf("it claims %s, and no fencing tokens", c.info.Claims)
	case violations.Value == nil || violations.Value.Value > 0:
		return "violations of what a lock is to keep: " + number
	case c.Invalid:
		return fmt.Sprintf("0 of its %d runs can be trusted: %s", len(c.Runs), strings.Join(c.Runs[0].Invalid, "; "))
	case failures.Value != nil && failures.Value.Value > 0:
		return "errors: " + errors
	case served.Value == nil || served.Value.Value == 0:
		return "clients served: 0"
	}
	return ""
}

// lock recommends a contender.
func (q Question) lock(c contender, field []contender) *Choice {
	return &Choice{Name: c.Name, Summary: c.info.Summary, Reasons: q.reasons(c, field)}
}

// instead returns what to use rather than a lock; nil if a lock is right.
func (q Question) instead(m measured, chosen contender, field []contender) *Choice {
	if chosen.Name != "" && q.Workload.Work == workloads.WorkCounter {
		if s, better := oneCommand(m.Update); better {
			return &Choice{Name: NoLock, Summary: "one command or Lua script does the work at once", Reasons: []Sentence{s}}
		}
	}
	if s, ok := q.consensus(field); ok && (q.Workload.Fence != workloads.FenceAll || chosen.Name == "") {
		return &Choice{Name: ConsensusStore, Summary: "etcd, ZooKeeper and the like: the resource does not check tokens, or no lock here has any", Reasons: []Sentence{s}}
	}
	if chosen.Name == "" {
		return nil
	}
	if s, all := overloaded(q.eligible(field)); all {
		return &Choice{Name: NoLock, Summary: "not a single one: split what it protects into more keys, or do without", Reasons: []Sentence{s}}
	}
	return nil
}

// overloaded says whether no lock kept up with an open loop's arrivals.
func overloaded(field []contender) (Sentence, bool) {
	var s Sentence
	var parts []string
	for _, c := range field {
		late := 0
		for _, run := range c.Used {
			if run.Overloaded() {
				late++
			}
		}
		if late*2 <= len(c.Used) {
			return s, false
		}
		evidence, served := c.figure("served_per_s")
		s.Evidence = append(s.Evidence, evidence)
		parts = append(parts, c.Name+" "+served)
	}
	s.Text = fmt.Sprintf("No lock keeps up with the arrivals; served were: %s.", strings.Join(parts, ", "))
	return s, len(parts) > 0
}

// row returns a contender's row of the table.
func (q Question) row(c, chosen, second contender) Row {
	row := Row{Name: c.Name, Claims: c.info.Claims.List(), Verdict: c.Verdict()}
	var names []string
	for _, criterion := range q.criteria() {
		names = append(names, criterion.name)
	}
	for _, name := range append(names, "commands_per_acq", "utilisation", "violations") {
		e, _ := c.figure(name)
		row.Figures = append(row.Figures, document.Figure{Metric: name, Unit: e.Unit, Value: e.Value})
	}
	switch {
	case q.unfit(c) != "":
		row.Out = q.unfit(c)
	case c.Name != chosen.Name && c.Name != second.Name:
		row.Out = q.beaten(c, chosen)
	}
	return row
}

// cautions returns what to know about the figures. Those of an experiment begin with its name.
func (m measured) cautions() []Sentence {
	var all []Sentence
	for _, r := range []struct {
		of      string
		reports []*results.Report
	}{
		{"", m.Locks},
		{"Of holders that pause, ", []*results.Report{m.Paused}},
		{"Of one command instead of a lock, ", []*results.Report{m.Update}},
		{"Of one acquisition for all waiters, ", []*results.Report{m.Shared}},
	} {
		known := slices.DeleteFunc(slices.Clone(r.reports), func(r *results.Report) bool { return r == nil })
		for _, s := range sentences(results.Summarise(known), findings.Cautions) {
			s.Text = r.of + s.Text
			all = append(all, s)
		}
	}
	return all
}

// sentences returns the findings of a part of the advice.
func sentences(all []results.Summary, part findings.Advice) []Sentence {
	var said []Sentence
	for _, f := range findings.Of(all) {
		if f.Advice == part {
			said = append(said, Sentence{Text: f.String() + ".", Evidence: f.Evidence})
		}
	}
	return said
}
