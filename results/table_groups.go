package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/workloads"
)

// groups are the tables, in the order in which questions are asked: how fast,
// who waits, is it fair, what does Redis pay, does it exclude.
func groups(r *Report, summaries []summary) []group {
	all := []group{
		{"SPEED", speedColumns(r)},
		{"RATIO to the first", ratioColumns(r, summaries)},
		{"HERD one release", herdColumns(r)},
		{"WAITING time", waitingColumns(r)},
		{"FAIRNESS", fairnessColumns()},
		{"COST per acquisition", costColumns(r)},
		{"LOAD on Redis", loadColumns()},
		{"SPREAD min–max", spreadColumns(r, summaries)},
		{"SAFETY", safetyColumns(r)},
	}
	all = append(all, faultGroups(r)...)
	return slices.DeleteFunc(all, func(g group) bool { return g.columns == nil })
}

func speedColumns(r *Report) []column {
	columns := []column{
		{"acq/s", false, figure(func(r Run) *float64 { return exactly(r.Speed.PerSecond) }, number)},
		{"gap", false, figure(func(r Run) *float64 { return r.Speed.Gap }, nanoseconds)},
		{"utili-\nsation", false, figure(func(r Run) *float64 { return exactly(r.Speed.Utilisation * 100) }, percent)},
		{"hold\nmean", false, figure(meanHold, nanoseconds)},
		{"handoff\np50", false, duration(func(r Run) *Bound { return r.Speed.Handoff.P50 })},
		{"handoff\np99", false, duration(p99(func(r Run) Distribution { return r.Speed.Handoff }))},
		{"release\np50", false, duration(func(r Run) *Bound { return r.Speed.Release.P50 })},
	}
	if r.Workload.Coalesce {
		served := column{"served/s", false, figure(func(r Run) *float64 { return exactly(r.Speed.ServedPerSecond) }, number)}
		columns[1] = served // of the gap, those who shared a lease have no part
	}
	if r.Rounds <= 1 {
		if !steadiness(r) {
			return columns
		}
		return slices.Insert(columns, 1, column{"±\n95 %", false, func(s summary) string {
			return known(s.median(func(r Run) *float64 { return r.withinRun(s.workload) }), percent) + s.mark()
		}})
	}
	runs := column{"runs", false, func(s summary) string {
		if s.tainted() && !s.suspect {
			return fmt.Sprintf("%d of %d", len(s.used), len(s.runs))
		}
		return fmt.Sprint(len(s.runs))
	}}
	return append([]column{runs}, columns...)
}

func waitingColumns(r *Report) []column {
	perAcquisition := func(r Run) Distribution { return r.Waiting.PerAcquisition }
	perClient := func(r Run) Distribution { return r.Waiting.PerClient }
	columns := []column{
		{"per acq\np50", false, duration(func(r Run) *Bound { return perAcquisition(r).P50 })},
		{"per acq\np99", false, duration(p99(perAcquisition))},
		{"per acq\nmax", false, duration(func(r Run) *Bound { return perAcquisition(r).Max })},
		{"per client\np50", false, estimated(func(r Run) *Bound { return perClient(r).P50 })},
		{"per client\np99", false, estimated(p99(perClient))},
		{"waits per\nclient", false, func(s summary) string {
			return figure(func(r Run) *float64 {
				if r.Waiting.PerClient.P50 == nil {
					return nil
				}
				return exactly(float64(r.Waiting.PerClient.Count) / float64(s.workload.Clients))
			}, number)(s)
		}},
		{"open at\nthe end", false, figure(func(r Run) *float64 { return exactly(r.Waiting.Open) }, whole)},
		{"gave\nup", false, figure(func(r Run) *float64 { return exactly(r.Waiting.GaveUp) }, whole)},
	}
	if r.Workload.Rate > 0 {
		columns = append(columns, column{"starts\nlate p99", false, duration(func(r Run) *Bound { return r.Waiting.Lateness.P99 })})
	}
	return columns
}

func fairnessColumns() []column {
	least := func(r Run) *float64 { return exactly(r.Fairness.TurnsMin) }
	most := func(r Run) *float64 { return exactly(r.Fairness.TurnsMax) }
	return []column{
		{"turns of a client\nmin–max", false, func(s summary) string {
			return known(s.median(least), whole) + "–" + known(s.median(most), whole) + s.mark()
		}},
		{"Jain\nindex", false, figure(func(r Run) *float64 { return r.Fairness.Jain }, significant)},
		{"starved\nclients", false, func(s summary) string {
			n := s.median(starved)
			if n == nil {
				return unknown
			}
			return whole(*n) + fmt.Sprintf(" of %d", s.workload.Clients) + s.mark()
		}},
		{"longest\nwait", false, duration(func(r Run) *Bound { return r.Fairness.LongestWait })},
		{"working\nset", false, figure(func(r Run) *float64 { return r.Fairness.WorkingSet }, significant)},
		{"back\nafter", false, figure(func(r Run) *float64 { return converted(r.Fairness.Return) }, whole)},
		{"overtook", false, figure(func(r Run) *float64 { return r.Fairness.Overtakes }, percent)},
		{"largest\nbypass", false, figure(func(r Run) *float64 { return exactly(r.Fairness.LargestBypass) }, whole)},
	}
}

