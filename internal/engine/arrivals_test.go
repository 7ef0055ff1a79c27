package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

func TestArrivalsKeepTheirRate(t *testing.T) {
	for _, kind := range []workloads.Arrivals{workloads.ArrivalsConstant, workloads.ArrivalsPoisson} {
		w := workloads.Default()
		w.Rate, w.Arrivals = 3000, kind // the gap is not a whole number of nanoseconds
		a, again := newArrivals(w, 1000, 1000, 7), newArrivals(w, 1000, 1000, 7)
		const n = 300_000
		var last, previous int64
		var squares float64
		for range n {
			last = a.take()
			if last != again.take() {
				t.Fatal("the same seed gave other arrivals")
			}
			if previous > 0 {
				squares += math.Pow(float64(last-previous), 2)
			}
			previous = last
		}
		mean := float64(last-1000) / (n - 1)
		if off := math.Abs(mean*3000/1e9 - 1); off > 0.01 {
			t.Errorf("%s: mean gap %.0f ns", kind, mean)
		}
		// The coefficient of variation is 0 for constant gaps and 1 for exponential gaps.
		variation := math.Sqrt(max(0, squares/(n-2)-mean*mean)) / mean
		if want := map[workloads.Arrivals]float64{workloads.ArrivalsPoisson: 1}[kind]; math.Abs(variation-want) > 0.02 {
			t.Errorf("%s: variation %.3f, want %g", kind, variation, want)
		}
	}
	if newArrivals(workloads.Default(), 0, 0, 1) != nil {
		t.Error("a closed loop has arrivals")
	}
}

func trace(t *testing.T, lines string) workloads.Arrivals {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.csv")
	if err := os.WriteFile(file, []byte(workloads.TraceHeader+"\n"+lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var a workloads.Arrivals
	if err := errors.Join(a.UnmarshalText([]byte("file:"+file)), a.Load()); err != nil {
		t.Fatal(err)
	}
	return a
}

// The trace begins when the window opens, and repeats. The warm-up replays the end of the trace. A higher rate must
// shorten the gaps but not the holds.
func TestTraceRepeats(t *testing.T) {
	w := workloads.Default()
	w.Arrivals = trace(t, "0.001,a,5ms\n0.002,b,\n0.005,a,0s\n") // three arrivals in 7 ms, so 428.6/s
	for _, test := range []struct {
		faster workloads.Rate
		open   time.Duration
		want   []string
	}{
		{1, 12 * time.Millisecond, []string{
			"7ms b -1ns", "10ms a 0s", "13ms a 5ms", "14ms b -1ns", "17ms a 0s", "20ms a 5ms", "21ms b -1ns",
		}},
		{2, 8500 * time.Microsecond, []string{"7.5ms a 0s", "9ms a 5ms", "9.5ms b -1ns", "11ms a 0s", "12.5ms a 5ms"}},
	} {
		w.Rate = test.faster * w.Arrivals.Trace().Rate()
		a := newArrivals(w, int64(6500*time.Microsecond), int64(test.open), 1)
		var got []string
		for range test.want {
			next := a.arrive()
			got = append(got, fmt.Sprintf("%v %c %v", time.Duration(next.due).Round(time.Microsecond),
				'a'+next.traced.Key, next.traced.Hold))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("at %v (-want +got):\n%s", w.Rate, diff)
		}
	}
}

func TestBacklogCountsDueArrivals(t *testing.T) {
	w := workloads.Default()
	w.Rate, w.Arrivals = 1000, workloads.ArrivalsConstant
	a := newArrivals(w, 0, 0, 1)
	a.take()
	if got, want := slices.Collect(a.backlog(int64(3500*time.Microsecond))),
		[]int64{1e6, 2e6, 3e6}; !slices.Equal(got, want) {
		t.Errorf("backlog %v, want %v", got, want)
	}
}

// The stages end at rate 0. The last rate continues for ever, so there must be no further arrivals.
func TestNoArrivalsAfterZeroRate(t *testing.T) {
	w := workloads.Default()
	w.Rate, w.Arrivals, w.Stages = 512, workloads.ArrivalsConstant, stages(t, "4ms:512/s 1ms:0/s")
	a := newArrivals(w, 0, 0, 1)
	var got []int64
	for at := range a.backlog(math.MaxInt64 / 4) {
		if got = append(got, at); len(got) > 9 {
			break
		}
	}
	alike := func(a, b int64) bool { return b-1 <= a && a <= b } // starts are whole nanoseconds
	if want := []int64{0, 1953125, 3906250}; !slices.EqualFunc(got, want, alike) {
		t.Errorf("starts %v, want %v", got, want)
	}
}

func TestOpenLoopOffersItsRate(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	run := do(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Rate, w.Hold = 50, 1000, workloads.Dist{}
		w.Duration = workloads.Duration(time.Second)
	}))
	if !run.TimeAccounting.Balanced {
		t.Errorf("books %+v", run.TimeAccounting)
	}
	if !run.Valid() || run.Generator.LateStarts > 0 || run.Generator.Starts < 900 {
		t.Errorf("%d of %d starts late, invalid %v", run.Generator.LateStarts, run.Generator.Starts, run.Invalid)
	}
	if math.Abs(run.Speed.PerSecond-1000) > 150 {
		t.Errorf("%.0f acquisitions a second, 1000 were offered", run.Speed.PerSecond)
	}
	if run.Waiting.Service.Count != run.Speed.Acquisitions {
		t.Errorf("%d service times for %d acquisitions", run.Waiting.Service.Count, run.Speed.Acquisitions)
	}
}

