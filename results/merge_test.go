package results_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// generatorFile returns the report of generator number: one round of spin at two points. Each client has at least 30
// acquisitions.
func generatorFile(name string, number int) results.Generated {
	start := time.Date(2026, 5, 7, 12, 30, 0, 0, time.UTC).Add(time.Duration(number) * 20 * time.Millisecond)
	r := &results.Report{
		Schema: results.Schema, Started: start, Finished: start.Add(time.Minute), Rounds: 1,
		Tool: results.Tool{Name: "lockbench", Version: "v1"}, Environment: results.Environment{CPUs: number},
		Redis:      results.Redis{Source: "address", Version: "8.0.3"},
		Strategies: []results.Strategy{{Name: "spin", Claims: []string{"exclusion"}, Capacity: 1, Instances: 2}},
		Shared:     &results.Shared{Session: "s", Generator: number, RedisRuns: []string{"redis-1"}},
		Stores:     []results.Store{{Name: "etcd"}},
		Warnings:   results.PlainTexts("a warning"),
	}
	for _, keys := range []int{1, 4} {
		w := workloads.Default()
		w.Clients, w.Instances, w.Keys, w.Seed = 4, 2, keys, int64(number)
		r.Points = append(r.Points, workloads.Point{Label: fmt.Sprintf("clients=4 keys=%d", keys), Workload: w})
	}
	r.Workload = r.Points[0].Workload
	for i, p := range r.Points {
		run := generatorRun(number)
		run.Point, run.Order, run.Started = p.Label, i+1, start.Add(time.Duration(i)*10*time.Second)
		r.Runs = append(r.Runs, run)
	}
	return results.Generated{Name: name, Report: r}
}

// hundred returns the distribution of a hundred durations, from n ms to 100·n ms, and one that is at least 5 s.
func hundred(n int64) results.Distribution {
	o := results.Observations{Open: results.Histogram{{To: 5e9, Count: 1}}}
	for i := range int64(100) {
		o.Ended = append(o.Ended, results.Bin{To: (i + 1) * 1e6 * n, Count: 1})
	}
	d := results.Describe(o, &results.Bound{NS: 5e9, AtLeast: true})
	d.MeanNS = new(float64(50.5e6 * n))
	return d
}

func generatorRun(number int) results.Run {
	n := int64(number)
	d, turns := hundred(n), results.Histogram{}
	for i := range int64(4) {
		turns = append(turns, results.Bin{To: 30*n + i, Count: 1})
	}
	run := results.Run{
		Strategy: "spin", Round: 1, Seed: n, WindowNS: 5e9,
		Record: results.Record{
			Clients: 4, Keys: 1, Granted: 100 * n, Attempts: new(100 * n * n), WakeUps: new(int64(0)), WithoutTurn: &n,
		},
		Speed: results.Speed{Acquisitions: 100 * n, Served: 100 * n, Handoff: d, Hold: d, Release: d},
		Waiting: results.Waiting{
			PerAcquisition: d, PerClient: d, Service: d, Open: n,
		},
		Fairness: results.Fairness{
			AcquisitionsMin: 30 * n, AcquisitionsMax: 30*n + 3, PerClient: turns,
			LongestWait: &results.Bound{NS: 1e9 * n}, LargestBypass: new(7 + n),
			WorkingSet: new(4.0), ReacquireDistance: new(int64(4)), Overtaken: new(50.0),
		},
		Server: results.Server{
			Whole: &results.ServerDelta{Calls: new(int64(99))},
			Window: &results.ServerDelta{
				Seconds: 5, Acquisitions: 100 * n, Calls: new(int64(1203)),
				Commands: map[string]int64{"set": 1200, "client": 2, "info": 1}, // with the readings of the other
				Own: &results.ObserverCounts{
					Commands: map[string]int64{"client|list": 2, "info": 1}, BytesOut: 3000, BytesIn: 100,
				},
				CPU: new(0.5), IdleCPU: new(0.01 * float64(n)), BytesIn: new(int64(6000)),
				RoundTrips: new(600 * n), ClientBytesOut: new(2000 * n),
			},
			Peak: &results.ServerPeak{Clients: new(10 * n), Subscriptions: new(int64(7)), MemoryBytes: new(int64(1e6))},
		},
		Safety:         results.Safety{Overlaps: n, MaxHolders: number, LostLeases: n},
		Generator:      results.Generator{CPUPercent: 10, SchedulingP99: n, MachineIdle: new(float64(50 * n))},
		TimeAccounting: results.TimeAccounting{Wait: 10, Hold: float64(n), Window: 20, Balanced: true},
		Errors:         []results.ErrorCount{{Error: "x", Count: 1}, {Error: fmt.Sprint("y", n), Count: 5}},
		Labels:         results.Remarks{results.RedisBound.Remark(), results.PartOfASession.Remark()},
	}
	if number == 2 {
		run.Safety.LeftoverCount = new(int64(0)) // it was the last
	}
	run.Compute()
	return run
}

