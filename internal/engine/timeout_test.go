//go:build !race

// With the race detector this test would take too long.

package engine_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// crossing is a lock whose waits are exponential with a mean of 300 ms. Waits that would exceed the timeout end at the
// timeout without a lease. One in a thousand of them instead gets its lease after 1.5 timeouts, as if the reply had
// crossed the timeout.
type crossing struct {
	mu     sync.Mutex
	random *rand.Rand
}

// draw returns the length of a wait and whether it ends with a lease.
func (c *crossing) draw(timeout time.Duration) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := time.Duration(c.random.ExpFloat64() * float64(300*time.Millisecond))
	switch {
	case wait < timeout:
		return wait + 1, true
	case c.random.Float64() < 0.001:
		return timeout * 3 / 2, true
	}
	return timeout, false
}

func (c *crossing) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	end, _ := ctx.Deadline()
	wait, leased := c.draw(time.Until(end))
	time.Sleep(wait)
	if !leased {
		return nil, context.DeadlineExceeded
	}
	return free{}, nil
}

func (c *crossing) Close() error { return nil }

// cycles returns the cycles that a driver with this lock reports for the clients in the assignment a.
func (c *crossing) cycles(a engine.Assignment) (all []engine.Cycle) {
	for _, client := range a.Clients {
		for at := a.Start; ; {
			wait, leased := c.draw(*a.Timeout)
			cycle := engine.Cycle{Client: client.ID, Asked: at, Done: at + int64(wait), Error: engine.CycleTimedOut}
			if cycle.Done >= a.Stop {
				all = append(all, engine.Cycle{Client: client.ID, Asked: at, Done: a.Stop, Error: engine.CycleStopped})
				break
			}
			if leased {
				cycle.Granted, cycle.Released, cycle.Error = cycle.Done, cycle.Done, ""
			}
			all = append(all, cycle)
			at = cycle.Done + 1
		}
	}
	return all
}

// The timeout ends 37 % of all waits, and a few others get a lease after it. These few must not make a threshold beyond
// the timeout pass, for a lock in this process or in a driver, in a closed or an open loop.
func TestThresholdBeyondTimeoutFails(t *testing.T) {
	t.Parallel()
	info := strategies.Info{Name: "crossing", Summary: "waits that cross their timeout"}
	lock := strategies.Unlisted(info, func(strategies.Config) (strategies.Locker, error) {
		return &crossing{random: rand.New(rand.NewPCG(1, 2))}, nil
	})
	info.Driver = true
	driver := strategies.Unlisted(info, func(strategies.ConfigOf[any]) (scripted, error) {
		return scripted{cycles: (&crossing{random: rand.New(rand.NewPCG(3, 4))}).cycles}, nil
	})
	for _, test := range []struct {
		name     string
		strategy strategies.Variant
		rate     workloads.Rate
	}{{"closed loop", lock, 0}, {"open loop", lock, 2500}, {"driver", driver, 0}} {
		t.Run(test.name, func(t *testing.T) {
			var run *results.Run
			w := workloads.Default()
			w.Clients, w.Instances, w.Hold, w.Rate = 1000, 1, workloads.Dist{}, test.rate
			w.Warmup, w.Duration = workloads.Duration(time.Second), workloads.Duration(5*time.Second)
			w.Timeout = new(workloads.Duration(300 * time.Millisecond))
			synctest.Test(t, func(t *testing.T) {
				var err error
				job := engine.Job{Strategy: test.strategy, Workload: w, Session: "virtual", Round: 1, VirtualTime: true}
				if run, err = job.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			report := &results.Report{
				Workload: w, Rounds: 1, Strategies: []results.Strategy{{Name: run.Strategy}}, Runs: []results.Run{*run},
			}
			for expression, passes := range map[string]bool{
				"wait:med<230ms": true, "wait:p(60)<300ms": true, "service:med<230ms": true, "wait:p(99)>250ms": true,
				"wait:p(90)<500ms": false, "wait:p(99)<500ms": false, "wait:p(99.9)<5s": false, "wait_max<5s": false,
				"service:p(95)<350ms": false, "service:p(99)<500ms": false, "service_p99<5s": false,
			} {
				judge(t, report, expression, passes)
			}
			if test.rate == 0 {
				judge(t, report, "wait_per_client:med<230ms", true)
				judge(t, report, "wait_per_client:p(99)<500ms", false)
			}
			for _, s := range run.Timeline {
				if p := s.WaitP99; p == nil || !p.AtLeast || p.NS > 310e6 {
					t.Errorf("from %v s on p99 is %v", s.At, p)
				}
			}
		})
	}
}

// judge fails the test unless the verdict on the threshold is `passes`. If the threshold does not pass, the reason must
// be that only a lower bound is known.
func judge(t *testing.T, r *results.Report, expression string, passes bool) {
	t.Helper()
	threshold, err := results.ParseThreshold(expression)
	if err != nil {
		t.Fatal(err)
	}
	v := results.Judge(r, []results.Threshold{threshold})[0]
	if v.Passed != passes || !passes && v.Why.Text != "only a lower bound is known" {
		t.Errorf("passed %v: %v", v.Passed, v)
	}
}
