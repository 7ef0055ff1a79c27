package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// notes are what a reader must know before believing the tables.
func (p *page) notes(r *results.Report, all []results.Summary) {
	figures := p.String()
	p.WriteByte('\n')
	for _, s := range all {
		p.runNotes(r, s)
	}
	p.labelNotes(all)
	p.fewNotes(all)
	if note := results.HoldsNote(all); note != "" {
		p.entry("holds", "%s", note)
	}
	p.tokenNote(r, all)
	for i, s := range all {
		if s.Caveat != "" && (i == 0 || all[i-1].Name != s.Name) { // once for all points
			p.entry("unsafe", "%s: %s", s.Name, s.Caveat)
		}
	}
	for _, left := range r.LeftOut {
		p.entry("left out", "%s: %s", left.Strategy, left.Why)
	}
	for _, warning := range r.Warnings {
		p.entry("warning", "%s", warning)
	}
	p.thresholds(r)
	if len(all) > 0 {
		p.entry("read", "%s", method(r))
		p.entry("", "%s", signs(figures))
	}
	p.ending(r)
}

// runNotes tell what is wrong with single runs.
func (p *page) runNotes(r *results.Report, s results.Summary) {
	for _, run := range s.Runs {
		name := s.Title()
		if r.Rounds > 1 {
			name = fmt.Sprintf("%s, round %d", name, run.Round)
		}
		if len(run.Invalid) > 0 {
			p.entry("! INVALID", "%s: %s", name, strings.Join(run.Invalid, "; "))
		} else if run.Failure != "" {
			p.entry("! FAILED", "%s: %s", name, run.Failure)
		}
		for _, fault := range run.Faults {
			if len(fault.Missed) > 0 {
				p.entry("missed", "%s: %s%s: %s", name, fault.Fault.Name, repeated(len(fault.Missed)), fault.Missed[0])
			}
		}
		for _, claim := range run.Safety.Broken {
			p.entry("! BROKEN", "%s: %s", name, claim)
		}
		if left := run.Safety.Leftovers; len(left) > 0 {
			p.entry("left", "%s: %s%s", name, strings.Join(left[:min(len(left), 3)], ", "), more(*run.Safety.LeftoverCount-3))
		}
		for _, e := range run.Errors[:min(len(run.Errors), 3)] {
			p.entry("errors", "%s: %s × %s", name, results.Whole(float64(e.Count)), e.Error)
		}
	}
}

func repeated(n int) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(", %d times", n)
}

func more(n int64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}

// meaning explains a label that is not plain.
func meaning(label string) string {
	switch {
	case strings.HasPrefix(label, results.ForeignCPU):
		return " (of all cores, by neither lockbench nor Redis: measure on a quieter machine)"
	case strings.HasPrefix(label, results.Stolen):
		return " (of all cores, by other machines on the same hardware)"
	case strings.HasPrefix(label, results.OutlivedLease):
		return " (what is claimed holds until the lease ends: who works on after that is no longer protected, and late overlaps break no claim)"
	}
	switch label {
	case "generator-bound":
		return " (the machine was busy with lockbench itself: the lock may be faster than shown)"
	case "busy machine":
		return " (busy with something other than lockbench and Redis: measure on a quieter one)"
	case "through proxies":
		return " (for the sake of the network's faults, and slower than without)"
	case "redis-bound":
		return " (the thread that executes commands was busy all the time)"
	case results.PartOfASession:
		return " (what Redis counted is all of theirs, divided by this one's acquisitions: lockbench merge puts the reports together)"
	default:
		return ""
	}
}

// tokenNote names those whose late holders the counter would have refused if they had
// had tokens: that it refused nobody must not be taken for nothing to refuse.
func (p *page) tokenNote(r *results.Report, all []results.Summary) {
	if r.Workload.Work != workloads.WorkCounter || r.Workload.Fence == workloads.FenceOff {
		return
	}
	var without []string
	for _, s := range all {
		if slices.ContainsFunc(s.Runs, func(run results.Run) bool { return run.Safety.Late > 0 && run.Safety.FencedLeases == 0 }) {
			without = append(without, s.Title())
		}
	}
	if len(without) > 0 {
		p.entry("no token", "%s: late holders wrote, for without fencing tokens the counter cannot tell them", strings.Join(without, ", "))
	}
}

// method says how the figures came about.
func method(r *results.Report) string {
	again := "as soon as it has released"
	if !r.Workload.Think.IsZero() {
		again = "once it has released and thought"
	}
	how := "closed loop: each client acquires again " + again
	if r.Workload.Rate > 0 {
		how = "open loop: waits count from the intended start"
	}
	if r.Rounds <= 1 && r.Steady() {
		how += " · ± of the run's own seconds (batch means), not of another run"
	}
	if r.Rounds > 1 {
		how += " · medians of the valid runs, safety of all"
		if r.Rounds < 6 {
			how += " · ratios: median (smallest–largest) of the rounds; 95 % intervals take 6"
		} else {
			how += " · ratios: median of the rounds (its 95 % interval)"
		}
	}
	return how
}

// signs explains those that occur.
func signs(figures string) string {
	var explained []string
	if strings.Contains(figures, "≥") {
		explained = append(explained, "≥ at least: some waits had not ended")
	}
	if strings.Contains(figures, "~") {
		explained = append(explained, "~ rough: over a third was subtracted for idle connections")
	}
	if strings.Contains(figures, results.NotKnown+" ") || strings.Contains(figures, results.NotKnown+"\n") {
		explained = append(explained, results.NotKnown+" not known")
	}
	if strings.Contains(figures, "!") {
		explained = append(explained, "! see INVALID")
	}
	return strings.Join(explained, " · ")
}

// ending says how it came to its end, where that was not as planned.
func (p *page) ending(r *results.Report) {
	windows := 0
	for _, run := range r.Runs {
		if run.WindowNS > 0 {
			windows++
		}
	}
	measured := fmt.Sprintf("%d of %s measured", windows, plural(len(r.Strategies)*r.Rounds, "run"))
	if r.Interrupted {
		p.entry("! STOPPED", "interrupted: %s", measured)
	}
	if r.Error != "" {
		p.entry("! ERROR", "%s (%s)", r.Error, measured)
	}
	if len(r.Runs) == 0 {
		p.entry("! EMPTY", "nothing was measured")
	}
}

// fewNotes say of whose 99th percentiles tables have none for want of durations, and how
// many there were.
func (p *page) fewNotes(all []results.Summary) {
	for _, s := range all {
		if few := s.TooFew(); len(few) > 0 {
			p.entry("too few", "%s: %s in a run, and a p99 of less than 100 is their maximum", s.Title(), strings.Join(few, ", "))
		}
	}
}

// thresholds tell how each came out.
func (p *page) thresholds(r *results.Report) {
	for _, v := range r.Thresholds {
		label := "passed"
		if !v.Passed {
			label = "! CROSSED"
		}
		p.entry(label, "%s", fmt.Sprint(v))
	}
}