func merged(t *testing.T, files ...results.Generated) *results.Report {
	t.Helper()
	r, err := results.Merge(files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMerge merges the reports of two generators, of which the second did everything twice as often as the first. It
// compares the figures with those of the golden file, which were computed by hand.
func TestMerge(t *testing.T) {
	t.Parallel()
	r := merged(t, generatorFile("a", 1), generatorFile("b", 2))
	if g := r.Generators; len(g) != 2 || g[1].Environment.CPUs != 2 || g[1].Acquisitions != 400 || r.Shared != nil {
		t.Errorf("merged of %+v", r.Generators)
	}
	var text strings.Builder
	for _, p := range r.Points {
		fmt.Fprintf(&text, "%s: %s\n", p.Label, p.Workload.Describe())
	}
	for _, warning := range r.Warnings {
		fmt.Fprintln(&text, warning)
	}
	for _, run := range r.Runs {
		fmt.Fprintf(&text, "\n%s, window %v, invalid %q, labels %q, errors %v\n", run.Title(),
			time.Duration(run.WindowNS), run.Invalid, run.Labels, run.Errors)
		for _, m := range results.Metrics() {
			fmt.Fprintf(&text, "%s %s\n", m.Name, m.Of(run).Text(m.Unit))
		}
		fmt.Fprintf(&text, "generator CPU %v, idle %v, accounts %+v\n", run.Generator.CPUPercent,
			*run.Generator.MachineIdle, run.TimeAccounting)
	}
	golden.Compare(t, "testdata/merged.golden", text.String())
}

func TestMergedReportCanBeRead(t *testing.T) {
	t.Parallel()
	var document bytes.Buffer
	if err := results.WriteJSON(&document, merged(t, generatorFile("a", 1), generatorFile("b", 2))); err != nil {
		t.Fatal(err)
	}
	if _, err := results.ReadJSON(&document); err != nil {
		t.Error(err)
	}
}

// TestMissingRecord checks that a run is invalid if a generator has no record of it, and that the reason names that
// generator.
func TestMissingRecord(t *testing.T) {
	t.Parallel()
	a, b := generatorFile("a", 1), generatorFile("b", 2)
	b.Runs, b.Missing = b.Runs[:1], "died"
	for i := range a.Runs { // the increments of b are not known
		a.Runs[i].Record.Generators, a.Runs[i].Record.Increments, a.Runs[i].Record.Counted = 2, new(int64(300)),
			new(int64(300))
	}
	r := merged(t, a, b, results.Generated{Name: "c", Missing: "was stopped"})
	want := [][]string{{"c was stopped"}, {"b died", "c was stopped"}}
	for i, run := range r.Runs {
		if diff := cmp.Diff(want[i], run.Invalid.Texts()); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", i, diff)
		}
		if lost := run.Safety.LostUpdates; lost != nil || run.Record.Generators != 3 {
			t.Errorf("run %d: %v updates lost, although increments are missing of %d", i, lost, run.Record.Generators)
		}
	}
	if len(r.Runs) != 2 || r.Error != "b died; c was stopped" || len(r.Generators) != 2 {
		t.Errorf("%d runs, %q, %+v", len(r.Runs), r.Error, r.Generators)
	}
	if _, err := results.Merge([]results.Generated{{Name: "a"}, {Name: "b"}}); err == nil {
		t.Error("there is a report of nothing")
	}
}

// TestStarvedGenerator checks that a generator without acquisitions needs no counts of the servers, because the counts
// of the other generators include its commands. Only the counts taken at its own sockets must become unknown. If a
// generator with acquisitions has no counts of the servers, the merged counts must be unknown.
func TestStarvedGenerator(t *testing.T) {
	t.Parallel()
	starved := generatorFile("b", 2)
	starved.Runs[0].Server.Window, starved.Runs[0].Speed.Acquisitions = nil, 0
	window := merged(t, generatorFile("a", 1), starved).Runs[0].Server.Window
	if window == nil || window.Acquisitions != 100 || *window.Calls != 1203 || window.RoundTrips != nil ||
		window.ClientBytesOut != nil {
		t.Errorf("with a starved generator the server's counters are %+v", window)
	}
	starved.Runs[0].Speed.Acquisitions = 1
	if window := merged(t, generatorFile("a", 1), starved).Runs[0].Server.Window; window != nil {
		t.Errorf("without a served generator's reading the server's counters are %+v", window)
	}
}

// TestStarved checks that starvation is decided from the totals of all generators, even if one generator alone has too
// few acquisitions to decide. If the totals are too small as well, a label must state them.
func TestStarved(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		served int64 // by a; b served 3 for its 4 clients
		want   string
	}{
		{13, "starved 3, "},
		{12, "starved –, window too short for one fair round: 15 acquisitions for 8 clients; --duration 6s is long enough"},
	} {
		a, b := generatorFile("a", 1), generatorFile("b", 2)
		for _, part := range []struct {
			*results.Run
			served int64
		}{{&a.Runs[0], test.served}, {&b.Runs[0], 3}} {
			part.Speed.Served, part.Labels = part.served, nil
			part.Compute()
			part.Labels = part.ShortOfARound()
		}
		if b.Runs[0].Fairness.Starved != nil || len(b.Runs[0].Labels) != 1 {
			t.Fatalf("b alone decides who starved, and has labels %q", b.Runs[0].Labels)
		}
		run, starved := merged(t, a, b).Runs[0], "–"
		if n := run.Fairness.Starved; n != nil {
			starved = fmt.Sprint(*n)
		}
		if got := fmt.Sprintf("starved %s, %v", starved, run.Labels); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}

// TestDoubtful checks two cases in which Merge must keep a merged run but mark it as invalid: the generators' windows
// do not overlap enough, or the run of one generator is invalid.
func TestDoubtful(t *testing.T) {
	t.Parallel()
	b := generatorFile("b", 2)
	b.Runs[0].Started = b.Runs[0].Started.Add(time.Second)
	b.Runs[1].Invalid = results.PlainTexts("its time accounts do not balance")
	r := merged(t, generatorFile("a", 1), b)
	apart := []string{"its generators' windows were open together for 3.98s of 5s"}
	if diff := cmp.Diff(apart, r.Runs[0].Invalid.Texts()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b: its time accounts do not balance"}, r.Runs[1].Invalid.Texts()); diff != "" {
		t.Error(diff)
	}
}

// TestLabelsOfSomeGenerators checks the labels of a merged run. A label of a single generator must name that generator.
// A label of several generators, but not of all, must state their number.
func TestLabelsOfSomeGenerators(t *testing.T) {
	t.Parallel()
	a, b, c := generatorFile("generator 0", 1), generatorFile("generator 1", 2), generatorFile("generator 2", 3)
	a.Runs[0].Labels = results.Remarks{results.RedisBound.Remark(), results.PartOfASession.Remark()}
	b.Runs[0].Labels = results.Remarks{
		results.OtherCPU.Remark(results.Measured(12, "%.0f%%")), results.RedisBound.Remark(), results.BusyMachine.Remark(),
	}
	c.Runs[0].Labels = results.Remarks{results.BusyMachine.Remark(), results.RedisBound.Remark()}
	run := merged(t, a, b, c).Runs[0]
	want := []string{"redis-bound", "other CPU 12% in generator 1", "busy machine in 2 of 3 generators"}
	if diff := cmp.Diff(want, run.Labels.Texts()); diff != "" || !run.MachineBound() {
		t.Errorf("machine-bound %v, %s", run.MachineBound(), diff)
	}
	b.Runs[0].Labels, c.Runs[0].Labels = nil, results.Remarks{results.BusyMachine.Remark()}
	if run = merged(t, a, b, c).Runs[0]; !run.MachineBound() {
		t.Errorf("nothing of %q limited the speed", run.Labels)
	}
}

// TestOrderOfNodes checks that generators may list the same nodes in different orders. If one generator used another
// node, the merged run must be invalid.
func TestOrderOfNodes(t *testing.T) {
	t.Parallel()
	a, b := generatorFile("a", 1), generatorFile("b", 2)
	a.Shared.RedisRuns, b.Shared.RedisRuns = []string{"1", "2", "3"}, []string{"3", "1", "2"}
	if run := merged(t, a, b).Runs[0]; !run.Valid() {
		t.Error(run.Invalid)
	}
	b.Shared.RedisRuns[0] = "4"
	for _, part := range []results.Generated{a, b} {
		part.Runs[0].Record.Generators, part.Runs[0].Record.Leases = 1, leases([4]int64{0, 0, 1e6})
	}
	if run := merged(t, a, b).Runs[0]; run.Valid() || run.Safety.Broken != nil {
		t.Errorf("a generator measured another node: the run is valid or not %q, and broke %q", run.Invalid,
			run.Safety.Broken)
	}
}

// TestGap checks that the gap is unknown if clients do not always wait for the lock, for example because they pause or
// give up, or if the lock does not claim exclusion.
func TestGap(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*workloads.Spec, *results.Strategy){
		"pause":     func(w *workloads.Spec, _ *results.Strategy) { w.Think = workloads.Fixed(time.Millisecond) },
		"give up":   func(w *workloads.Spec, _ *results.Strategy) { w.Timeout = new(workloads.Duration) },
		"share":     func(w *workloads.Spec, _ *results.Strategy) { w.Coalesce = true },
		"end early": func(w *workloads.Spec, _ *results.Strategy) { w.Iterations = 1000 },
		"hold it":   func(_ *workloads.Spec, s *results.Strategy) { s.Claims = nil },
	} {
		a, b := generatorFile("a", 1), generatorFile("b", 2)
		for _, f := range []results.Generated{a, b} {
			for i := range f.Points {
				change(&f.Points[i].Workload, &f.Strategies[0])
			}
		}
		if gap := merged(t, a, b).Runs[0].Speed.Gap; gap != nil {
			t.Errorf("clients that %s leave the lock free, and the gap is %v", name, *gap)
		}
	}
}

