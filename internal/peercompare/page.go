package main

import (
	"cmp"
	"fmt"
	"math"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/results"
)

// page is Markdown under way.
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// row is one of a table.
func (p *page) row(cells ...string) { p.line("| %s |", strings.Join(cells, " | ")) }

// header begins a table; its columns after the left ones are figures.
func (p *page) header(left int, titles ...string) {
	p.row(titles...)
	rule := make([]string, len(titles))
	for i := range rule {
		rule[i] = "---:"
		if i < left {
			rule[i] = "---"
		}
	}
	p.row(rule...)
}

// write is the whole page.
func write(all []measured, versions []string) string {
	p := &page{}
	p.line("# Beside the peers\n")
	p.line("Written by `make peers`; every figure is from its runs. How each is defined stands in [METRICS.md](METRICS.md).\n")
	p.conditions(all[0], versions)
	byName := map[string]measured{}
	for _, m := range all {
		byName[m.name] = m
	}
	p.targets(byName)
	p.deployments(all)
	for _, m := range all {
		p.scenario(m)
	}
	return p.String()
}

func (p *page) conditions(m measured, versions []string) {
	r := m.reports[0]
	p.line("- Machine: %d × %s, %s/%s, %s", r.Environment.CPUs, cmp.Or(r.Environment.CPUModel, "CPU"), r.Environment.OS, r.Environment.Arch, r.Environment.Go)
	p.line("- Redis %s, %s, %s network; began %s", r.Redis.Release(), r.Redis.Source, r.Redis.Network, r.Started.UTC().Format("2006-01-02 15:04 MST"))
	if len(versions) > 0 {
		p.line("- Peers: %s", strings.Join(versions, ", "))
	}
	p.line("- Each peer at its documented defaults and `tuned=true` (`lockbench list redsync` says how and why). `gated:` is the same behind a mutex for each process.")
	p.line("- Rounds are interleaved: every strategy once a round, in an order of its own, after a warm-up of %v. Ratios are taken within a round, to the best peer *of that round*.\n",
		time.Duration(r.Workload.Warmup))
}

func (p *page) targets(all map[string]measured) {
	p.line("## Targets\n")
	p.line("The interval has the true median in it with 98 %% or more: with 11 rounds from the second-smallest to the second-largest, with 15 from the third; below 7 it is all rounds. " +
		"A target is met when the interval's worse end meets it, or the median where it says *median*. " +
		"The ceiling is what no lock can exceed: the holds alone take the rest of the time, so at most 1 ÷ the utilisation of the best peers (median of the rounds). " +
		"What bounds handoff, and what was tried: [DESIGN.md](../strategies/handoff/DESIGN.md#where-the-time-goes).\n")
	p.header(4, "", "", "scenario", "target", "median", "interval", "ceiling", "rounds", "", "best peers (rounds)")
	for _, t := range targets() {
		m := all[t.scenario]
		values, best := t.values(m)
		if len(values) == 0 {
			continue
		}
		i := summarise(values)
		p.row("`"+t.of(m)+"`", t.what, t.scenario, t.wanted(), ratio(i.median), ratio(i.low)+" – "+ratio(i.high), t.ceiling(m), strconv.Itoa(i.n), t.verdict(i), counted(best))
	}
	p.line("")
}

// ceiling is what a ratio of speeds cannot exceed; "" for others. It says so if
// all of the interval lies above: then holds were not equal.
func (t target) ceiling(m measured) string {
	if t.figure.name != speed.name || t.rivals == nil || m.hold == 0 || m.keys > 1 {
		return ""
	}
	rooms := headrooms(m, m.those(t.rivals))
	if len(rooms) == 0 {
		return ""
	}
	most := results.Median(rooms)
	values, _ := t.values(m)
	if summarise(values).low > most {
		return ratio(most) + ", exceeded"
	}
	return ratio(most)
}

// headrooms are, round by round, how much faster than the best of the rivals any lock
// could be: at most 1 ÷ its utilisation, for the holds alone take the rest.
func headrooms(m measured, rivals []string) []float64 {
	var all []float64
	for _, r := range m.rounds {
		if _, name := speed.best(r, rivals); name != "" && r[name].Speed.Utilisation > 0 {
			all = append(all, 1/r[name].Speed.Utilisation)
		}
	}
	return all
}

func (t target) wanted() string {
	if math.IsNaN(t.limit) {
		return "–"
	}
	sign := "≥"
	if t.figure.better < 0 {
		sign = "≤"
	}
	if t.byMedian {
		return "median " + sign + " " + ratio(t.limit)
	}
	return sign + " " + ratio(t.limit)
}

// scenario is the medians of everybody.
func (p *page) scenario(m measured) {
	w := m.reports[0].Workload
	p.line("## %s\n", m.title)
	p.line("`%s`: %s, %s, %s; %s of %v. %s\n", m.name, many(w.Clients, "client"), many(w.Instances, "instance"), many(w.Keys, "key"), many(len(m.rounds), "round"), time.Duration(w.Duration), m.windowNote())
	if m.left > 0 {
		p.line("Left out, as they could not be trusted: %d of %d runs.\n", m.left, m.left+m.kept())
	}
	p.header(1, "", "acq/s", "gap", "hold", "utilisation", "p99 wait per client", "turns max − min", "Jain", "Redis CPU/acq", "commands/acq", "round trips/acq")
	for _, strategy := range m.strategies {
		if !m.has(strategy) {
			continue
		}
		c := medians(m, strategy)
		p.row("`"+strategy+"`", c.speed, c.gap, c.hold, c.utilisation, c.p99, c.turns, c.jain, c.cpu, c.commands, c.roundTrips)
	}
	p.line("")
	p.ceiling(m)
	p.labels(m)
}

