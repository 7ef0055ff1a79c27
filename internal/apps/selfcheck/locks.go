package selfcheck

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// queue is a lock within the process that all instances of a run share. It counts its grants and measures its holds.
type queue struct {
	// doubling makes the lock admit a second client at a random time after the first. It then admits no further client
	// until both have released.
	doubling bool

	mu      sync.Mutex
	random  *rand.Rand
	waiters []chan struct{}
	holders int
	doubled bool        // the lock has admitted a second client since it was last free
	open    bool        // the lock will admit the next client as the second
	second  *time.Timer // sets open

	twice  int64         // number of second clients that the lock admitted
	leases int64         // number of released leases
	held   time.Duration // sum of the holds of released leases
}

// latest is the longest time between a grant and the admission of a second client. It is close to the longest hold, so
// that overlaps of all lengths occur.
const latest = 5 * time.Millisecond

func (q *queue) strategy() strategies.Variant {
	q.random = rand.New(rand.NewPCG(1, 1))
	info := strategies.Info{Name: "one-queue", Summary: "one queue for all instances", Capacity: 1}
	info.Claims.Exclusion = true
	return strategies.Unlisted(info, func(strategies.Config) (strategies.Locker, error) {
		return q, nil
	})
}

// Acquire queues the client and waits until the lock admits it.
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
	} else { // the lock admitted the client just before ctx ended
		q.leave()
	}
	return nil, ctx.Err()
}

// admit grants the lock to the first waiter if the lock is free. If open is set, admit grants the lock to one waiter
// although another client holds the lock. The caller of admit and leave must hold mu.
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

// Close does nothing, because other instances still use the lock.
func (q *queue) Close() error { return nil }

type queueLease struct {
	*queue
	since time.Time
}

// Release releases the lock, which then admits the next waiter.
func (l *queueLease) Release(context.Context) error {
	held := time.Since(l.since)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held += held
	l.leases++
	l.leave()
	return nil
}
