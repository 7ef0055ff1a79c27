package selfcheck

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/local"
	"github.com/lockbench/lockbench/workloads"
)

// holds asks for short holds, and compares the recorded holds with the requested ones and with the lock's own
// clock. A busy machine may make a hold too long; none may be too short.
func (s *session) holds(ctx context.Context, c *Check) error {
	for _, asked := range []time.Duration{200 * time.Microsecond, time.Millisecond} {
		w := workload(100, 10, s.Effort.Window)
		w.Hold = workloads.Fixed(asked)
		lock, err := newTimed()
		if err != nil {
			return err
		}
		s.say("holds: %v", asked)
		run, err := s.do(ctx, s.job(lock.strategy(), w))
		if err != nil {
			return err
		}
		hold := run.Speed.Hold
		held := float64(lock.held.Load())
		mean, own := value(hold.MeanNS), held/float64(max(1, lock.leases.Load()))
		name := fmt.Sprintf("%v: mean hold by the lock's own clock", asked)
		if recorded := mean * float64(hold.Count); held < recorded { // the lock's time encloses each recorded hold
			c.want(false, name, own, results.Nanoseconds, "all together no less than the recorded %v", time.Duration(recorded))
		} else {
			c.hope(near(mean/own, 1, 0.02), name, own, results.Nanoseconds, "as recorded, %v, within 2 %%", time.Duration(mean))
		}
		c.want(bound(hold.P50) >= 0.98*float64(asked), fmt.Sprintf("%v: hold p50", asked), bound(hold.P50), results.Nanoseconds, "no less than asked for")
		c.hope(mean <= 1.02*float64(asked), fmt.Sprintf("%v: mean hold", asked), mean, results.Nanoseconds, "at most 2 %% more than asked for")
		c.inform(fmt.Sprintf("%v: CPU of the generator, of one core", asked), run.Generator.CPUPercent, results.Percent)
	}
	return nil
}

// timed is the lock local, shared by all instances, with its own clock for the holds.
type timed struct {
	strategies.Locker
	leases, held atomic.Int64 // released leases; sum of their holds in ns
}

func newTimed() (*timed, error) {
	shared, err := local.Open(strategies.Config{}, local.Options{})
	if err != nil {
		return nil, fmt.Errorf("make a lock: %w", err)
	}
	return &timed{Locker: shared}, nil
}

func (t *timed) strategy() strategies.Variant {
	info := strategies.Info{Name: "timed", Summary: "one queue for all instances", Capacity: 1, Claims: strategies.Claims{Exclusion: true}}
	return strategies.Unlisted(info, func(strategies.Config) (strategies.Locker, error) { return t, nil })
}

func (t *timed) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	lease, err := t.Locker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return &timedLease{lease, t, time.Now()}, nil
}

// Close does nothing: the other instances still use the lock.
func (t *timed) Close() error { return nil }

type timedLease struct {
	strategies.Lease
	lock  *timed
	since time.Time
}

func (l *timedLease) Release(ctx context.Context) error {
	l.lock.held.Add(int64(time.Since(l.since)))
	l.lock.leases.Add(1)
	return l.Lease.Release(ctx)
}
