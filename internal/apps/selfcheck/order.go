package selfcheck

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// order runs a lock that serves the first to come, and one that serves the newest. The report must show that
// the one lets nobody overtake, and that with the other nearly every acquisition overtakes.
func (s *session) order(ctx context.Context, c *Check) error {
	w := workload(crowd, crowdInstances, s.Effort.Window)
	w.Hold = workloads.Fixed(200 * time.Microsecond)
	s.say("order: first come, first served")
	fair, err := s.do(ctx, s.job(queueWith(false), w))
	if err != nil {
		return err
	}
	s.say("order: the newest first")
	last, err := s.do(ctx, s.job(newestFirst(), w))
	if err != nil {
		return err
	}
	// Two clients may swap places between the start of a wait and the queue.
	c.want(value(fair.Fairness.Overtaken) <= 5, "first come: overtaken", value(fair.Fairness.Overtaken), results.Percent, "at most 5 %%")
	c.want(fair.Fairness.LargestBypass < crowd, "first come: largest bypass",
		float64(fair.Fairness.LargestBypass), results.Number, "below %d", crowd)
	c.want(value(last.Fairness.Overtaken) >= 95, "newest first: overtaken", value(last.Fairness.Overtaken), results.Percent, "at least 95 %%")
	c.want(last.Fairness.LargestBypass >= last.Speed.Acquisitions/2, "newest first: largest bypass",
		float64(last.Fairness.LargestBypass), results.Number, "at least half of all %d acquisitions", last.Speed.Acquisitions)
	return nil
}

// stack is a lock for all instances of a run that serves the newest waiter first.
type stack struct {
	mu      sync.Mutex
	held    bool
	waiters []chan struct{}
}

func newestFirst() strategies.Variant {
	shared := &stack{}
	info := strategies.Info{
		Name: "newest-first", Summary: "one stack for all instances", Capacity: 1, Claims: strategies.Claims{Exclusion: true},
	}
	return strategies.Unlisted(info, func(strategies.Config) (strategies.Locker, error) { return shared, nil })
}

// Acquire waits until no newer client waits.
func (s *stack) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	s.mu.Lock()
	if !s.held {
		s.held = true
		s.mu.Unlock()
		return s, nil
	}
	granted := make(chan struct{})
	s.waiters = append(s.waiters, granted)
	s.mu.Unlock()
	select {
	case <-granted:
		return s, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	at := slices.Index(s.waiters, granted)
	if at >= 0 {
		s.waiters = slices.Delete(s.waiters, at, at+1)
	}
	s.mu.Unlock()
	if at < 0 { // it was granted meanwhile
		_ = s.Release(ctx)
	}
	return nil, ctx.Err()
}

// Release passes the lock to the newest waiter.
func (s *stack) Release(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held = len(s.waiters) > 0; s.held {
		newest := s.waiters[len(s.waiters)-1]
		s.waiters = s.waiters[:len(s.waiters)-1]
		close(newest)
	}
	return nil
}

// Close does nothing: the other instances still use the lock.
func (s *stack) Close() error { return nil }
