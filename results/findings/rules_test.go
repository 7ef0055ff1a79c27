package findings

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// even is a report of two locks, a and b, of which there is nothing to say but
// which is the better one.
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

// grown are the same locks at 10 and at 100 clients.
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

// told are the findings that a page tells.
func told(r *results.Report) []string {
	var texts []string
	for _, f := range append(Of(r.Summaries()), OfReport(r)...) {
		if f.Sort != "" {
			texts = append(texts, fmt.Sprintf("%s: %s.", f.Sort, f))
		}
	}
	return texts
}

// TestRules has each rule find what there is, and not what is not quite there.
func TestRules(t *testing.T) {
	t.Parallel()
	commands := func(r *results.Run, n float64) { r.Server.Window.Calls = new(int64(4000 * n)) }
	ns := func(n int64, atLeast bool) *results.Bound { return &results.Bound{NS: n, AtLeast: atLeast} }
	for _, c := range []struct {
		rule  string
		from  func() *results.Report
		found func(*results.Report) // makes it so
		want  string
		not   func(*results.Report) // makes it nearly so
		word  string                // of the finding, which is not to be told then; "" is its sort
	}{
		{
			"an invalid run is named with its reason", nil,
			func(r *results.Report) { r.Runs[0].Invalid = []string{"its time accounts do not balance"} },
			"not trusted: a: its run cannot be trusted: its time accounts do not balance.",
			func(r *results.Report) { r.Runs[0].Labels = []string{"redis-bound"} }, "",
		},
		{
			"invalid among others", func() *results.Report { return even(3) },
			func(r *results.Report) { r.Runs[2].Invalid = []string{"x", "y"} },
			"not trusted: a: 1 of its 3 runs cannot be trusted and are left out: x; y.", nil, "",
		},
		{
			"invalid, all of several", func() *results.Report { return even(2) },
			func(r *results.Report) { r.Runs[0].Invalid, r.Runs[2].Invalid = []string{"x"}, []string{"x"} },
			"not trusted: a: none of its 2 runs can be trusted: x.", nil, "",
		},
		{
			"a failed run", nil,
			func(r *results.Report) { r.Runs[1].Failure = "gone" }, "not trusted: b: 1 run failed: gone.", nil, "",
		},
		{
			"a lock that stood still", nil,
			func(r *results.Report) {
				r.Runs[0].WindowNS, r.Runs[0].Speed.Stall, r.Runs[0].Fairness.LongestWait = 10e9, new(int64(501e6)),
					ns(2e9, true)
			},
			"caution: a: no grant for 501 ms of 10 s although clients waited, longest wait ≥ 2.00 s.",
			func(r *results.Report) { r.Runs[0].WindowNS, r.Runs[0].Speed.Stall = 10e9, new(int64(499e6)) }, "no grant",
		},
		{
			"a lock that stood still in a short window", nil,
			func(r *results.Report) { r.Runs[0].WindowNS, r.Runs[0].Speed.Stall = 5e8, new(int64(301e6)) },
			"caution: a: no grant for 301 ms of 0.5 s although clients waited.",
			func(r *results.Report) { r.Runs[0].WindowNS, r.Runs[0].Speed.Stall = 5e8, new(int64(299e6)) }, "no grant",
		},
		{
			"a lock that stood still in some rounds", func() *results.Report { return even(3) },
			func(r *results.Report) {
				r.Runs[0].Speed.Stall, r.Runs[2].Speed.Stall = new(int64(1e9)), new(int64(2e9))
			},
			"caution: a: no grant for 2.00 s of 5 s although clients waited, the worst of 2 such runs of 3.",
			func(r *results.Report) {
				r.Runs[0].Speed.Stall, r.Workload.Faults = new(int64(1e9)), []workloads.Fault{{Name: "stop"}}
			}, "no grant",
		},
		{
			"holds that were not as asked", nil,
			func(r *results.Report) {
				for i, mean := range []float64{1.05e6, 2.49e6} {
					r.Runs[i].Speed.Hold.MeanNS, r.Runs[i].Speed.HoldAsked = new(mean), new(1e6)
				}
			},
			"caution: mean holds over 3 % off what was asked: a held 1.05 ms for 1.00 ms, b held 2.49 ms for 1.00 ms.",
			func(r *results.Report) {
				r.Runs[0].Speed.Hold.MeanNS, r.Runs[0].Speed.HoldAsked = new(1.02e6), new(1e6)
			}, "mean holds",
		},
		{
			"the hold of a single lock", func() *results.Report {
				r := even(1)
				r.Strategies, r.Runs = r.Strategies[:1], r.Runs[:1]
				return r
			},
			func(r *results.Report) {
				r.Runs[0].Speed.Hold.MeanNS, r.Runs[0].Speed.HoldAsked = new(0.9e6), new(1e6)
			},
			"caution: mean holds over 3 % off what was asked: a held 900 µs for 1.00 ms.", nil, "",
		},
		{
			"a broken claim", nil,
			func(r *results.Report) {
				r.Runs[0].Safety.Overlaps, r.Runs[0].Safety.Broken = 3,
					[]string{"exclusion: 3 overlaps within valid leases"}
			},
			"unsafe: a: broke what it claims: exclusion: 3 overlaps within valid leases.", nil, "",
		},
		{
			"overlaps that nobody claimed away", nil,
			func(r *results.Report) { r.Runs[0].Safety.Overlaps = 1 },
			"unsafe: a: let too many hold the lock at once 1 time.",
			func(r *results.Report) { r.Runs[0].Safety.MaxHolders = 2 }, "",
		},
		{
			"overlaps after expiry", nil,
			func(r *results.Report) { r.Runs[0].Safety.ExpiredOverlaps = 2 },
			"unsafe: a: 2 times a client still worked under a lease that had run out while the next one held the lock.",
			nil, "",
		},
		{
			"lost updates", nil,
			func(r *results.Report) { r.Runs[0].Safety.LostUpdates = new(int64(5)) },
			"unsafe: a: 5 updates of the counter that it was to protect got lost.",
			func(r *results.Report) { r.Runs[0].Safety.LostUpdates = new(int64(0)) }, "",
		},
		{
			"no recovery", nil,
			func(r *results.Report) {
				r.Runs[0].Faults = []results.Fault{{
					Fault:      workloads.Fault{Name: "holder-crash"},
					Injections: []results.Injection{{RecoveryNS: new(int64(1e9))}, {}},
				}}
			},
			"unsafe: a: after 1 of 2 injections of holder-crash:at=0s nobody got the lock again within the run's " +
				"window.",
			func(r *results.Report) {
				r.Runs[0].Faults = []results.Fault{{
					Fault:      workloads.Fault{Name: "holder-crash"},
					Injections: []results.Injection{{RecoveryNS: new(int64(1e9))}},
				}}
			}, "",
		},
		{
			"leftovers", nil,
			func(r *results.Report) { r.Runs[0].Safety.LeftoverCount = new(int64(2)) },
			"unsafe: a: left 2 keys, channels or connections on Redis that it does not declare.",
			func(r *results.Report) { r.Runs[0].Safety.LeftoverCount = nil }, "",
		},
		{
			"a threshold", nil,
			func(r *results.Report) {
				r.Thresholds = []results.Verdict{{
					Threshold: "starved==0", Strategy: "a",
					Value: &results.Figure{Value: 3},
				}}
			},
			"crossed: a: starved==0 (3.00).",
			func(r *results.Report) {
				r.Thresholds = []results.Verdict{{Threshold: "starved==0", Strategy: "a", Passed: true}}
			}, "",
		},
		{
			"starvation", nil,
			func(r *results.Report) { r.Runs[0].Fairness.Starved = new(37); commands(&r.Runs[0], 100) },
			"waiting: a: 37 of 100 clients never got the lock in 5 s; 100 commands per acquisition.",
			func(r *results.Report) { r.Runs[0].Fairness.Starved, r.Runs[0].Invalid = new(37), []string{"x"} },
			"never got",
		},
		{
			"starvation that could not be helped", nil,
			func(r *results.Report) { r.Runs[0].Fairness.Starved = new(60); r.Runs[0].Speed.Served = 45 },
			"waiting: a: 60 of 100 clients never got the lock in 5 s; with 45 acquisitions at least 55 had to go " +
				"without; 6.00 commands per acquisition.", nil, "",
		},
		{
			"starvation in some rounds", func() *results.Report { return even(3) },
			func(r *results.Report) { r.Runs[4].Fairness.Starved = new(2) },
			"waiting: a: 0 to 2 of 100 clients never got the lock in 5 s; 6.00 commands per acquisition.",
			func(r *results.Report) { r.Runs[4].Fairness.Starved, r.Runs[4].Invalid = new(2), []string{"x"} }, "",
		},
		{
			"an overloaded open loop", nil,
			func(r *results.Report) {
				r.Runs[0].Labels = []string{"overloaded: 900/s found all 100 clients waiting"}
			},
			"waiting: a: overloaded: 900/s found all 100 clients waiting.", nil, "",
		},
		{
			"barging", nil,
			func(r *results.Report) { r.Runs[0].Waiting.PerClient.P50 = ns(6e8, true) },
			"waiting: a: the median of the waits is 100 ms over all acquisitions, but ≥ 600 ms with every client " +
				"counting alike: few clients take the lock again and again while the others wait.",
			func(r *results.Report) { // how much longer is not known
				r.Runs[0].Waiting.PerAcquisition.P50, r.Runs[0].Waiting.PerClient.P50 = ns(1e8, true), ns(6e8, true)
			}, "",
		},
		{
			"commands beside the cheapest", nil,
			func(r *results.Report) { commands(&r.Runs[0], 30) },
			"cost: Redis executes 6.00 commands for an acquisition of b, and for one of a 30.0 (5.0 times).",
			func(r *results.Report) { commands(&r.Runs[0], 17) }, "Redis executes",
		},
		{
			"commands beside a lock that is not on Redis", nil,
			func(r *results.Report) { commands(&r.Runs[1], 30) },
			"cost: Redis executes 6.00 commands for an acquisition of a, and for one of b 30.0 (5.0 times).",
			func(r *results.Report) { commands(&r.Runs[0], 0); commands(&r.Runs[1], 30) }, "Redis executes",
		},
		{
			"a herd", grown,
			func(r *results.Report) { commands(&r.Runs[2], 30) },
			"cost: Commands per acquisition grow with the clients, a herd, from 10 to 100 clients: a (6.00 → 30.0).",
			func(r *results.Report) { commands(&r.Runs[2], 11.5) }, "grow with",
		},
		{
			"no growth", grown,
			func(r *results.Report) { commands(&r.Runs[2], 30) },
			"cost: Commands per acquisition hardly change from 10 to 100 clients: b (6.00 → 6.00).",
			func(r *results.Report) { commands(&r.Runs[2], 9); commands(&r.Runs[3], 9) }, "hardly change",
		},
		{
			"a lock at its ceiling", nil,
			func(r *results.Report) { r.Runs[0].Speed.Utilisation = 0.97 },
			"best: a: held 97.0 % of the time: no other lock serves many more, a shorter hold than 1ms or more " +
				"keys than 1 do.",
			func(r *results.Report) { r.Runs[0].Speed.Utilisation = 0.97; r.Workload.Hold = workloads.Dist{} },
			"held 97",
		},
		{
			"a lock lost between its holders", nil,
			func(r *results.Report) { r.Runs[0].Speed.Utilisation = 0.3 },
			"cost: a: held 30.0 % of the time although clients always wanted it: for the rest it was being handed on.",
			func(r *results.Report) {
				r.Runs[0].Speed.Utilisation = 0.3
				r.Workload.Think = workloads.Fixed(time.Second)
			}, "held 30",
		},
		{
			"a lock that a dead holder keeps", nil,
			func(r *results.Report) { r.Runs[0].Speed.Utilisation = 0.3 },
			"cost: a: held 30.0 % of the time although clients always wanted it: for the rest it was being handed on.",
			func(r *results.Report) {
				r.Runs[0].Speed.Utilisation = 0.3
				r.Workload.Faults = []workloads.Fault{{
					Name: workloads.HolderCrash,
					At:   workloads.Duration(time.Second),
				}}
			}, "held 30",
		},
		{
			"a busy machine", nil,
			func(r *results.Report) { r.Runs[0].Labels = []string{"generator-bound"} },
			"caution: a: generator-bound (the machine was busy with lockbench itself: the lock may be faster than " +
				"shown).", nil, "",
		},
		{
			"errors", nil,
			func(r *results.Report) {
				r.Runs[0].Errors = []results.ErrorCount{{Error: "x", Count: 2}, {Error: "y", Count: 1}}
			},
			"caution: a: met 3 errors: 2 × x, 1 × y.", nil, "",
		},
		{
			"what was left out", nil,
			func(r *results.Report) { r.LeftOut = []results.LeftOut{{Strategy: "redlock", Why: "it needs 3 nodes"}} },
			"left out: redlock: it needs 3 nodes.", nil, "",
		},
		{
			"one of several generators", nil,
			func(r *results.Report) { r.Runs[0].Labels = []string{results.PartOfASession} },
			"caution: a: one of several generators (what Redis counted is all of theirs, divided by this one's " +
				"acquisitions: lockbench merge puts the reports together).", nil, "",
		},
		{
			"an interruption", nil,
			func(r *results.Report) { r.Interrupted = true }, "not trusted: interrupted: 2 of 2 runs measured.", nil,
			"",
		},
		{
			"the fastest of single runs", nil,
			func(r *results.Report) { r.Runs[1].Speed.PerSecond = 1200 },
			"best: Highest throughput at 100 clients: b, 1.20 k/s; next a, 800/s.",
			func(r *results.Report) { // it does not exclude
				r.Runs[1].Speed.PerSecond, r.Runs[1].Safety.Overlaps = 1200, 1
			}, "Highest throughput",
		},
		{
			"single runs that are close", nil,
			func(r *results.Report) { r.Runs[1].Speed.PerSecond = 810 },
			"best: Highest throughput at 100 clients: b, 810/s; next a, 800/s: too close to tell without more " +
				"rounds (--runs 6).", nil, "",
		},
		{
			"the fastest of paired rounds", func() *results.Report { return even(6) },
			func(r *results.Report) {
				for i := 1; i < len(r.Runs); i += 2 {
					r.Runs[i].Speed.PerSecond = 1000 + float64(i)
				}
			},
			"best: Highest throughput at 100 clients: b, 1.01 k/s, 1.26 times that of a (95 % interval 1.25–1.26 " +
				"over 6 paired rounds).",
			func(r *results.Report) { // and back again
				for i := 1; i < len(r.Runs); i += 2 {
					r.Runs[i].Speed.PerSecond = 810 + float64(i%4-2)*100
				}
			}, "paired rounds).",
		},
		{
			"the shortest waits", nil,
			func(r *results.Report) { r.Runs[0].Waiting.PerClient.P99 = ns(2e9, true) },
			"best: Shortest 99th percentile of the waits, every client counting alike at 100 clients: b, 400 ms; " +
				"next a, ≥ 2.00 s.",
			func(r *results.Report) { r.Runs[0].Waiting.PerClient.P99 = ns(2e8, true) }, "Shortest", // it may be longer
		},
	} {
		if c.from == nil {
			c.from = func() *results.Report { return even(1) }
		}
		if slices.Contains(told(c.from()), c.want) {
			t.Errorf("%s: it is found before it is there", c.rule)
		}
		r := c.from()
		c.found(r)
		if got := told(r); !slices.Contains(got, c.want) {
			t.Errorf("%s: no %q among\n%s", c.rule, c.want, strings.Join(got, "\n"))
		}
		if c.not == nil {
			continue
		}
		r = c.from()
		c.not(r)
		if c.word == "" {
			c.word, _, _ = strings.Cut(c.want, " ")
		}
		for _, text := range told(r) {
			if strings.Contains(text, c.word) {
				t.Errorf("%s: it is found where it is not: %s", c.rule, text)
			}
		}
	}
}

// TestRates: who is the fastest is not told where the workload sets the pace.
func TestRates(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*workloads.Spec){
		func(w *workloads.Spec) { w.Rate = 300 },
		func(w *workloads.Spec) { w.Burst = 1e8 },
	} {
		r := even(1)
		r.Runs[1].Speed.PerSecond = 1200
		change(&r.Workload)
		for _, text := range told(r) {
			if strings.Contains(text, "throughput") {
				t.Error(text)
			}
		}
	}
}
