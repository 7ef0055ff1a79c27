package selfcheck

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// meanWait is the mean of the exponential waits in the percentiles check.
const meanWait = 40 * time.Millisecond

// percentiles runs a lock with known waits that are independent of each other and of the client, after a
// warm-up. The percentiles per acquisition and per client must both be those of the waits.
func (s *session) percentiles(ctx context.Context, c *Check) error {
	w := workload(1000, 10, s.Effort.Window)
	w.Warmup, w.Hold = workloads.Duration(meanWait), workloads.Dist{}
	lock := newDrawn(meanWait)
	s.say("percentiles: waits that are known")
	run, err := s.do(ctx, s.job(lock.strategy(), w))
	if err != nil {
		return err
	}
	late := time.Duration(lock.late.Load() / max(1, lock.waits.Load()))
	c.inform("waits longer than drawn by, on average", float64(late), results.Nanoseconds)
	perAcquisition, perClient := run.Waiting.PerAcquisition, run.Waiting.PerClient
	for _, p := range []struct {
		name  string
		got   *results.Bound
		share float64
	}{
		{"per acquisition: p50", perAcquisition.P50, 0.5}, {"per acquisition: p90", perAcquisition.P90, 0.9},
		{"per client: p50", perClient.P50, 0.5}, {"per client: p90", perClient.P90, 0.9},
	} {
		truth := float64(late) - math.Log(1-p.share)*float64(meanWait)
		ok := near(bound(p.got)/truth, 1, 0.05) || p.got != nil && p.got.AtLeast && bound(p.got) < truth
		if late > meanWait/20 { // because of the machine, and not the same for all
			c.hope(ok, p.name, bound(p.got), results.Nanoseconds, "%v within 5 %%", time.Duration(truth))
		} else {
			c.want(ok, p.name, bound(p.got), results.Nanoseconds, "%v within 5 %%", time.Duration(truth))
		}
	}
	return nil
}

// drawn is a lock that admits every client after a random wait.
type drawn struct {
	mean   time.Duration
	mu     sync.Mutex
	random *rand.Rand

	waits, late atomic.Int64 // ended waits; ns by which they were longer than drawn
}

func newDrawn(mean time.Duration) *drawn {
	return &drawn{mean: mean, random: rand.New(rand.NewPCG(1, 2))}
}

func (d *drawn) strategy() strategies.Variant {
	info := strategies.Info{Name: "drawn-waits", Summary: "waits that are drawn, and excludes nobody"}
	return strategies.Unlisted(info, func(strategies.Config) (strategies.Locker, error) { return d, nil })
}

func (d *drawn) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	began := time.Now()
	d.mu.Lock()
	wait := time.Duration(d.random.ExpFloat64() * float64(d.mean))
	d.mu.Unlock()
	if !pause.Plain(ctx.Done(), wait) {
		return nil, ctx.Err()
	}
	d.waits.Add(1)
	d.late.Add(int64(time.Since(began) - wait))
	return given{}, nil
}

func (d *drawn) Close() error { return nil }

// given is the lease of a lock without exclusion.
type given struct{}

func (given) Release(context.Context) error { return nil }