// leases packs the leases of a generator. Each argument is a lease: its key, its start and end in µs, and its token.
// Token 0 means that the lease has none.
func leases(all ...[4]int64) results.Leases {
	packed, last := results.Leases{}, results.Lease{}
	for _, l := range all {
		next := results.Lease{Key: int(l[0]), From: l[1], Until: l[2], Fenced: l[3] > 0, Token: l[3]}
		packed, last = packed.Append(last, next), next
	}
	return packed
}

// TestLeasesOfGenerators checks that an overlap of leases of two generators counts only if it is certain. The
// uncertainty of each clock is 40 µs, and the generators' windows open 20 ms apart.
func TestLeasesOfGenerators(t *testing.T) {
	t.Parallel()
	own := generatorRun(1).Safety.Plus(generatorRun(2).Safety)
	type found struct{ overlaps, holders, tokens, us int64 }
	none := found{holders: 2}
	for name, c := range map[string]struct {
		a, b     results.Leases
		capacity int
		want     found
		why      string
	}{
		"one after the other": {leases([4]int64{0, 20000, 21000, 1}), leases([4]int64{0, 1000, 2000, 2}), 1, none, ""},
		"perhaps together":    {leases([4]int64{0, 20000, 21086}), leases([4]int64{0, 1000, 2000}), 1, none, ""},
		"together": {
			leases([4]int64{0, 20000, 21087}), leases([4]int64{0, 1000, 2000}), 1, found{1, 2, 0, 1}, "",
		},
		"other keys": {leases([4]int64{0, 20000, 29000}), leases([4]int64{1, 1000, 2000}), 1, none, ""},
		"three, of which each overlaps the last": {
			leases([4]int64{0, 20000, 25000}, [4]int64{0, 28000, 35000}), leases([4]int64{0, 3000, 9000}), 1,
			found{2, 2, 0, 3000 - 4*43},
			"",
		},
		"as many as may": {
			leases([4]int64{0, 20000, 25000}, [4]int64{0, 20000, 25000}), leases([4]int64{0, 0, 5000}), 3,
			found{holders: 3},
			"",
		},
		"one more than may": {
			leases([4]int64{0, 20000, 25000}, [4]int64{0, 20000, 25000}), leases([4]int64{0, 1000, 4000}), 2,
			found{1, 3, 0, 3000 - 2*43},
			"",
		},
		"two of one generator, which it has counted": {
			leases([4]int64{0, 20000, 25000}, [4]int64{0, 21000, 25000}), leases([4]int64{0, 9000, 9900}), 1, none, "",
		},
		"a token of both": {
			leases([4]int64{0, 20000, 21000, 7}), leases([4]int64{0, 1500, 2000, 7}), 1, found{0, 2, 1, 0}, "",
		},
		"a token that went back": {
			leases([4]int64{0, 20000, 21000, 7}), leases([4]int64{0, 1500, 2000, 6}), 1, found{0, 2, 1, 0}, "",
		},
		"a token of another key": {
			leases([4]int64{0, 20000, 21000, 7}), leases([4]int64{1, 1500, 2000, 7}), 1, none, "",
		},
		"a token that came too late": {
			leases([4]int64{0, 20000, 21000, 7}), leases([4]int64{0, 9000, -100, 6}, [4]int64{0, 5000, 6000, 8}),
			1, none, "",
		},
		"tokens in perhaps the other order": {
			leases([4]int64{0, 20000, 21000, 7}), leases([4]int64{0, 1085, 2000, 6}), 1, none, "",
		},
		"short holds": {
			leases([4]int64{0, 20000, 20086}), leases([4]int64{0, 1500, 1586}), 1, none, "holds are shorter",
		},
		"short holds, and a long one together with another": {
			leases([4]int64{0, 20000, 21000}, [4]int64{0, 22000, 22001}, [4]int64{0, 22001, 22002}),
			leases([4]int64{0, 0, 900}, [4]int64{0, 2010, 2011}), 1,
			found{1, 2, 0, 900 - 2*43},
			"holds are shorter",
		},
		"short holds of one generator": {
			leases([4]int64{0, 20000, 20001}), leases([4]int64{0, 1500, 1900}, [4]int64{0, 1900, 2900}), 1, none,
			"holds are shorter",
		},
		"not recorded": {leases([4]int64{0, 20000, 21000}), nil, 1, none, "not all leases are known"},
		"damaged":      {leases([4]int64{0, 20000, 21000}), results.Leases{0, 0xff}, 1, none, "damaged"},
		"no limit":     {leases([4]int64{0, 20000, 29000}), leases([4]int64{0, 1500, 2000}), 0, none, "any number"},
		"none at all":  {results.Leases{}, results.Leases{}, 1, none, ""},
	} {
		a, b := generatorFile("a", 1), generatorFile("b", 2)
		a.Runs, b.Runs = a.Runs[:1], b.Runs[:1]
		for _, part := range []struct {
			results.Generated
			results.Leases
		}{{a, c.a}, {b, c.b}} {
			part.Strategies[0].Capacity = c.capacity
			record := &part.Runs[0].Record
			record.Generators, record.Leases, record.UncertaintyNS = 1, part.Leases, 40e3
			part.Runs[0].Safety.FencedLeases = 1
		}
		sum := merged(t, a, b)
		run := sum.Runs[0]
		got := found{
			run.Safety.Overlaps - own.Overlaps, int64(run.Safety.MaxHolders), run.Safety.FencingRegression,
			run.Safety.OverlapNS / 1000,
		}
		why := sum.Warnings.String()
		if got != c.want || run.Record.Compared != (c.why == "") || run.Record.Leases != nil ||
			strings.Contains(why, "spin: ") != (c.why != "") || !strings.Contains(why, c.why) {
			t.Errorf("%s: %+v, want %+v; %q", name, got, c.want, why)
		}
		verdict := "held"
		switch {
		case got.overlaps > 0:
			verdict = "BROKEN: exclusion"
		case c.why != "":
			verdict = "held by each"
		}
		if got := sum.Summaries()[0].Verdict(); got != verdict {
			t.Errorf("%s: the verdict is %s, not %s", name, got, verdict)
		}
	}
}

