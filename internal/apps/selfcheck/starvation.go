package selfcheck

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/local"
	"github.com/lockbench/lockbench/workloads"
)

// The clients of the fairness check, and the number of those that starve: all clients of one instance.
const (
	crowd, crowdInstances = 30, 10
	starving              = crowd / crowdInstances
)

// starvation runs a first-come-first-served lock twice. In the second run the lock never serves one of the ten
// instances. All figures of fairness must distinguish the two runs, and have the values that arithmetic gives.
func (s *session) starvation(ctx context.Context, c *Check) error {
	w := workload(crowd, crowdInstances, s.Effort.Window)
	w.Hold = workloads.Fixed(200 * time.Microsecond)
	w.Warmup = workloads.Duration(s.Effort.Window / 10) // so that a starved wait began before the window
	s.say("starvation: one client in ten never gets the lock")
	starved, err := s.do(ctx, s.job(queueWith(true), w))
	if err != nil {
		return err
	}
	s.say("starvation: everybody gets it")
	fed, err := s.do(ctx, s.job(queueWith(false), w))
	if err != nil {
		return err
	}
	const others, even = crowd - starving, float64(crowd-starving) / crowd
	f, waits, window := starved.Fairness, starved.Waiting, float64(starved.WindowNS)
	c.want(value(f.Starved) == starving, "starving: starved clients", value(f.Starved), results.Number, "%d", starving)
	c.want(f.AcquisitionsMin == 0, "starving: fewest acquisitions", float64(f.AcquisitionsMin), results.Number, "0")
	c.want(near(value(f.Jain), even, 0.02), "starving: Jain index", value(f.Jain), results.Number, "%v", even)
	c.want(beyond(f.LongestWait, window), "starving: longest wait", bound(f.LongestWait), results.Nanoseconds, "≥ the window")
	c.want(waits.PerClient.P95 != nil && waits.PerClient.P95.AtLeast, "starving: p95 per client", bound(waits.PerClient.P95), results.Nanoseconds, "a lower bound")
	c.want(value(f.WorkingSet) <= others, "starving: working set", value(f.WorkingSet), results.Number, "at most %d", others)
	c.want(f.ReacquireDistance != nil && *f.ReacquireDistance <= others, "starving: reacquire distance", value(f.ReacquireDistance), results.Number, "at most %d", others)
	c.want(value(f.Overtaken) >= 99, "starving: overtaken", value(f.Overtaken), results.Percent, "all")
	c.want(f.LargestBypass >= starved.Speed.Acquisitions, "starving: largest bypass", float64(f.LargestBypass), results.Number, "at least all %d acquisitions", starved.Speed.Acquisitions)
	c.want(waits.Open >= starving, "starving: unfinished waits", float64(waits.Open), results.Number, "at least %d", starving)

	f = fed.Fairness
	c.want(value(f.Starved) == 0, "fed: starved clients", value(f.Starved), results.Number, "0")
	c.want(value(f.Jain) >= 0.99, "fed: Jain index", value(f.Jain), results.Number, "1")
	c.want(!beyond(f.LongestWait, window), "fed: longest wait", bound(f.LongestWait), results.Nanoseconds, "below the window")
	c.want(value(f.WorkingSet) > others, "fed: working set", value(f.WorkingSet), results.Number, "%d", crowd)
	c.want(f.ReacquireDistance != nil && *f.ReacquireDistance > others, "fed: reacquire distance", value(f.ReacquireDistance), results.Number, "%d", crowd)
	c.want(f.LargestBypass < crowd, "fed: largest bypass", float64(f.LargestBypass), results.Number, "below %d", crowd)
	return nil
}

// queueWith returns the lock local, shared by all instances of a run. If rigged, every tenth instance waits for
// ever.
func queueWith(starving bool) strategies.Variant {
	var opened atomic.Int64
	shared, _ := local.Open(strategies.Config{}, local.Options{}) // it never fails
	info := strategies.Info{Name: "first-come", Summary: "one queue for all instances", Capacity: 1, Claims: strategies.Claims{Exclusion: true}}
	return strategies.Unlisted(info, func(strategies.Config) (strategies.Locker, error) {
		if opened.Add(1)%crowdInstances == 0 && starving {
			return never{}, nil
		}
		return shared, nil
	})
}

// never is a Locker that admits no client.
type never struct{}

func (never) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (never) Close() error { return nil }

func near(x, want, within float64) bool { return math.Abs(x-want) <= within }

// beyond says whether a wait is a lower bound of at least the window.
func beyond(b *results.Bound, window float64) bool {
	return b != nil && b.AtLeast && float64(b.NS) >= window
}

// value returns a figure; NaN if it is not known.
func value[T int | int64 | float64](x *T) float64 {
	if x == nil {
		return math.NaN()
	}
	return float64(*x)
}

func bound(b *results.Bound) float64 {
	if b == nil {
		return math.NaN()
	}
	return float64(b.NS)
}