// A lock whose holds take 10 ms cannot serve 500 arrivals per second. The lock and not the generator is too slow, so
// the run must be valid.
func TestOverloadedLockIsValid(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	run := do(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Rate, w.Hold = 10, 500, workloads.Fixed(10*time.Millisecond)
		w.Duration = workloads.Duration(time.Second)
	}))
	// The run may be invalid only if a busy machine delayed the generator's goroutines.
	if hurried := run.Generator.SchedulingP99 > int64(hardlyRuns); run.Valid() == hurried {
		t.Errorf("invalid %v, goroutines waited %v to run", run.Invalid, time.Duration(run.Generator.SchedulingP99))
	}
	if !slices.Contains(run.Labels.Texts(), "overloaded: at 500/s too many arrivals found all 10 clients waiting") {
		t.Errorf("labels %v", run.Labels)
	}
	if run.Waiting.Backlog == 0 || run.Generator.BehindStarts == 0 {
		t.Errorf("backlog %d, behind %d", run.Waiting.Backlog, run.Generator.BehindStarts)
	}
	// Arrivals that find all clients busy wait too. The backlog grows for the whole second, so the median wait must exceed
	// 300 ms.
	if p := run.Waiting.PerAcquisition.P50; p == nil || time.Duration(p.NS) < 300*time.Millisecond {
		t.Errorf("p50 %+v", p)
	}
}

// The lock has a slot for every client, so only the generator delays clients. This delay must count as the generator's
// lateness and not as a wait for the lock.
func TestGeneratorLatenessIsNotAWait(t *testing.T) {
	v := lock(t, strategies.Info{}, 1000, wait)
	run := runInRealTime(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Rate, w.Hold = 50, 200, workloads.Dist{}
		// The window is so long that a stall of the machine for half a second does not change the median.
		w.Duration = workloads.Duration(2 * time.Second)
	}))
	wait, service, late := run.Waiting.PerAcquisition.P50, run.Waiting.Service.P50, run.Waiting.Lateness
	if late.P50 == nil || late.Count < run.Speed.Acquisitions/2 {
		t.Fatalf("%d starts made late, by %v in the median, of %d", late.Count, late.P50, run.Speed.Acquisitions)
	}
	// Even on a busy machine, the medians wait and service differ by only a few microseconds. If wait included the
	// lateness, it would be many times larger than service.
	if wait == nil || service == nil || wait.NS > 2*service.NS && 2*wait.NS > late.P50.NS {
		t.Errorf("no client had to wait, and the median wait is %v, from the start of Acquire %v; starts were made %v late",
			wait, service, late.P50)
	}
}

// Each client uses 1 ms of CPU time per acquisition, and the requested rate is 100,000 per second. The generator cannot
// start that many, so the run must be invalid.
func TestSaturatedGeneratorIsInvalid(t *testing.T) {
	v := lock(t, strategies.Info{}, 200, func(ctx context.Context, slots chan struct{}) (strategies.Lease, error) {
		// Yield, as a client does when it sends a command. Without yielding, no goroutine would wait for a processor, and the
		// scheduler would report no latency.
		runtime.Gosched()
		for start := time.Now(); time.Since(start) < time.Millisecond; { // the client's own CPU
		}
		return wait(ctx, slots)
	})
	run := runInRealTime(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Rate, w.Hold, w.Duration = 200, 100_000, workloads.Dist{}, workloads.Duration(700*time.Millisecond)
	}))
	if run.Valid() {
		t.Errorf("valid: %d of 70,000 acquisitions, %+v", run.Speed.Acquisitions, run.Generator)
	}
}