// cells are a strategy's figures in a scenario as they are shown, medians of the rounds.
type cells struct {
	speed, gap, hold, utilisation, p99, turns, jain, cpu, commands, roundTrips string
}

func medians(m measured, strategy string) cells {
	middle := func(show func(float64) string, f func(results.Run) *float64) string {
		return median(m, strategy, show, f)
	}
	return cells{
		speed:       middle(significant, func(r results.Run) *float64 { return &r.Speed.PerSecond }),
		gap:         middle(duration, func(r results.Run) *float64 { return r.Speed.Gap }),
		hold:        middle(duration, func(r results.Run) *float64 { return r.Speed.Hold.MeanNS }),
		utilisation: middle(percent, func(r results.Run) *float64 { return &r.Speed.Utilisation }),
		p99:         p99Cell(m, strategy),
		turns: middle(significant, func(r results.Run) *float64 {
			v := float64(r.Fairness.TurnsMax - r.Fairness.TurnsMin)
			return &v
		}),
		jain:       middle(significant, func(r results.Run) *float64 { return r.Fairness.Jain }),
		cpu:        middle(func(s float64) string { return duration(s * 1e9) }, func(r results.Run) *float64 { return r.Server.Window.CPUPerAcquisition() }),
		commands:   middle(significant, func(r results.Run) *float64 { return perAcquisition(r, calls) }),
		roundTrips: middle(significant, func(r results.Run) *float64 { return perAcquisition(r, roundTrips) }),
	}
}

// ceiling says how much faster than the best peer any lock could be.
func (p *page) ceiling(m measured) {
	rooms := headrooms(m, m.those(isPeer))
	if m.hold == 0 || m.keys > 1 || len(rooms) == 0 {
		return
	}
	p.line("With this hold no lock can be more than %s times as fast as the best peer was (median of the rounds): 1 ÷ its utilisation, at equal holds.\n",
		ratio(results.Median(rooms)))
}

// windowNote compares the window with the longest p99.
func (m measured) windowNote() string {
	least, open := math.Inf(1), 0
	for i, r := range m.rounds {
		for _, run := range r {
			if wait := run.Waiting.PerClient.P99; wait != nil && wait.AtLeast {
				open++
			} else if wait != nil && wait.NS > 0 {
				least = min(least, float64(m.reports[i].Workload.Duration)/float64(wait.NS))
			}
		}
	}
	note := ""
	if !math.IsInf(least, 1) {
		note = fmt.Sprintf("The window is at least %s times the p99 of every run", significant(least))
	}
	if open > 0 {
		if note == "" {
			note = "Every run's p99 is beyond the window"
		} else {
			note += fmt.Sprintf(", but for %d whose p99 lies beyond it (≥)", open)
		}
	}
	if note == "" {
		return ""
	}
	return note + "."
}

func p99Cell(m measured, strategy string) string {
	atLeast := ""
	for _, r := range m.rounds {
		if run, ok := r[strategy]; ok && run.Waiting.PerClient.P99 != nil && run.Waiting.PerClient.P99.AtLeast {
			atLeast = "≥ " // of some round, so that the median may be more too
		}
	}
	values := p99.values(m, strategy)
	if len(values) == 0 {
		return "–"
	}
	return atLeast + duration(summarise(values).median)
}

func median(m measured, strategy string, show func(float64) string, of func(results.Run) *float64) string {
	var values []float64
	for _, r := range m.rounds {
		if run, ok := r[strategy]; ok {
			if v := of(run); v != nil {
				values = append(values, *v)
			}
		}
	}
	if len(values) == 0 {
		return "–"
	}
	return show(summarise(values).median)
}

func calls(d *results.ServerDelta) *int64      { return d.Calls }
func roundTrips(d *results.ServerDelta) *int64 { return d.RoundTrips }

func perAcquisition(r results.Run, of func(*results.ServerDelta) *int64) *float64 {
	if r.Server.Window == nil {
		return nil
	}
	return r.Server.Window.PerAcquisition(of(r.Server.Window))
}

// labels are what a reader should know of the runs.
func (p *page) labels(m measured) {
	count, runs := map[string]int{}, 0
	for _, r := range m.rounds {
		for _, run := range r {
			runs++
			for _, label := range run.Labels {
				count[label]++
			}
		}
	}
	if len(count) > 0 {
		p.line("Labels, of %d runs: %s.\n", runs, counted(count))
	}
}

// versions are those of the peers in this build.
func versions() []string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	var all []string
	for _, module := range info.Deps {
		switch module.Path {
		case "github.com/bsm/redislock", "github.com/go-redsync/redsync/v4", "github.com/redis/rueidis", "github.com/redis/go-redis/v9":
			all = append(all, module.Path+" "+module.Version)
		}
	}
	return all
}
