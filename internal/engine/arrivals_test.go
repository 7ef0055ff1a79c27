package engine

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

func TestArrivalsKeepTheirRate(t *testing.T) {
	for _, kind := range workloads.ArrivalKinds() {
		w := workloads.Default()
		w.Rate, w.Arrivals = 3000, kind // a gap that is no whole number of nanoseconds
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
		// The coefficient of variation: 0 of a constant, 1 of exponential gaps.
		variation := math.Sqrt(max(0, squares/(n-2)-mean*mean)) / mean
		if want := map[workloads.Arrivals]float64{workloads.ArrivalsPoisson: 1}[kind]; math.Abs(variation-want) > 0.02 {
			t.Errorf("%s: variation %.3f, want %g", kind, variation, want)
		}
	}
	if newArrivals(workloads.Default(), 0, 0, 1) != nil {
		t.Error("a closed loop has arrivals")
	}
}

func TestTheBacklogIsWhatWasDue(t *testing.T) {
	w := workloads.Default()
	w.Rate, w.Arrivals = 1000, workloads.ArrivalsConstant
	a := newArrivals(w, 0, 0, 1)
	a.take()
	if got, want := slices.Collect(a.backlog(int64(3500*time.Microsecond))), []int64{1e6, 2e6, 3e6}; !slices.Equal(got, want) {
		t.Errorf("backlog %v, want %v", got, want)
	}
}

// A load that ends leaves nothing behind it.
func TestTheLastStartIsTheLast(t *testing.T) {
	a := &arrivals{gap: gaps(workloads.ArrivalsConstant, nil), pacer: PacerFunc(func(at, arrivals float64) float64 {
		if at+arrivals > 3 {
			return math.Inf(1)
		}
		return at + arrivals
	})}
	var got []int64
	for at := range a.backlog(math.MaxInt64 / 4) {
		if got = append(got, at); len(got) > 9 {
			break
		}
	}
	if want := []int64{0, 1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("starts %v, want %v", got, want)
	}
}

func TestAnOpenLoopOffersItsRate(t *testing.T) {
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

// A lock that takes 10 ms a turn cannot serve 500 a second: that is the lock's
// fault, and a result.
func TestAnOverloadedLockIsAResult(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	run := do(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Rate, w.Hold = 10, 500, workloads.Fixed(10*time.Millisecond)
		w.Duration = workloads.Duration(time.Second)
	}))
	// A busy machine may keep its goroutines from running; then it must say so.
	if hurried := run.Generator.SchedulingP99 > int64(hardlyRuns); run.Valid() == hurried {
		t.Errorf("invalid %v, goroutines waited %v to run", run.Invalid, time.Duration(run.Generator.SchedulingP99))
	}
	if !slices.Contains(run.Labels, "overloaded: 500/s found all 10 clients waiting") {
		t.Errorf("labels %v", run.Labels)
	}
	if run.Waiting.Backlog == 0 || run.Generator.BehindStarts == 0 {
		t.Errorf("backlog %d, behind %d", run.Waiting.Backlog, run.Generator.BehindStarts)
	}
	// Those that found no client wait all the same: most of half a second.
	if p := run.Waiting.PerAcquisition.P50; p == nil || time.Duration(p.NS) < 300*time.Millisecond {
		t.Errorf("p50 %+v", p)
	}
}

// A client that was free and woke up late has not been waiting for the lock: how
// late it was is the generator's figure.
func TestTheGeneratorsLatenessIsNoWait(t *testing.T) {
	v := lock(t, strategies.Info{}, 1000, wait)
	run := really(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Rate, w.Hold = 50, 1000, workloads.Dist{}
		w.Duration = workloads.Duration(2 * time.Second) // a machine that stands still for half a second moves no median
	}))
	wait, service, late := run.Waiting.PerAcquisition.P50, run.Waiting.Service.P50, run.Waiting.Lateness
	if wait == nil || service == nil || wait.NS > 2*service.NS {
		t.Errorf("nobody had to wait, and the median wait is %v, from the start of Acquire %v", wait, service)
	}
	if late.P50 == nil || late.Count < run.Speed.Acquisitions/2 {
		t.Errorf("%d starts made late, by %v in the median, of %d", late.Count, late.P50, run.Speed.Acquisitions)
	}
}

// A generator that cannot offer the load must not be believed.
func TestASaturatedGeneratorIsInvalid(t *testing.T) {
	v := lock(t, strategies.Info{}, 200, func(ctx context.Context, slots chan struct{}) (strategies.Lease, error) {
		for start := time.Now(); time.Since(start) < time.Millisecond; { // the client's own CPU
		}
		return wait(ctx, slots)
	})
	run := really(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Rate, w.Hold, w.Duration = 200, 100_000, workloads.Dist{}, workloads.Duration(700*time.Millisecond)
	}))
	if run.Valid() {
		t.Errorf("valid: %d of 70,000 acquisitions, %+v", run.Speed.Acquisitions, run.Generator)
	}
}
