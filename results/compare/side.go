package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Side is one of the two builds to compare, with the reports that were measured with it.
type Side struct {
	Name    string // as requested: files, or the binary
	Reports []results.File
	// Alone holds reports of the same build that were measured with a single client, in the same order as Reports. Without
	// contention the cost of a strategy hardly scatters.
	Alone []results.File
}

func (s Side) ofOneClient() Side { return Side{Name: s.Name, Reports: s.Alone} }

// session returns the median of a metric over a report's complete runs of this title (strategy and point); nil if no
// run has a value.
func session(report results.File, m Metric, title string) *results.Figure {
	var values []results.Figure
	for _, run := range report.Runs {
		if v := m.Of(run); v != nil && run.Title() == title && run.Complete() {
			values = append(values, *v)
		}
	}
	return results.MedianFigure(values)
}

// sessions returns the metric's value in every report that has one (see session).
func (s Side) sessions(m Metric, name string) []results.Figure {
	var values []results.Figure
	for _, report := range s.Reports {
		if v := session(report, m, name); v != nil {
			values = append(values, *v)
		}
	}
	return values
}

// distinct removes reports that repeat a session, and returns a remark for each of them. Copies of a session are not
// independent samples. Two reports are of the same session if both record the same start time.
func (s Side) distinct() (Side, results.Remarks) {
	once, again := Side{Name: s.Name}, results.Remarks(nil)
	seen := map[int64]string{}
	for _, report := range s.Reports {
		at := report.Started.UnixNano()
		if first, known := seen[at]; known && !report.Started.IsZero() {
			again = append(again, results.SameSession.Remark(report.Name, first))
			continue
		}
		seen[at] = report.Name
		once.Reports = append(once.Reports, report)
	}
	return once, again
}

// inTurns reports whether the sides were recorded in turns, so that a machine that becomes slower affects both. In the
// order of recording, the side must change at least as often as the smaller side has sessions.
func inTurns(base, head Side) bool {
	all := slices.Concat(base.Reports, head.Reports)
	slices.SortStableFunc(all, func(a, b results.File) int { return a.Started.Compare(b.Started) })
	changes := 0
	for i := 1; i < len(all); i++ {
		if slices.Contains(head.Reports, all[i]) != slices.Contains(head.Reports, all[i-1]) {
			changes++
		}
	}
	return changes >= min(len(base.Reports), len(head.Reports))
}

// titles returns the titles of all strategies that were requested or ran, without duplicates. In a sweep, each point of
// a strategy has a title.
func (s Side) titles() []string {
	var names []string
	for _, report := range s.Reports {
		for _, asked := range report.Asked() {
			if name := asked.Title(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// leftOut returns a remark with the reason for each run that cannot be compared.
func (s Side) leftOut() results.Remarks {
	return s.ofRuns(results.RunLeftOut, func(r results.Run) []string {
		switch {
		case !r.Valid():
			return []string{"invalid: " + r.Invalid.String()}
		case r.Failure != "":
			return []string{"failed: " + r.Failure}
		case r.Partial:
			return []string{"cut short"}
		}
		return nil
	})
}

// broken returns a remark for each claimed guarantee that did not hold. It includes invalid runs, because an invalid
// run does not excuse a broken lock.
func (s Side) broken() results.Remarks {
	return s.ofRuns(results.ClaimBrokenIn, func(r results.Run) []string { return r.Safety.Broken.Texts() })
}

// ofRuns calls said for every run and returns a remark for each text that said returns. The remark names the run's
// file, title and round.
func (s Side) ofRuns(code results.Code, said func(results.Run) []string) results.Remarks {
	var lines results.Remarks
	for _, report := range s.Reports {
		for _, run := range report.Runs {
			for _, text := range said(run) {
				lines = append(lines,
					code.Remark(fmt.Sprintf("%s: %s round %d", report.Name, run.Title(), run.Round), text))
			}
		}
	}
	return lines
}

func (s Side) build() Build {
	var versions []string
	for _, report := range s.Reports {
		versions = append(versions, report.Tool.Build())
	}
	slices.Sort(versions)
	return Build{Name: s.Name, Version: strings.Join(slices.Compact(versions), ", "), Reports: len(s.Reports)}
}

// begin returns a comparison that has all remarks about the two sides but no results yet. It also returns the titles
// that both sides have.
func begin(method string, base, head Side, rules Rules) (*Comparison, []string) {
	c := &Comparison{
		Schema: Schema, Method: method, Base: base.build(), Head: head.build(), Rules: rules,
		Strategies: []Strategy{}, Different: Differences(base, head), Broken: head.broken(),
	}
	if len(base.Reports) > 0 {
		first := base.Reports[0]
		c.Workload = first.Workload
		parts := []string{first.Redis.Release(), first.Redis.Source, first.Redis.Topology}
		c.Redis = strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
		c.Machine = fmt.Sprintf("%s/%s, %d × %s", first.Environment.OS, first.Environment.Arch, first.Environment.CPUs,
			cmp.Or(first.Environment.CPUModel, "CPU"))
	}
	c.LeftOut = append(base.leftOut(), head.leftOut()...)
	for _, line := range base.broken() {
		c.Notes = append(c.Notes, results.BaseBroken.Remark(line))
	}
	c.Notes = slices.Concat(c.Notes, base.bound("base"), head.bound("head"))
	before, after := base.titles(), head.titles()
	only := func(names, others []string, side string) {
		for _, name := range names {
			if !slices.Contains(others, name) {
				c.LeftOut = append(c.LeftOut, results.OneSideOnly.Remark(name, side))
			}
		}
	}
	only(before, after, "base")
	for _, name := range before {
		if !slices.Contains(after, name) {
			c.Missing = append(c.Missing, name)
		}
	}
	only(after, before, "head")
	both := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return !slices.Contains(after, name) })
	return c, both
}

// bound returns a remark with the number of runs in which the machine, not the lock, limited the speed; none if there
// is no such run.
func (s Side) bound(side string) results.Remarks {
	limited, all := 0, 0
	for _, report := range s.Reports {
		all += len(report.Runs)
		for _, run := range report.Runs {
			if run.MachineBound() {
				limited++
			}
		}
	}
	if limited == 0 {
		return nil
	}
	return results.Remarks{results.MachineTooBusy.Remark(side, limited, all)}
}