// withToken is a lease whose fencing token is its own value.
type withToken int64

func (withToken) Release(context.Context) error { return nil }
func (t withToken) FencingToken() int64         { return int64(t) }

// TestBrokenTokensAreCountedOnce plants tokens that are not larger than an earlier token of the same key. Clients of
// three generators hold the lock in turn, and each generator audits only its own clients. The merged report must count
// each planted token exactly once.
func TestBrokenTokensAreCountedOnce(t *testing.T) {
	t.Parallel()
	const planted, all = 28, 400
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		broken := map[int]bool{}
		for _, i := range random.Perm(all - 1)[:planted] {
			broken[i+1] = true
		}
		var parts []results.Generated
		var keys []*measure.Key
		var recorded []*measure.Leases
		for i := range 3 {
			part := generatorFile(fmt.Sprint("generator ", i), 1)
			part.Strategies[0].Claims, part.Runs = append(part.Strategies[0].Claims, "fencing"), part.Runs[:1]
			window := measure.NewWindow(measure.NewClock(), 0)
			window.Plan(0, int64(time.Hour))
			key, leases := measure.NewKey(window, 1, time.Minute, 0), &measure.Leases{}
			key.Follow(leases, 0)
			parts, keys, recorded = append(parts, part), append(keys, key), append(recorded, leases)
		}
		for i, newest := 0, int64(1000); i < all; i++ {
			token := newest + 1
			if broken[i] { // the same again, or an earlier one
				token = newest - random.Int64N(3)
			}
			newest = max(newest, token)
			from := int64(i+1) * int64(time.Millisecond)
			key, w := keys[random.IntN(3)], measure.NewWaiter(0)
			key.Arrive(w, from, from)
			key.Enter(w, from, withToken(token))
			key.Exit(w, from+int64(600*time.Microsecond))
		}
		for i := range parts {
			run := &parts[i].Runs[0]
			run.Safety = measure.Audit(keys[i : i+1])
			run.Record.Generators, run.Record.Leases, run.Record.UncertaintyNS = 1, recorded[i].Packed(), 40e3
		}
		run := merged(t, parts...).Runs[0]
		if n := run.Safety.FencingRegression; n != planted {
			t.Errorf("seed %d: %d broken tokens, of %d planted", seed, n, planted)
		}
	}
}

