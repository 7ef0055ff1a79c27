package findings

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// even returns a report of two locks, a and b, with equal figures in every round.
func even(rounds int) *results.Report {
	w := workloads.Default()
	w.Clients, w.Hold = 100, workloads.Fixed(time.Millisecond)
	r := &results.Report{Workload: w, Rounds: rounds}
	for _, name := range []string{"a", "b"} {
		r.Strategies = append(r.Strategies, results.Strategy{Name: name, Claims: []string{"exclusion"}, Capacity: 1})
	}
	for round := range rounds {
		for _, name := range []string{"a", "b"} {
			r.Runs = append(r.Runs, evenRun(name, round+1))
		}
	}
	return r
}

func evenRun(name string, round int) results.Run {
	ns := func(n int64) *results.Bound { return &results.Bound{NS: n} }
	return results.Run{
		Strategy: name, Round: round, WindowNS: 5e9,
		Speed: results.Speed{Acquisitions: 4000, Served: 4000, PerSecond: 800, Utilisation: 0.8},
		Waiting: results.Waiting{
			PerAcquisition: results.Distribution{P50: ns(1e8), P99: ns(3e8)},
			PerClient:      results.Distribution{P50: ns(1.1e8), P99: ns(4e8)},
		},
		Server:         results.Server{Window: &results.ServerDelta{Acquisitions: 4000, Calls: new(int64(4000 * 6))}},
		Safety:         results.Safety{LeftoverCount: new(int64(0))},
		TimeAccounting: results.TimeAccounting{Balanced: true},
		Fairness:       results.Fairness{Starved: new(0)},
	}
}

// grown returns a report of a sweep in which a and b have the same figures at 10 and at 100 clients.
func grown() *results.Report {
	r := even(1)
	few := r.Workload
	few.Clients = 10
	r.Points = []workloads.Point{{Label: "clients=10", Workload: few}, {Label: "clients=100", Workload: r.Workload}}
	r.Runs = slices.Concat(even(1).Runs, even(1).Runs)
	for i := range r.Runs {
		r.Runs[i].Point = r.Points[i/2].Label
	}
	return r
}

// findingTexts returns the text of every finding about a report, and then the text of every finding of Brief.
func findingTexts(r *results.Report) []string {
	var texts []string
	for _, f := range append(Of(r.Summaries()), OfReport(r)...) {
		texts = append(texts, fmt.Sprintf("%s [%s %v]: %s", f.Sort, f.Note, f.Advice, f))
	}
	for _, f := range Brief(r.Summaries()) {
		texts = append(texts, fmt.Sprintf("brief: %s", f))
	}
	return texts
}

func commands(r *results.Run, n float64) { r.Server.Window.Calls = new(int64(4000 * n)) }

func ns(n int64, atLeast bool) *results.Bound { return &results.Bound{NS: n, AtLeast: atLeast} }

func shareOf(x float64) results.Quantity { return results.Written(x, fmt.Sprint(x, "%")) }

// faster returns a function that sets the throughput of lock b in each round to 800/s times factor(round), where rounds
// count from 0. The throughput of lock a remains 800/s.
func faster(factor func(round int) float64) func(*results.Report) {
	return func(r *results.Report) {
		for i := 1; i < len(r.Runs); i += 2 {
			r.Runs[i].Speed.PerSecond = 800 * factor(i/2)
		}
	}
}

