package merge

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// generatorFile is a generator's report of spin at two points in one round, its
// clients having had from 30 turns on.
func generatorFile(t *testing.T, name string, number int) File {
	t.Helper()
	start := time.Date(2026, 5, 7, 12, 30, 0, 0, time.UTC).Add(time.Duration(number) * 20 * time.Millisecond)
	r := &results.Report{
		Schema: results.Schema, Started: start, Finished: start.Add(time.Minute), Rounds: 1,
		Tool: results.Tool{Name: "lockbench", Version: "v1"}, Environment: results.Environment{CPUs: number},
		Redis:      results.Redis{Source: "address", Version: "8.0.3"},
		Strategies: []results.Strategy{{Name: "spin", Claims: []string{"exclusion"}, Capacity: 1, Instances: 2}},
		Shared:     &results.Shared{Session: "s", Generator: name, RedisRuns: []string{"redis-1"}},
		Stores:     []results.Store{{Name: "etcd"}},
		Warnings:   []string{"a warning"},
	}
	for _, keys := range []int{1, 4} {
		w := workloads.Default()
		w.Clients, w.Instances, w.Keys, w.Seed = 4, 2, keys, int64(number)
		r.Points = append(r.Points, workloads.Point{Label: fmt.Sprintf("clients=4 keys=%d", keys), Workload: w})
	}
	r.Workload = r.Points[0].Workload
	for i, p := range r.Points {
		run := generatorRun(t, number)
		run.Point, run.Order, run.Started = p.Label, i+1, start.Add(time.Duration(i)*10*time.Second)
		r.Runs = append(r.Runs, run)
	}
	return File{name + ".json", r}
}

// durations are those of each generator: a hundred, as many times as long as its
// number, and one of at least 5 s.
var durations = [3]func() results.Distribution{
	sync.OnceValue(func() results.Distribution { return hundred(1) }),
	sync.OnceValue(func() results.Distribution { return hundred(2) }),
	sync.OnceValue(func() results.Distribution { return hundred(3) }),
}

func hundred(n int64) results.Distribution {
	ended, open := results.NewHistogram(), results.NewHistogram()
	for i := range int64(100) {
		if err := ended.RecordValue((i + 1) * 1e6 * n); err != nil {
			panic(err)
		}
	}
	if err := open.RecordValue(5e9); err != nil {
		panic(err)
	}
	o := results.Observations{Ended: results.Counted(ended), Censored: results.Counted(open)}
	d := results.Describe(o, &results.Bound{NS: 5e9, AtLeast: true})
	d.MeanNS = new(float64(50.5e6 * n))
	return d
}

func generatorRun(t *testing.T, number int) results.Run {
	t.Helper()
	n := int64(number)
	d := durations[n-1]()
	turns := results.NewHistogram()
	for i := range int64(4) {
		if err := turns.RecordValue(30*n + i); err != nil {
			t.Fatal(err)
		}
	}
	run := results.Run{
		Strategy: "spin", Round: 1, Seed: n, WindowNS: 5e9,
		Record: results.Record{
			Clients: 4, Keys: 1, Granted: 100 * n, Attempts: new(100 * n * n), WakeUps: new(int64(0)),
		},
		Speed: results.Speed{Acquisitions: 100 * n, Served: 100 * n, Handoff: d, Hold: d, Release: d},
		Waiting: results.Waiting{
			PerAcquisition: d, PerClient: d, Service: d, Open: n,
		},
		Fairness: results.Fairness{
			AcquisitionsMin: 30 * n, AcquisitionsMax: 30*n + 3, PerClient: results.Counted(turns), Starved: &number,
			LongestWait: &results.Bound{NS: 1e9 * n}, LargestBypass: 7 + n,
			WorkingSet: new(4.0), ReacquireDistance: new(int64(4)), Overtaken: new(50.0),
		},
		Server: results.Server{
			Whole: &results.ServerDelta{Calls: new(int64(99))},
			Window: &results.ServerDelta{
				Seconds: 5, Acquisitions: 100 * n, Calls: new(int64(1203)), Commands: map[string]int64{"set": 1203},
				CPU: new(0.5), IdleCPU: new(0.01 * float64(n)), BytesIn: new(int64(6000)),
				RoundTrips: new(600 * n), ClientBytesOut: new(2000 * n),
			},
			Peak: &results.ServerPeak{Clients: new(10 * n), Subscriptions: new(int64(7)), MemoryBytes: new(int64(1e6))},
		},
		Safety:         results.Safety{Overlaps: n, MaxHolders: number, LostLeases: n},
		Generator:      results.Generator{CPUPercent: 10, SchedulingP99: n, MachineIdle: new(float64(50 * n))},
		TimeAccounting: results.TimeAccounting{Wait: 10, Hold: float64(n), Window: 20, Balanced: true},
		Errors:         []results.ErrorCount{{Error: "x", Count: 1}, {Error: fmt.Sprint("y", n), Count: 5}},
		Labels:         []string{"redis-bound", results.PartOfASession},
	}
	for second := range 5 - number {
		run.Timeline = append(run.Timeline, results.Slice{
			At: float64(second), Seconds: 1, Acquisitions: 20 * n, Waiting: 3, WaitP99: new(int64(1e6 * number)),
			Commands: new(int64(240)), RedisCPU: new(0.1), RoundTrips: new(100 * n),
		})
	}
	if number == 2 {
		run.Safety.LeftoverCount = new(int64(0)) // it was the last
	}
	run.Compute()
	return run
}

