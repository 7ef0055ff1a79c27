//go:build !race

// The race detector makes so many customers take minutes; internal/apps/selfcheck has it
// look at fewer, and make test runs both.

package virtual_test

import (
	"math"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/workloads"
)

// TestLocalIsPollaczekAndKhinchines has customers pass the real engine, its arrivals, its
// recorder and the lock local: a million of each queue with LOCKBENCH_MODEL=1 (make soak),
// a tenth of them every day. Their mean wait must be
//
//	W = λ·E[S²] ÷ (2·(1 − λ·E[S]))
//
// (F. Pollaczek 1930, A. Khinchine 1932).
func TestLocalIsPollaczekAndKhinchines(t *testing.T) {
	customers, million := int64(100_000), os.Getenv("LOCKBENCH_MODEL") != ""
	if million {
		customers = 1_000_000
	}
	for _, queue := range []struct {
		name   string
		load   float64
		hold   string
		square float64 // E[S²] ÷ E[S]²
		within float64 // chance moves the mean of a tenth: the busier the queue, the more
	}{
		{"M/M/1", 0.5, "exp:1ms", 2, 0.05},
		{"M/G/1", 0.7, "uniform:0s,2ms", 4.0 / 3, 0.05},
		{"M/D/1", 0.9, "1ms", 1, 0.1},
	} {
		within := queue.within
		if million {
			within = 0.05
		}
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
				if run.Speed.Acquisitions != customers || math.Abs(got/want-1) > within {
					t.Errorf("mean wait of %d customers at %v: %.0f ns, by the formula %.0f ns", run.Speed.Acquisitions,
						queue.load, got, want)
				}
			})
		})
	}
}
