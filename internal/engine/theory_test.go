//go:build !race

// These tests would take minutes with the race detector. Tests in internal/apps/selfcheck have fewer customers, and
// compare each wait with the value that Lindley's recursion gives for it.

package engine_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// independent is a Locker that excludes no client. Its waits are independent and exponential with the given mean.
type independent struct {
	mu     sync.Mutex
	random *rand.Rand
	mean   time.Duration
}

func (i *independent) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	i.mu.Lock()
	wait := time.Duration(i.random.ExpFloat64() * float64(i.mean))
	i.mu.Unlock()
	select {
	case <-time.After(wait):
		return free{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (i *independent) Close() error { return nil }

type free struct{}

func (free) Release(context.Context) error { return nil }

// soak enables the long tests (make soak), which have enough customers to determine percentiles to within 3 %.
var soak = os.Getenv("LOCKBENCH_MODEL") != ""

// waits runs clients of two classes, one per instance, and returns their waits. There are so many clients that chance
// changes a percentile by less than 2 %, or 1 % with LOCKBENCH_MODEL=1 (make soak).
func waits(t *testing.T, warmup, window time.Duration, means [2]time.Duration) results.Waiting {
	t.Helper()
	var run *results.Run
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		info := strategies.Info{Name: "independent", Summary: "waits that are known"}
		v := strategies.Unlisted(info, func(strategies.Config) (strategies.Locker, error) {
			opened++
			return &independent{random: rand.New(rand.NewPCG(uint64(opened), uint64(window))), mean: means[opened-1]},
				nil
		})
		w := workloads.Default()
		waits := 20_000.0
		if soak {
			waits = 80_000
		}
		w.Clients, w.Instances, w.Hold = int(waits*min(means[0], means[1]).Seconds()/window.Seconds())+1000, 2,
			workloads.Dist{}
		w.Warmup, w.Duration = workloads.Duration(warmup), workloads.Duration(window)
		var err error
		if run, err = (engine.Job{Strategy: v, Workload: w, Session: "virtual", Round: 1, VirtualTime: true}).Run(
			t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	return run.Waiting
}

// mixture returns the q-quantile of waits of which half are exponential with the first mean and half with the second.
func mixture(q float64, means [2]time.Duration) float64 {
	low, high := 0.0, 100*float64(max(means[0], means[1]))
	for range 100 {
		middle := (low + high) / 2
		left := (math.Exp(-middle/float64(means[0])) + math.Exp(-middle/float64(means[1]))) / 2
		if left > 1-q {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// The true percentiles of independent waits are known. The report must show them for each length of the warm-up,
// although it knows no wait that ended before the window opened. It must also show the true percentiles per client, for
// clients with equal and with unequal means.
func TestPercentilesOfIndependentWaits(t *testing.T) {
	alike, unlike := [2]time.Duration{time.Second, time.Second}, [2]time.Duration{time.Second, time.Second / 10}
	for _, test := range []struct {
		warmup, window time.Duration
		means          [2]time.Duration
		exact          []float64 // percentiles per client that must be exact, not only bounds
		slow           bool      // only in make soak
	}{
		{0, 5 * time.Second, alike, []float64{0.5}, true},
		{300 * time.Millisecond, 5 * time.Second, alike, []float64{0.5}, true},
		{time.Second, 5 * time.Second, alike, []float64{0.5}, false},
		{5 * time.Second, 5 * time.Second, alike, []float64{0.5}, true},
		{time.Second, 2 * time.Second, alike, nil, true},
		{time.Second, 20 * time.Second, alike, []float64{0.5, 0.9}, true},
		{time.Second, 5 * time.Second, unlike, nil, false},
		{time.Second, 50 * time.Second, unlike, []float64{0.5, 0.9}, true},
	} {
		if test.slow && !soak {
			continue
		}
		t.Run(fmt.Sprintf("%v after %v, means %v", test.window, test.warmup, test.means), func(t *testing.T) {
			got := waits(t, test.warmup, test.window, test.means)
			for _, p := range []struct {
				q              float64
				all, perClient *results.Bound
			}{
				{0.5, got.PerAcquisition.P50, got.PerClient.P50},
				{0.9, got.PerAcquisition.P90, got.PerClient.P90},
			} {
				truth := mixture(p.q, test.means)
				t.Logf("p%g: truth %.3f s, per acquisition %s, per client %s", 100*p.q, truth/1e9, p.all, p.perClient)
				if test.means == alike && !closeTo(p.all, truth) {
					t.Errorf("p%g per acquisition is %s, want %.3f s", 100*p.q, p.all, truth/1e9)
				}
				if !closeTo(p.perClient, truth) {
					t.Errorf("p%g per client is %s, want %.3f s", 100*p.q, p.perClient, truth/1e9)
				}
				for _, q := range test.exact {
					if q == p.q && (p.perClient == nil || p.perClient.AtLeast) {
						t.Errorf("p%g per client is %s, which is not known exactly", 100*p.q, p.perClient)
					}
				}
			}
		})
	}
}

// closeTo reports whether b equals truth, up to an error due to chance, or is a lower bound that does not exceed it.
func closeTo(b *results.Bound, truth float64) bool {
	within := 0.06
	if soak {
		within = 0.03
	}
	if b == nil {
		return false
	}
	if b.AtLeast {
		return float64(b.NS) < (1+within)*truth
	}
	return math.Abs(float64(b.NS)/truth-1) < within
}

// After 1,100 s the timeline has its largest number of slices, 1,024. The next 1,000 s must not need more memory.
func TestLongRecordingAddsNoMemory(t *testing.T) {
	const early, late = 1100 * time.Second, 2100 * time.Second
	synctest.Test(t, func(t *testing.T) {
		used := make(chan uint64, 2)
		go func() {
			for _, sleep := range []time.Duration{early, late - early} {
				time.Sleep(sleep)
				used <- heap()
			}
		}()
		timeout := workloads.Duration(3 * time.Second)
		run := virtual.Run(t, nil, func(w *workloads.Spec) {
			w.Clients, w.Keys = 50, 3
			w.Hold, w.Think, w.Timeout = virtual.Dist(t, "exp:150ms"), virtual.Dist(t, "exp:150ms"), &timeout
			w.Duration = workloads.Duration(late + time.Second)
		})
		if run.Speed.Acquisitions < 30_000 || run.Waiting.TimedOut < 1000 {
			t.Errorf("only %d acquisitions, %d timed out", run.Speed.Acquisitions, run.Waiting.TimedOut)
		}
		// The limit of 16 KB is about one byte for each acquisition in these 1,000 s.
		before, after := <-used, <-used
		t.Logf("%d bytes in use after %v, %d after %v", before, early, after, late)
		if after > before+16<<10 {
			t.Errorf("%d bytes in use after %v, %d after %v", before, early, after, late)
		}
	})
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// TestLocalMatchesPollaczekKhinchine runs in make soak. A million customers of each queue pass through the real engine,
// its arrivals, its recorder and the lock local. TestVirtualTimeWaitsMatchLindley in internal/apps/selfcheck, which
// always runs, compares each of 3,000 waits of the same queues with its known value. The mean wait must be
//
//	W = λ·E[S²] ÷ (2·(1 − λ·E[S]))
//
// (F. Pollaczek 1930, A. Khinchine 1932).
func TestLocalMatchesPollaczekKhinchine(t *testing.T) {
	if !soak {
		t.Skip("make soak runs it")
	}
	const customers = 1_000_000
	for _, queue := range []struct {
		name   string
		load   float64
		hold   string
		square float64 // E[S²] ÷ E[S]²
	}{
		{"M/M/1", 0.5, "exp:1ms", 2},
		{"M/G/1", 0.7, "uniform:0s,2ms", 4.0 / 3},
		{"M/D/1", 0.9, "1ms", 1},
	} {
		t.Run(queue.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const mean = float64(time.Millisecond)
				run := virtual.Run(t, nil, func(w *workloads.Spec) {
					w.Hold, w.Rate, w.Iterations = virtual.Dist(t, queue.hold), workloads.Rate(queue.load*1e9/mean),
						customers
				})
				want := queue.load * mean * queue.square / (2 * (1 - queue.load))
				got := *run.Waiting.PerAcquisition.MeanNS
				t.Logf("mean wait at %v: %.0f ns, by the formula %.0f ns: %+.2f %%", queue.load, got, want,
					(got/want-1)*100)
				if run.Speed.Acquisitions != customers || math.Abs(got/want-1) > 0.05 {
					t.Errorf("mean wait of %d customers at %v: %.0f ns, by the formula %.0f ns", run.Speed.Acquisitions,
						queue.load, got, want)
				}
			})
		})
	}
}