func merged(t *testing.T, files ...File) *results.Report {
	t.Helper()
	r, err := Merge(files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMerge adds two generators up by hand, the second of which did everything
// twice as often.
func TestMerge(t *testing.T) {
	t.Parallel()
	r := merged(t, generatorFile(t, "a", 1), generatorFile(t, "b", 2))
	const label = "clients=8 keys=4"
	if w := r.Points[1].Workload; w.Clients != 8 || w.Instances != 4 || w.Keys != 4 ||
		r.Points[1].Label != label || r.Runs[1].Point != label {
		t.Errorf("the second point is %q, %v", r.Points[1].Label, w)
	}
	if g := r.Generators; len(r.Runs) != 2 || len(g) != 2 || g[1].Environment.CPUs != 2 || g[1].Acquisitions != 400 ||
		r.Shared != nil || len(r.Stores) != 1 {
		t.Errorf("%d runs of %v", len(r.Runs), r.Generators)
	}
	if len(r.Warnings) != 2 || !strings.HasPrefix(r.Warnings[1], "merged from 2 generators, a, b: ") {
		t.Errorf("warnings %q", r.Warnings)
	}
	run := r.Runs[0]
	for what, v := range map[string][2]float64{
		"acquisitions":          {float64(run.Speed.Acquisitions), 300},
		"rate":                  {run.Speed.PerSecond, 60},
		"served":                {run.Speed.ServedPerSecond, 60},
		"utilisation":           {run.Speed.Utilisation, 0.6},
		"window":                {float64(run.WindowNS), 5e9},
		"handoffs":              {float64(run.Speed.Handoff.Count), 0},
		"waits":                 {float64(run.Waiting.PerAcquisition.Count), 200},
		"censored waits":        {float64(run.Waiting.PerAcquisition.Censored), 2},
		"mean wait":             {*run.Waiting.PerAcquisition.MeanNS, 75.75e6},
		"open waits":            {float64(run.Waiting.Open), 3},
		"fewest acquisitions":   {float64(run.Fairness.AcquisitionsMin), 30},
		"most turns":            {float64(run.Fairness.AcquisitionsMax), 63},
		"starved":               {float64(*run.Fairness.Starved), 3},
		"longest wait":          {float64(run.Fairness.LongestWait.NS), 2e9},
		"largest bypass":        {float64(run.Fairness.LargestBypass), 9},
		"jain":                  {*run.Fairness.Jain, 372. * 372 / 8 / 19108},
		"gap":                   {*run.Speed.Gap, 5e9/300. - *run.Speed.Hold.MeanNS},
		"calls":                 {float64(*run.Server.Window.Calls), 1203},
		"commands per acq":      {*run.Server.Window.PerAcquisition(run.Server.Window.Calls), 4.01},
		"bytes in":              {float64(*run.Server.Window.BytesIn), 6000},
		"round trips":           {float64(*run.Server.Window.RoundTrips), 1800},
		"bytes out":             {float64(*run.Server.Window.ClientBytesOut), 6000},
		"cpu":                   {*run.Server.Window.CPU, 0.5},
		"idle cpu":              {*run.Server.Window.IdleCPU, 0.02},
		"peak":                  {float64(*run.Server.Peak.Clients), 20},
		"attempts":              {*run.Effort.Attempts, (100*1. + 200*2) / 300},
		"overlaps":              {float64(run.Safety.Overlaps), 3},
		"leases lost":           {float64(run.Safety.LostLeases), 3},
		"left behind":           {float64(*run.Safety.LeftoverCount), 0},
		"generator cpu":         {run.Generator.CPUPercent, 20},
		"idle":                  {*run.Generator.MachineIdle, 50},
		"books":                 {run.TimeAccounting.Window, 40},
		"slices":                {float64(len(run.Timeline)), 3},
		"slice's acquisitions":  {float64(run.Timeline[1].Acquisitions), 60},
		"slice's commands":      {float64(*run.Timeline[1].Commands), 240},
		"slice's Redis CPU":     {*run.Timeline[1].RedisCPU, 0.1},
		"slice's slowest waits": {float64(*run.Timeline[1].WaitP99), 2e6},
	} {
		if math.Abs(v[0]-v[1]) > 1e-9*math.Abs(v[1]) {
			t.Errorf("%s: %v, not %v", what, v[0], v[1])
		}
	}
	// The 101st of 202: 68 of the one, 34 of the other are that short.
	if p50 := run.Waiting.PerAcquisition.P50.NS; p50 < 67e6 || p50 > 69e6 {
		t.Errorf("the median wait is %d ns", p50)
	}
	if f := run.Fairness; f.WorkingSet != nil || f.ReacquireDistance != nil || f.Overtaken != nil ||
		run.Effort.Futile != nil || run.Server.Whole != nil || r.Runs[1].Speed.Gap != nil {
		t.Error("something is told that cannot be known")
	}
	errors := []results.ErrorCount{{Error: "y1", Count: 5}, {Error: "y2", Count: 5}, {Error: "x", Count: 2}}
	if diff := cmp.Diff(errors, run.Errors); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"redis-bound"}, run.Labels); diff != "" {
		t.Error(diff)
	}
	if !run.Valid() {
		t.Errorf("invalid: %v", run.Invalid)
	}
}