// Each case changes the report even(rounds), or the report grown() if rounds is 0. name is the heading of the case's
// section in the golden file.
var cases = []struct {
	name   string
	rounds int
	change func(*results.Report)
}{
	{"invalid", 1, func(r *results.Report) { r.Runs[0].Invalid = results.PlainTexts("its time accounts do not balance") }},
	{"invalid among others", 3, func(r *results.Report) { r.Runs[2].Invalid = results.PlainTexts("x", "y") }},
	{"invalid, all of several", 2, func(r *results.Report) {
		r.Runs[0].Invalid, r.Runs[2].Invalid = results.PlainTexts("x"), results.PlainTexts("x")
	}},
	{"failed", 1, func(r *results.Report) { r.Runs[1].Failure = "gone" }},
	{"stood still", 1, func(r *results.Report) {
		r.Runs[0].WindowNS, r.Runs[0].Speed.Stall = 10e9, new(int64(501e6))
		r.Runs[0].Fairness.LongestWait = ns(2e9, true)
	}},
	{"stood still for less", 1, func(r *results.Report) {
		r.Runs[0].WindowNS, r.Runs[0].Speed.Stall = 10e9, new(int64(499e6))
	}},
	{"stood still in a short window", 1, func(r *results.Report) {
		r.Runs[0].WindowNS, r.Runs[0].Speed.Stall = 5e8, new(int64(301e6))
	}},
	{"stood still for less in a short window", 1, func(r *results.Report) {
		r.Runs[0].WindowNS, r.Runs[0].Speed.Stall = 5e8, new(int64(299e6))
	}},
	{"stood still in some rounds", 3, func(r *results.Report) {
		r.Runs[0].Speed.Stall, r.Runs[2].Speed.Stall = new(int64(1e9)), new(int64(2e9))
	}},
	{"stood still by a fault", 1, func(r *results.Report) {
		r.Runs[0].Speed.Stall, r.Workload.Faults = new(int64(1e9)), []workloads.Fault{{Name: "stop"}}
	}},
	{"holds that were not as asked, and differ", 1, func(r *results.Report) {
		for i, mean := range []float64{1.05e6, 2.49e6} {
			r.Runs[i].Speed.Hold.MeanNS, r.Runs[i].Speed.HoldAsked = new(mean), new(1e6)
		}
	}},
	{"holds that were nearly as asked", 1, func(r *results.Report) {
		r.Runs[0].Speed.Hold.MeanNS, r.Runs[0].Speed.HoldAsked = new(1.02e6), new(1e6)
	}},
	{"holds that differ in the gap", 1, func(r *results.Report) {
		for i, gap := range []float64{123_456, 234_567} {
			r.Runs[i].Speed.Gap, r.Runs[i].Speed.Hold.MeanNS = new(gap), new(1e6*float64(i+1))
		}
		r.Runs[1].Speed.PerSecond = 1234
	}},
	{"holds that differ between workloads", 0, func(r *results.Report) {
		for i := range r.Runs {
			r.Runs[i].Speed.Hold.MeanNS = new(1e6 * float64(1+i/2))
		}
	}},
	{"a broken claim", 1, func(r *results.Report) {
		r.Runs[0].Safety.Overlaps, r.Runs[0].Safety.Broken = 3, results.Remarks{results.Overlapped.Remark(3)}
	}},
	{"overlaps without a claim of exclusion", 1, func(r *results.Report) { r.Runs[0].Safety.Overlaps = 1 }},
	{"several holders at a time", 1, func(r *results.Report) { r.Runs[0].Safety.MaxHolders = 2 }},
	{"unsafe first, starved after it, and no more", 1, func(r *results.Report) {
		for i := range r.Runs {
			r.Runs[i].Safety.ExpiredOverlaps, r.Runs[i].Safety.LostUpdates = int64(2+i), new(int64(5))
		}
		r.Runs[0].Fairness.Starved = new(13)
		commands(&r.Runs[0], 17)
	}},
	{"updates lost because of the order", 1, func(r *results.Report) {
		r.Workload.Work, r.Workload.Release = workloads.WorkTransaction, workloads.ReleaseBeforeCommit
		r.Runs[0].Safety.LostUpdates = new(int64(5))
	}},
	{"updates of a row lost", 1, func(r *results.Report) {
		r.Workload.Work, r.Runs[0].Safety.LostUpdates = workloads.WorkTransaction, new(int64(5))
	}},
	{"no update lost", 1, func(r *results.Report) { r.Runs[0].Safety.LostUpdates = new(int64(0)) }},
	{"no recovery from a fault", 1, func(r *results.Report) {
		r.Runs[0].Faults = []results.Fault{{
			Fault:      workloads.Fault{Name: "holder-crash"},
			Injections: []results.Injection{{RecoveryNS: new(int64(1e9))}, {}},
		}}
	}},
	{"recovery from a fault", 1, func(r *results.Report) {
		r.Runs[0].Faults = []results.Fault{{Injections: []results.Injection{{RecoveryNS: new(int64(1e9))}}}}
	}},
	{"leftovers", 1, func(r *results.Report) { r.Runs[0].Safety.LeftoverCount = new(int64(2)) }},
	{"leftovers that are not known", 1, func(r *results.Report) { r.Runs[0].Safety.LeftoverCount = nil }},
	{"late holders without tokens", 1, func(r *results.Report) {
		r.Workload.Work, r.Runs[0].Safety.ExpiredOverlaps = workloads.WorkCounter, 1
	}},
	{"unsafe by design", 1, func(r *results.Report) { r.Strategies[0].Caveat = "it has no TTL" }},
	{"thresholds", 1, func(r *results.Report) {
		r.Thresholds = []results.Judgement{
			{Threshold: "starved==0", Strategy: "a", Value: &results.Figure{Value: 3}},
			{Threshold: "starved==0", Strategy: "b", Passed: true},
		}
	}},
	{"starved, fastest, dearest", 1, func(r *results.Report) {
		r.Runs[0].Fairness.Starved, r.Runs[1].Speed.PerSecond = new(13), 1234
		commands(&r.Runs[0], 17.1)
	}},
	{"both starved", 1, func(r *results.Report) {
		r.Runs[0].Fairness.Starved, r.Runs[1].Fairness.Starved = new(13), new(2)
	}},
	{"starved of an invalid run", 1, func(r *results.Report) {
		r.Runs[0].Fairness.Starved, r.Runs[0].Invalid = new(37), results.PlainTexts("x")
	}},
	{"starved in some rounds", 3, func(r *results.Report) { r.Runs[4].Fairness.Starved = new(2) }},
	{"starved is not known", 1, func(r *results.Report) {
		r.Runs[0].Fairness.Starved, r.Runs[1].Fairness.Starved = nil, nil
	}},
	{"starved is not known of all rounds", 2, func(r *results.Report) {
		r.Runs[0].Fairness.Starved = nil                                      // a, round 1
		r.Runs[1].Fairness.Starved, r.Runs[3].Fairness.Starved = nil, new(12) // b, round 1 and 2
	}},
	{"waits that were given up, and served every client", 1, func(r *results.Report) {
		r.Workload.Timeout = new(workloads.Duration(300 * time.Millisecond))
		for i, n := range []int64{8500, 25_000} {
			r.Runs[i].Waiting.TimedOut, r.Runs[i].Waiting.PerAcquisition.Count = n, 4000
		}
	}},
	{"waits that one lock gave up, in some rounds", 3, func(r *results.Report) {
		r.Workload.Timeout = new(workloads.Duration(time.Second))
		for i := range r.Runs {
			r.Runs[i].Waiting.PerAcquisition.Count = 4000
		}
		r.Runs[0].Waiting.TimedOut, r.Runs[4].Waiting.TimedOut = 12, 4000
	}},
	{"a wait of very many that was given up, and unsafe more than fits", 1, func(r *results.Report) {
		r.Workload.Timeout = new(workloads.Duration(time.Second))
		r.Runs[1].Waiting.TimedOut, r.Runs[1].Waiting.PerAcquisition.Count = 1, 1e6
		for i := range r.Runs {
			r.Runs[i].Safety.ExpiredOverlaps, r.Runs[i].Safety.LostUpdates = int64(2+i), new(int64(5))
			r.Runs[i].Safety.LeftoverCount, r.Runs[i].Safety.Overlaps = new(int64(2)), 1
		}
	}},
	{"tries that found the lock held", 1, func(r *results.Report) {
		r.Workload.Timeout = new(workloads.Duration(0))
		r.Runs[0].Waiting.TimedOut, r.Runs[0].Waiting.PerAcquisition.Count = 1e6, 4000
		r.Runs[0].Fairness.Starved = new(13)
	}},
	{"an open loop, overloaded", 1, func(r *results.Report) {
		r.Workload.Rate = 300
		for i := range r.Runs {
			r.Runs[i].Waiting.PerAcquisition.Count = 4000
		}
		r.Runs[0].Waiting.PerAcquisition.P99.NS = 123_000_000
		r.Runs[1].Labels = results.Remarks{results.Overloaded.Remark(workloads.Rate(900), 100)}
	}},
	{"bursts set the pace", 1, func(r *results.Report) { r.Workload.Burst, r.Runs[1].Speed.PerSecond = 1e8, 1200 }},
	{"commands that do not differ in the known digits", 1, func(r *results.Report) {
		r.Strategies, r.Runs = append(r.Strategies, r.Strategies[0]), append(r.Runs, evenRun("c", 1))
		r.Strategies[2].Name = "c"
		commands(&r.Runs[0], 0.171)
		commands(&r.Runs[1], 51)
		commands(&r.Runs[2], 0.169)
	}},
	{"commands that hardly differ", 1, func(r *results.Report) { commands(&r.Runs[0], 7) }},
	{"commands of a lock that passes on within its processes", 1, func(r *results.Report) {
		r.Workload.Instances = 2
		commands(&r.Runs[0], 0.18)
		r.Runs[0].Fairness.PassesWithin, r.Runs[1].Fairness.PassesWithin = new(97.9), new(49.5)
	}},
	{"commands of another store", 1, func(r *results.Report) {
		r.Strategies[0].Store = "etcd"
		commands(&r.Runs[0], 1)
	}},
	{"commands of a herd", 0, func(r *results.Report) { commands(&r.Runs[2], 30) }},
	{"commands that grow by little", 0, func(r *results.Report) {
		commands(&r.Runs[2], 9)
		commands(&r.Runs[3], 11.5)
	}},
	{"at the ceiling", 1, func(r *results.Report) {
		r.Runs[0].Speed.Utilisation = 0.97
		r.Runs[0].Speed.Hold.MeanNS, r.Runs[0].Speed.HoldAsked = new(1.01e6), new(1e6)
	}},
	{"at the ceiling without holds", 1, func(r *results.Report) {
		r.Runs[0].Speed.Utilisation, r.Workload.Hold = 0.97, workloads.Dist{}
	}},
	{"at the ceiling with pauses", 1, func(r *results.Report) {
		r.Runs[0].Speed.Utilisation, r.Workload.Think = 0.97, workloads.Fixed(time.Second)
		r.Runs[0].Speed.Hold.MeanNS, r.Runs[0].Speed.HoldAsked = new(1e6), new(1e6)
	}},
	{"labels that differ in their figures", 2, func(r *results.Report) {
		for i, share := range []float64{63, 67, 82, 81} {
			r.Runs[i].Labels = results.Remarks{results.Stolen.Remark(shareOf(share)), results.GeneratorBound.Remark()}
		}
		r.Runs[0].Labels = append(r.Runs[0].Labels, results.OtherCPU.Remark(shareOf(9.5)), results.PartOfASession.Remark())
	}},
	{"labels that differ in durations", 2, func(r *results.Report) {
		for i, lasted := range []time.Duration{105 * time.Second, 55 * time.Second, 62500 * time.Millisecond, 250e6} {
			r.Runs[i].Labels = results.Remarks{results.CutShort.Remark(lasted)}
		}
	}},
	{"labels of generators", 1, func(r *results.Report) {
		for i, share := range []float64{78, 79} {
			label := results.OtherCPU.Remark(shareOf(share)).With("generators", fmt.Sprint("generator ", i))
			label.Text += fmt.Sprint(" in generator ", i)
			r.Runs[0].Labels = append(r.Runs[0].Labels, label)
		}
	}},
	{"labels of one point of a sweep", 0, func(r *results.Report) {
		for _, i := range []int{0, 2, 3} {
			r.Runs[i].Labels = results.Remarks{results.RedisBound.Remark()}
		}
	}},
	{"errors", 1, func(r *results.Report) {
		r.Runs[0].Errors = []results.ErrorCount{{Error: "x", Count: 2}, {Error: "y", Count: 1}}
	}},
	{"left out", 1, func(r *results.Report) {
		r.LeftOut = []results.LeftOut{{Strategy: "redlock", Why: results.Unfit.Remark("it needs 3 nodes")}}
	}},
	{"interrupted", 1, func(r *results.Report) { r.Interrupted = true }},
	{"faster in a few rounds", 3, faster(func(round int) float64 { return 1.2 + float64(round)/100 })},
	{"faster in six rounds", 6, faster(func(round int) float64 { return 1.2 + float64(round)/100 })},
	{"faster in an interval that has 1", 6, faster(func(round int) float64 { return 0.95 + float64(round)/20 })},
	{"at the ceiling with holds that were stretched", 1, func(r *results.Report) {
		r.Runs[0].Speed.Utilisation = 0.97
		r.Runs[0].Speed.Hold.MeanNS, r.Runs[0].Speed.HoldAsked = new(1.4e6), new(1e6)
		r.Runs[1].Speed.PerSecond = 1120
	}},
	{"at the ceiling where clients share an acquisition", 1, func(r *results.Report) {
		r.Runs[0].Speed.Utilisation, r.Workload.Coalesce = 0.97, true
		r.Runs[0].Speed.Hold.MeanNS, r.Runs[0].Speed.HoldAsked = new(1e6), new(1e6)
		r.Runs[1].Speed.ServedPerSecond = 9000
	}},
	{"clients that share an acquisition", 1, func(r *results.Report) {
		r.Workload.Coalesce = true
		r.Runs[0].Speed.ServedPerSecond, r.Runs[1].Speed.ServedPerSecond = 9000, 4000
		r.Runs[1].Speed.PerSecond = 1200
	}},
	{"unsafe locks with the fewest and the most commands", 1, func(r *results.Report) {
		for i, n := range []float64{1, 60, 4} {
			name := fmt.Sprint("x", i)
			r.Strategies, r.Runs = append(r.Strategies, r.Strategies[0]), append(r.Runs, evenRun(name, 1))
			r.Strategies[2+i].Name = name
			commands(&r.Runs[2+i], n)
		}
		commands(&r.Runs[0], 17)
		r.Strategies[2].Caveat, r.Runs[3].Safety.Overlaps, r.Strategies[4].Caveat = "it has no TTL", 1, "it has no owner"
	}},
	{"an invalid run and one of another store with the fewest commands", 1, func(r *results.Report) {
		for i := range 2 {
			name := fmt.Sprint("x", i)
			r.Strategies, r.Runs = append(r.Strategies, r.Strategies[0]), append(r.Runs, evenRun(name, 1))
			r.Strategies[2+i].Name = name
			commands(&r.Runs[2+i], 1)
		}
		commands(&r.Runs[0], 17)
		r.Runs[2].Invalid, r.Strategies[3].Store = results.PlainTexts("x"), "etcd"
	}},
	{"an unsafe lock is faster", 3, func(r *results.Report) {
		r.Strategies = append(r.Strategies, r.Strategies[0])
		r.Strategies[2].Name, r.Strategies[2].Caveat = "c", "it has no TTL"
		for round := range 3 {
			r.Runs[2*round].Speed.PerSecond = 1000
			c := evenRun("c", round+1)
			c.Speed.PerSecond = 5000
			r.Runs = append(r.Runs, c)
		}
	}},
	{"an open loop, the other's wait is only a lower bound", 6, func(r *results.Report) {
		r.Workload.Rate = 300
		for i := range r.Runs {
			r.Runs[i].Waiting.PerAcquisition.Count = 4000
			r.Runs[i].Waiting.PerAcquisition.P99 = ns(int64(100+i%2*100+i)*1e6, i%2 == 1)
		}
	}},
	{"holds that differ, with bursts", 1, func(r *results.Report) {
		r.Workload.Burst = 1e8
		r.Runs[0].Speed.Hold.MeanNS, r.Runs[1].Speed.Hold.MeanNS = new(1e6), new(2e6)
	}},
	{"holds that differ, and the gap of one is not known", 1, func(r *results.Report) {
		r.Workload.Think = workloads.Fixed(time.Millisecond)
		r.Runs[0].Speed.Hold.MeanNS, r.Runs[1].Speed.Hold.MeanNS = new(1e6), new(2e6)
		r.Runs[0].Speed.Gap = new(1e5)
	}},
	{"stood still with several keys", 1, func(r *results.Report) {
		r.Workload.Keys, r.Runs[0].WindowNS, r.Runs[0].Speed.Stall = 10, 10e9, new(int64(2e9))
	}},
	{"leftovers in another store", 1, func(r *results.Report) {
		r.Strategies[0].Store, r.Runs[0].Safety.LeftoverCount = "etcd", new(int64(2))
	}},
	{"overlaps that are not known of all runs", 2, func(r *results.Report) {
		r.Runs[0].Safety.Overlaps, r.Runs[2].Record.Generators = 3, 2
	}},
	{"commands that grow with the hold", 0, func(r *results.Report) {
		r.Points[0].Workload.Hold = workloads.Fixed(time.Microsecond)
		commands(&r.Runs[2], 30)
	}},
	{"too few, of a number of acquisitions", 1, func(r *results.Report) {
		r.Workload.Iterations, r.Runs[0].Waiting.PerAcquisition.Count = 50, 50
	}},
	{"faster, and does not exclude", 1, func(r *results.Report) {
		r.Runs[1].Speed.PerSecond, r.Runs[1].Safety.Overlaps = 1200, 1
	}},
}

// TestRules changes a report as each case says. The golden file lists the findings that the change adds.
func TestRules(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, c := range cases {
		from := grown
		if c.rounds > 0 {
			from = func() *results.Report { return even(c.rounds) }
		}
		before, r := findingTexts(from()), from()
		c.change(r)
		fmt.Fprintf(&text, "%s\n", c.name)
		for _, line := range findingTexts(r) {
			if !slices.Contains(before, line) {
				fmt.Fprintf(&text, "    %s\n", line)
			}
		}
	}
	golden.Compare(t, "testdata/rules.golden", text.String())
}
