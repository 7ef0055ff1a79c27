package selfcheck

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// queue is a lock for all instances of a run, with its own record of what it granted.
type queue struct {
	// doubling makes the lock admit a second client some time after the first, and no further client until both have
	// released.
	doubling bool

	mu      sync.Mutex
	random  *rand.Rand
	waiters []chan struct{}
	holders int
	doubled bool        // the lock has admitted a second client since it was last free
	open    bool        // the lock admits the next client as the second
	second  *time.Timer // until the lock admits a second client

	twice  int64         // times that the lock admitted a second client
	leases int64         // released ones
	held   time.Duration // sum of their holds
}

// latest is about the length of a hold, so that overlaps of all lengths occur.
const latest = 5 * time.Millisecond

func (q *queue) strategy() strategies.Variant {
	q.random = rand.New(rand.NewPCG(1, 1))
	info := strategies.Info{Name: "one-queue", Summary: "one queue for all instances", Capacity: 1}
	info.Claims.Exclusion = true
	return strategies.Unlisted(info, func(strategies.Config) (strategies.Locker, error) {
		return q, nil
	})
}

// Acquire waits for its turn.
func (q *queue) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	granted := make(chan struct{})
	q.mu.Lock()
	q.waiters = append(q.waiters, granted)
	q.admit()
	q.mu.Unlock()
	select {
	case <-granted:
		return &queueLease{q, time.Now()}, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := slices.Index(q.waiters, granted); at >= 0 {
		q.waiters = slices.Delete(q.waiters, at, at+1)
	} else { // the lock was granted at the same time as ctx ended
		q.leave()
	}
	return nil, ctx.Err()
}

// admit grants the lock if it may. The caller holds mu, as with leave.
func (q *queue) admit() {
	switch {
	case len(q.waiters) == 0:
		return
	case q.holders == 0:
		q.doubled, q.open = false, false
		if q.doubling {
			var timer *time.Timer
			timer = time.AfterFunc(time.Duration(q.random.Int64N(int64(latest))), func() {
				q.mu.Lock()
				defer q.mu.Unlock()
				if q.second == timer {
					q.open = true
					q.admit()
				}
			})
			q.second = timer
		}
	case q.open && !q.doubled:
		q.doubled = true
		q.twice++
	default:
		return
	}
	q.holders++
	close(q.waiters[0])
	q.waiters = q.waiters[1:]
}

func (q *queue) leave() {
	if q.holders--; q.holders > 0 {
		return
	}
	if q.second != nil {
		q.second.Stop()
		q.second = nil
	}
	q.admit()
}

// Close does nothing: the other instances still use the lock.
func (q *queue) Close() error { return nil }

type queueLease struct {
	*queue
	since time.Time
}

// Release passes the lock on.
func (l *queueLease) Release(context.Context) error {
	held := time.Since(l.since)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += held
	l.leases++
	l.leave()
	return nil
}