func stages(t *testing.T, text string) workloads.Stages {
	t.Helper()
	var all workloads.Stages
	for word := range strings.FieldsSeq(text) {
		var s workloads.Stage
		if err := s.UnmarshalText([]byte(word)); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// The expected number of arrivals between two instants is the area under the rate curve.
func TestStageRates(t *testing.T) {
	const open = 5e9
	s := pacer{100, stages(t, "1s:100/s 2s:300/s 1s:0/s 1s:0/s 1s:200/s"), open}
	for _, test := range []struct{ at, arrivals, want float64 }{
		{-1, 50, -0.5},
		{-1, 150, 0.5},
		{0, 100, 1},
		{0, 100 + 400, 3},
		{0, 100 + 400 + 150, 4},     // no arrival in the fifth second
		{4, 1, 5.1},                 // 200·t²/2 = 1
		{0, 650 + 100 + 200*3, 9.0}, // the last rate continues
	} {
		got := (s.pace(open+test.at*1e9, test.arrivals) - open) / 1e9
		if math.Abs(got-test.want) > 1e-6 {
			t.Errorf("%g arrivals after %g s: at %g s, want %g", test.arrivals, test.at, got, test.want)
		}
	}
	if at := (pacer{5, stages(t, "1s:5/s 1s:0/s"), open}).pace(open+2e9, 1); !math.IsInf(at, 1) {
		t.Errorf("an arrival after the last, at %g", at)
	}
}

func TestStageLoads(t *testing.T) {
	s := stages(t, "10s:10 10s:110 10s:110 10s:10")
	for _, test := range []struct {
		at    time.Duration
		n     float64
		want  time.Duration
		never bool
	}{
		{at: -time.Second, n: 10, want: 0},
		{at: 3 * time.Second, n: 10, want: 3 * time.Second},
		{at: 0, n: 60, want: 15 * time.Second},
		{at: 0, n: 110, want: 20 * time.Second},
		{at: 25 * time.Second, n: 110, want: 25 * time.Second},
		{at: 36 * time.Second, n: 60, never: true},
		{at: 0, n: 111, never: true},
		{at: time.Hour, n: 10, want: time.Hour},
	} {
		at, ever := reach(s, test.at, test.n)
		if ever == test.never || ever && (at-test.want).Abs() > time.Microsecond {
			t.Errorf("from %v on %g is reached at %v, %v; want %v", test.at, test.n, at, ever, test.want)
		}
	}
}

func TestStagesLimitClients(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	second := func(target float64) workloads.Stage {
		return workloads.Stage{Duration: workloads.Duration(100 * time.Millisecond), Target: target}
	}
	run := do(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Stages, w.Duration = 3, workloads.Stages{second(1), second(2)},
			workloads.Duration(200*time.Millisecond)
	}))
	if run.Fairness.AcquisitionsMin != 0 || run.Fairness.AcquisitionsMax == 0 || run.Fairness.Jain != nil ||
		run.Fairness.Starved != nil {
		t.Errorf("the third client was never wanted, the first always: %+v", run.Fairness)
	}
	if !run.TimeAccounting.Balanced {
		t.Errorf("the time accounts do not balance: %+v", run.TimeAccounting)
	}
}

// spec returns the default workload with the given options, which are separated by spaces, such as "rate=1000/s
// clients=2".
func spec(t *testing.T, options string) workloads.Spec {
	t.Helper()
	var draft workloads.Draft
	for option := range strings.FieldsSeq(options) {
		name, value, _ := strings.Cut(option, "=")
		if err := draft.Give(name, value); err != nil {
			t.Fatal(err)
		}
	}
	points, err := draft.Points()
	if err != nil {
		t.Fatal(err)
	}
	return points[0].Workload
}

// A seed determines the sequence of keys, holds and arrivals, in this version of lockbench and in later ones. The seed
// in a report therefore reproduces the load of its runs. The window opens one second after the clients begin.
func TestSeedDeterminesSequence(t *testing.T) {
	const draws = "clients=2 keys=16 key-dist=zipf:0.99 hold=lognormal:2ms,0.8 think=exp:1ms seed=42 "
	w := spec(t, draws+"rate=1000/s")
	var drawn strings.Builder
	chooser := w.KeyDist.Over(w.Keys)
	for id := range w.Clients {
		random := clientRandom(w, 1, id)
		for range 8 {
			fmt.Fprintf(&drawn, "client %d: key %d, hold %v, think %v\n", id, chooser.Choose(random),
				w.Hold.Draw(random), w.Think.Draw(random))
		}
	}
	for _, load := range []string{
		"rate=1000/s", "rate=3000 arrivals=constant", "arrivals=constant stage=1s:1000/s stage=2s:4000/s",
		"arrivals=poisson stage=1s:1000/s stage=2s:4000/s stage=1s:0/s",
	} {
		a := newArrivals(spec(t, draws+load), 12_345_678, 1_012_345_678, uint64(w.Seed)+1)
		for n := range 5_000 {
			next := a.arrive()
			if n < 8 || n%1000 == 999 {
				fmt.Fprintf(&drawn, "%s, arrival %d at %v: key %d, hold %v\n", load, n+1, time.Duration(next.due),
					chooser.Choose(next.random), w.Hold.Draw(next.random))
			}
		}
	}
	golden.Compare(t, filepath.Join("testdata", "seed.golden"), drawn.String())
	if clientRandom(w, 2, 0).Uint64() == clientRandom(w, 1, 0).Uint64() {
		t.Error("two rounds draw alike")
	}
}