func costColumns(r *Report) []column {
	each := func(total func(*ServerDelta) *int64) func(Run) *float64 {
		return func(r Run) *float64 {
			if r.Server.Window == nil {
				return nil
			}
			return r.Server.Window.PerAcquisition(total(r.Server.Window))
		}
	}
	columns := []column{
		{"commands", false, figure(each(func(d *ServerDelta) *int64 { return d.Calls }), significant)},
		{"round\ntrips", false, figure(each(func(d *ServerDelta) *int64 { return d.RoundTrips }), significant)},
		{"bytes\nin", false, figure(each(func(d *ServerDelta) *int64 { return d.BytesIn }), sized)},
		{"bytes\nout", false, figure(each(func(d *ServerDelta) *int64 { return d.BytesOut }), sized)},
		{"attempts", false, figure(func(r Run) *float64 { return r.Effort.Attempts }, significant)},
		{"wake-ups", false, figure(func(r Run) *float64 { return r.Effort.WakeUps }, significant)},
		{"futile\nwake-ups", false, figure(func(r Run) *float64 { return r.Effort.Futile }, significant)},
	}
	cpu := []column{{"Redis\nCPU", false, func(s summary) string {
		cpu := s.figure(redisCPU)
		if cpu == nil {
			return unknown
		}
		return cpu.Text(Nanoseconds) + s.mark()
	}}}
	if slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Server.Window.threaded() }) {
		cpu = []column{
			{"main\nthread", false, figure(inNanoseconds((*ServerDelta).MainPerAcquisition), nanoseconds)},
			{"other\nthreads", false, figure(inNanoseconds((*ServerDelta).RestPerAcquisition), nanoseconds)},
		}
	}
	return slices.Insert(columns, 4, cpu...)
}

func loadColumns() []column {
	peak := func(value func(*ServerPeak) *float64) func(Run) *float64 {
		return func(r Run) *float64 {
			if r.Server.Peak == nil {
				return nil
			}
			return value(r.Server.Peak)
		}
	}
	return []column{
		{"CPU of\none core", false, figure(func(r Run) *float64 { return r.Server.Window.CPUPercent() }, percent)},
		{"connections\npeak", false, figure(peak(func(p *ServerPeak) *float64 { return converted(p.Clients) }), whole)},
		{"subscriptions\npeak", false, figure(peak(func(p *ServerPeak) *float64 {
			return converted(p.Subscriptions)
		}), whole)},
		{"memory\npeak", false, figure(peak(func(p *ServerPeak) *float64 { return converted(p.MemoryBytes) }), sized)},
		{"foreign\ntraffic", false, figure(func(r Run) *float64 {
			if r.Server.Whole == nil {
				return nil
			}
			return r.Server.Whole.Foreign
		}, percent)},
	}
}

func safetyColumns(r *Report) []column {
	total := func(count func(Run) int64) func(summary) string {
		return func(s summary) string { return whole(float64(s.total(count))) }
	}
	columns := []column{
		{"claims", true, func(s summary) string { return strings.Join(wrap(s.verdict(), verdictWidth, ""), "\n") }},
		{"overlaps", false, total(func(r Run) int64 { return r.Safety.Overlaps })},
		{"late\noverlaps", false, total(func(r Run) int64 { return r.Safety.Late })},
		{"fencing\nbroken", false, func(s summary) string {
			if s.total(func(r Run) int64 { return r.Safety.FencedLeases }) == 0 {
				return unknown
			}
			return whole(float64(s.total(func(r Run) int64 { return r.Safety.FencingRegression })))
		}},
		{"leases\nlost", false, total(func(r Run) int64 { return r.Safety.LostLeases })},
		{"left\nbehind", false, func(s summary) string {
			return known(s.known(func(r Run) *int64 { return r.Safety.LeftoverCount }), whole)
		}},
		{"clients\nstuck", false, total(func(r Run) int64 { return int64(r.Safety.Stuck) })},
		{"errors", false, total(Run.errors)},
	}
	if r.Workload.Work == workloads.WorkCounter {
		columns = slices.Insert(columns, 3, column{"updates\nlost", false, func(s summary) string {
			return known(s.known(func(r Run) *int64 { return r.Safety.LostUpdates }), whole)
		}})
	}
	if slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Safety.Refused != nil }) {
		columns = slices.Insert(columns, 4, column{"updates\nrefused", false, func(s summary) string {
			return known(s.known(func(r Run) *int64 { return r.Safety.Refused }), whole)
		}})
	}
	return columns
}

// errors counts those of Acquire and Release.
func (r Run) errors() int64 {
	var sum int64
	for _, e := range r.Errors {
		sum += e.Count
	}
	return sum
}

// mark is put behind the figures of a strategy of which no run can be trusted.
func (s summary) mark() string {
	if s.suspect {
		return "!"
	}
	return ""
}

// figure shows the median of the runs.
func figure(value func(Run) *float64, write func(float64) string) func(summary) string {
	return func(s summary) string {
		m := s.median(value)
		if m == nil {
			return unknown
		}
		return write(*m) + s.mark()
	}
}

// duration shows the median of the runs, which may be a lower bound.
func duration(value func(Run) *Bound) func(summary) string { return durationIn(nanoseconds, value) }

// estimated is duration for what is known within a few percent.
func estimated(value func(Run) *Bound) func(summary) string { return durationIn(twoDigits, value) }

func durationIn(write func(float64) string, value func(Run) *Bound) func(summary) string {
	return func(s summary) string {
		b := s.bound(value)
		if b == nil {
			return unknown
		}
		return b.written(write) + s.mark()
	}
}

func whole(x float64) string { return count(int64(math.Round(x))) }