// TestShiftedWindows merges generators whose windows open at different times. A label must state the common part of the
// windows, unless that is nearly the whole window or so short that the run is invalid.
func TestShiftedWindows(t *testing.T) {
	t.Parallel()
	for shift, want := range map[time.Duration]string{
		20 * time.Millisecond:  "",
		200 * time.Millisecond: "96.0% of the generators' windows in common",
		time.Second:            "",
	} {
		a, b := generatorFile("a", 1), generatorFile("b", 2)
		b.Runs[0].Started = a.Runs[0].Started.Add(shift)
		run := merged(t, a, b).Runs[0]
		if got := run.Labels.String(); strings.Contains(got, "in common") != (want != "") ||
			!strings.Contains(got, want) || run.Valid() != (shift < time.Second) {
			t.Errorf("%v apart of 5 s: labels %q, invalid %q", shift, got, run.Invalid)
		}
	}
}

// TestLeftoversOfLostGenerator loses a generator, whose clients could not release their locks. The report must not
// blame the strategy for the keys that are left.
func TestLeftoversOfLostGenerator(t *testing.T) {
	t.Parallel()
	a, b := generatorFile("a", 1), generatorFile("b", 2)
	for i := range a.Runs {
		a.Runs[i].Safety.LeftoverCount, a.Runs[i].Safety.Leftovers = new(int64(1)), []string{"key x"}
		b.Runs[i].Safety.LeftoverCount = nil
	}
	b.Runs, b.Missing = b.Runs[:1], "died"
	for i, want := range []*int64{new(int64(1)), nil} {
		if got := merged(t, a, b).Runs[i].Safety; !cmp.Equal(got.LeftoverCount, want) ||
			(got.Leftovers != nil) != (want != nil) {
			t.Errorf("run %d, which b recorded: %v: left %v", i, i == 0, got.Leftovers)
		}
	}
}
