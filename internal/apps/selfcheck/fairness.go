package selfcheck

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// The clients of the fairness checks, and the number of those that starve: all clients of one instance.
const (
	crowd, crowdInstances = 30, 10
	starving              = crowd / crowdInstances
)

// order runs a lock that serves the first to come, and one that serves the newest. The report must show that
// the one lets nobody overtake, and that with the other nearly every acquisition overtakes.
func (s *session) order(ctx context.Context, c *Check) error {
	w := workload(crowd, crowdInstances, s.Effort.Window)
	w.Hold = workloads.Fixed(200 * time.Microsecond)
	s.say("order: first come, first served")
	fair, err := s.do(ctx, s.job((&queue{}).strategy(), w))
	if err != nil {
		return err
	}
	s.say("order: the newest first")
	last, err := s.do(ctx, s.job((&queue{newest: true}).strategy(), w))
	if err != nil {
		return err
	}
	// Two clients may swap places between the start of a wait and the queue.
	overtaken := value(fair.Fairness.Overtaken)
	c.want(overtaken <= 5, "first come: overtaken", overtaken, results.Percent, "at most 5 %%")
	c.count(fair.Fairness.LargestBypass < crowd, "first come: largest bypass",
		float64(fair.Fairness.LargestBypass), "below %d", crowd)
	overtaken = value(last.Fairness.Overtaken)
	c.want(overtaken >= 95, "newest first: overtaken", overtaken, results.Percent, "at least 95 %%")
	c.count(last.Fairness.LargestBypass >= last.Speed.Acquisitions/2, "newest first: largest bypass",
		float64(last.Fairness.LargestBypass), "at least half of all %d acquisitions", last.Speed.Acquisitions)
	return nil
}

// starvation runs a first-come-first-served lock twice. In the second run the lock never serves one of the ten
// instances. All figures of fairness must distinguish the two runs, and have the values that arithmetic gives.
func (s *session) starvation(ctx context.Context, c *Check) error {
	w := workload(crowd, crowdInstances, s.Effort.Window)
	w.Hold = workloads.Fixed(200 * time.Microsecond)
	w.Warmup = workloads.Duration(s.Effort.Window / 10) // so that a starved wait began before the window
	s.say("starvation: one client in ten never gets the lock")
	starved, err := s.do(ctx, s.job((&queue{starving: true}).strategy(), w))
	if err != nil {
		return err
	}
	s.say("starvation: everybody gets it")
	fed, err := s.do(ctx, s.job((&queue{}).strategy(), w))
	if err != nil {
		return err
	}
	const others, even = crowd - starving, float64(crowd-starving) / crowd
	window, all := float64(starved.WindowNS), starved.Speed.Acquisitions
	beyond := func(b *results.Bound) bool { return b != nil && b.AtLeast && float64(b.NS) >= window }
	f, p95, open := starved.Fairness, starved.Waiting.PerClient.P95, starved.Waiting.Open
	overtaken, longest := value(f.Overtaken), f.LongestWait
	c.count(value(f.Starved) == starving, "starving: starved clients", value(f.Starved), "%d", starving)
	c.count(f.AcquisitionsMin == 0, "starving: fewest acquisitions", float64(f.AcquisitionsMin), "0")
	c.count(near(value(f.Jain), even, 0.02), "starving: Jain index", value(f.Jain), "%v", even)
	c.want(beyond(longest), "starving: longest wait", bound(longest), results.Nanoseconds, "≥ the window")
	c.want(p95 != nil && p95.AtLeast, "starving: p95 per client", bound(p95), results.Nanoseconds, "a lower bound")
	c.count(value(f.WorkingSet) <= others, "starving: working set", value(f.WorkingSet), "at most %d", others)
	c.count(value(f.ReacquireDistance) <= others, "starving: reacquire distance", value(f.ReacquireDistance),
		"at most %d", others)
	c.want(overtaken >= 99, "starving: overtaken", overtaken, results.Percent, "all")
	c.count(f.LargestBypass >= all, "starving: largest bypass", float64(f.LargestBypass),
		"at least all %d acquisitions", all)
	c.count(open >= starving, "starving: unfinished waits", float64(open), "at least %d", starving)

	f = fed.Fairness
	longest = f.LongestWait
	c.count(value(f.Starved) == 0, "fed: starved clients", value(f.Starved), "0")
	c.count(value(f.Jain) >= 0.99, "fed: Jain index", value(f.Jain), "1")
	c.want(!beyond(longest), "fed: longest wait", bound(longest), results.Nanoseconds, "below the window")
	c.count(value(f.WorkingSet) > others, "fed: working set", value(f.WorkingSet), "%d", crowd)
	c.count(value(f.ReacquireDistance) > others, "fed: reacquire distance", value(f.ReacquireDistance), "%d", crowd)
	c.count(f.LargestBypass < crowd, "fed: largest bypass", float64(f.LargestBypass), "below %d", crowd)
	return nil
}