// TestOrderDoesNotMatter: whichever file is named first, the report is the same,
// and it can be read again.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, files := range [][]File{
		{generatorFile(t, "a", 1), generatorFile(t, "b", 2), generatorFile(t, "c", 3)},
		{generatorFile(t, "c", 3), generatorFile(t, "a", 1), generatorFile(t, "b", 2)},
	} {
		var document bytes.Buffer
		if err := results.WriteJSON(&document, merged(t, files...)); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, document.String())
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Error(diff)
	}
	if _, err := results.ReadJSON(strings.NewReader(texts[0])); err != nil {
		t.Error(err)
	}
}

// TestRefusals name everything that does not belong together.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*results.Report)
		want   []string
	}{
		"another session": {
			func(r *results.Report) { r.Shared.Session = "other" }, []string{"session: s in a.json, other in b.json"},
		},
		"another Redis": {
			func(r *results.Report) { r.Shared.RedisRuns = []string{"redis-2"} },
			[]string{"Redis: redis-1 in a.json, redis-2 in b.json"},
		},
		"another workload and build": {
			func(r *results.Report) {
				r.Workload.TTL, r.Workload.Hold, r.Tool.Version = 1e9, workloads.Fixed(1e6), "v2"
			},
			[]string{
				"build: v1 in a.json, v2 in b.json", "workload hold: 0s in a.json, 1ms in b.json",
				"workload ttl: 30s in a.json, 1s in b.json",
			},
		},
		"another plan": {
			func(r *results.Report) {
				r.Rounds, r.Strategies = 2, append(r.Strategies, results.Strategy{Name: "fair"})
			},
			[]string{
				"runs of each strategy: 1 in a.json, 2 in b.json", "strategies: spin in a.json, spin,fair in b.json",
			},
		},
		"the same generator": {
			func(r *results.Report) { r.Shared.Generator = "a" },
			[]string{"a.json and b.json are of the same generator, a"},
		},
		"alone": {
			func(r *results.Report) { r.Shared = nil },
			[]string{"b.json was not measured together with others: --session was not given"},
		},
		"merged already": {
			func(r *results.Report) { r.Generators = make([]results.GeneratorPart, 2) },
			[]string{"b.json is merged already: merge all generators' reports at once"},
		},
		"a run less": {
			func(r *results.Report) { r.Runs = r.Runs[:1] },
			[]string{"b.json has no run of spin clients=4 keys=4, round 1"},
		},
		"another time": {func(r *results.Report) {
			for i := range r.Runs {
				r.Runs[i].Started = r.Runs[i].Started.Add(time.Hour)
			}
		}, []string{"no run of theirs was measured at the same time (give all of them the same --start-at)"}},
	} {
		b := generatorFile(t, "b", 2)
		c.change(b.Report)
		_, err := Merge([]File{generatorFile(t, "a", 1), b})
		if diff := cmp.Diff(strings.Join(c.want, "\n"), fmt.Sprint(err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := Merge([]File{generatorFile(t, "a", 1)}); fmt.Sprint(
		err) != "at least two reports are needed, 1 given" {
		t.Error(err)
	}
}

// TestStarvedGenerator has no counters of its own to divide: the others' are everybody's,
// but for what went over its sockets. One that was served and did not read leaves all
// unknown.
func TestStarvedGenerator(t *testing.T) {
	t.Parallel()
	starved := generatorFile(t, "b", 2)
	starved.Runs[0].Server.Window, starved.Runs[0].Speed.Acquisitions = nil, 0
	window := merged(t, generatorFile(t, "a", 1), starved).Runs[0].Server.Window
	if window == nil || window.Acquisitions != 100 || *window.Calls != 1203 || window.RoundTrips != nil ||
		window.ClientBytesOut != nil {
		t.Errorf("beside a starved generator the server's counters are %+v", window)
	}
	starved.Runs[0].Speed.Acquisitions = 1
	if window := merged(t, generatorFile(t, "a", 1), starved).Runs[0].Server.Window; window != nil {
		t.Errorf("without a served generator's reading the server's counters are %+v", window)
	}
}

// TestDoubtful runs are marked and kept.
func TestDoubtful(t *testing.T) {
	t.Parallel()
	b := generatorFile(t, "b", 2)
	b.Runs[0].Started = b.Runs[0].Started.Add(time.Second)
	b.Runs[1].Invalid = []string{"its time accounts do not balance"}
	b.Workload.Seed, b.Points[0].Workload.Seed = 1, 1
	r := merged(t, generatorFile(t, "a", 1), b)
	apart := []string{"its generators' windows were open together for 3.98s of 5s"}
	if diff := cmp.Diff(apart, r.Runs[0].Invalid); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b: its time accounts do not balance"}, r.Runs[1].Invalid); diff != "" {
		t.Error(diff)
	}
	const alike = "a and b drew the same random numbers: give each generator a --seed of its own"
	if last := r.Warnings[len(r.Warnings)-1]; last != alike {
		t.Errorf("the last warning is %q", last)
	}
}

// TestGap is not known if clients do more than to wait for one lock.
func TestGap(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*workloads.Spec){
		"pause":     func(w *workloads.Spec) { w.Think = workloads.Fixed(time.Millisecond) },
		"give up":   func(w *workloads.Spec) { w.Timeout = new(workloads.Duration) },
		"share":     func(w *workloads.Spec) { w.Coalesce = true },
		"end early": func(w *workloads.Spec) { w.Iterations = 1000 },
	} {
		a, b := generatorFile(t, "a", 1), generatorFile(t, "b", 2)
		for _, f := range []File{a, b} {
			for i := range f.Points {
				change(&f.Points[i].Workload)
			}
		}
		if gap := merged(t, a, b).Runs[0].Speed.Gap; gap != nil {
			t.Errorf("clients that %s leave the lock free, and the gap is %v", name, *gap)
		}
	}
}
