package selfcheck

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// doubling is a lock for all instances of a run. If rigged, it admits a second client some time after the
// first, and then no other until both have released.
type doubling struct {
	rigged bool
	twice  atomic.Int64 // how often it admitted a second client

	mu      sync.Mutex
	random  *rand.Rand
	holders int
	doubled bool          // a second client was admitted since the lock was last free
	second  time.Time     // from when on a second client is admitted
	free    chan struct{} // closed when the lock is free again
}

func newDoubling(rigged bool) *doubling {
	return &doubling{rigged: rigged, random: rand.New(rand.NewPCG(1, 1))}
}

// latest is about the length of a hold, so that overlaps of all lengths occur.
const latest = 5 * time.Millisecond

func (d *doubling) strategy() strategies.Variant {
	info := strategies.Info{Name: "doubling", Summary: "lets in two", Capacity: 1, Claims: strategies.Claims{Exclusion: true}}
	return strategies.Unlisted(info, func(strategies.Config) (*doubling, error) { return d, nil })
}

// Acquire waits until the lock is free, or it admits a second client.
func (d *doubling) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	for {
		free, left := d.enter()
		if free == nil {
			return d, nil
		}
		patience := time.NewTimer(left)
		select {
		case <-free:
		case <-patience.C:
		case <-ctx.Done():
		}
		patience.Stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// enter admits the caller, or returns what to wait for and for how long at most.
func (d *doubling) enter() (free chan struct{}, left time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.holders == 0:
		d.holders, d.doubled, d.free = 1, false, make(chan struct{})
		d.second = time.Now().Add(time.Duration(d.random.Int64N(int64(latest))))
		return nil, 0
	case d.doubled || !d.rigged:
		return d.free, time.Hour
	}
	if left = time.Until(d.second); left > 0 {
		return d.free, left
	}
	d.holders, d.doubled = 2, true
	d.twice.Add(1)
	return nil, 0
}

// Release is the Lease's. Both leases are the same value.
func (d *doubling) Release(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.holders--; d.holders == 0 {
		close(d.free)
	}
	return nil
}

// Close does nothing.
func (d *doubling) Close() error { return nil }
