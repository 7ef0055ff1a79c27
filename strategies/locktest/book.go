package locktest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// book records who holds a lock while servers fail. It reports too many holders, and tokens
// that do not grow.
type book struct {
	*stage
	tokens string // the promise that tokens grow

	mu      sync.Mutex
	holders map[strategies.Lease]time.Time // the end of each lease's validity
	token   int64                          // the largest so far
	served  int
}

func (s *stage) book() *book {
	return &book{stage: s, tokens: growing, holders: map[strategies.Lease]time.Time{}}
}

// enter records a granted lease that lasts for ttl.
func (b *book) enter(lease strategies.Lease, asked time.Time, ttl time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.served++
	now := time.Now()
	until := validUntil(lease, asked, ttl)
	if !now.Before(until) { // the lease has already ended
		return
	}
	others := 0
	for _, end := range b.holders {
		if now.Before(end) {
			others++
		}
	}
	if others >= b.info.Capacity {
		b.errorf("a lock was granted while %d held it, and it has %d permits", others, b.info.Capacity)
	}
	b.holders[lease] = until
	if fenced, ok := strategies.As[strategies.Fenced](lease); ok && b.info.Claims.Fencing && b.info.Capacity == 1 {
		if token := fenced.FencingToken(); token <= b.token {
			b.broken(b.tokens, "token %d came after %d", token, b.token)
		} else {
			b.token = token
		}
	}
}

// leave records that a lease is about to be released.
func (b *book) leave(lease strategies.Lease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.holders, lease)
}

func (b *book) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.served
}

// fill takes all permits and records them.
func (b *book) fill(i *instance, ttl time.Duration) []strategies.Lease {
	asked := time.Now()
	leases := b.stage.fill(i, "key")
	for _, lease := range leases {
		b.enter(lease, asked, ttl)
	}
	return leases
}

// free releases each lease, and retries after errors.
func (b *book) free(leases ...strategies.Lease) {
	for _, lease := range leases {
		b.leave(lease)
		_ = b.again(lease)
	}
}

// client acquires the lock in the background, with retries after errors, holds it for a while
// and releases it.
func (b *book) client(i *instance, hold, ttl time.Duration) *waiter {
	return b.background(i, "key", func(ctx context.Context) error {
		for {
			asked := time.Now()
			lease, err := i.Acquire(ctx, "key")
			switch {
			case err == nil:
				b.enter(lease, asked, ttl)
				time.Sleep(hold)
				b.free(lease)
				return nil
			case ctx.Err() != nil, errors.Is(err, strategies.ErrClosed):
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// queue starts n clients, spread over the instances, and returns when all of them wait.
func (b *book) queue(on []*instance, n int, hold, ttl time.Duration) []*waiter {
	var waiting []*waiter
	for c := range n {
		waiting = append(waiting, b.client(on[c%len(on)], hold, ttl))
	}
	for _, w := range waiting {
		w.settle()
	}
	return waiting
}

// all waits until each client has had the lock.
func (b *book) all(waiting []*waiter, after string) {
	stranded, end := 0, time.Now().Add(b.patience)
	for _, w := range waiting {
		if !w.within(time.Until(end)) {
			stranded++
		}
	}
	if stranded > 0 {
		b.fatalf("%v after %s %d of %d clients that ask for the lock again and again have not had it", b.patience,
			after, stranded, len(waiting))
	}
}
