package redisson

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// Lease is one hold of a lock by an owner. The watchdog renews it at the same time
// as its holder uses it, hence the mutex.
type Lease struct {
	Key   string        // the lock's, in Redis
	Owner string        // as Redis knows it
	Wait  time.Duration // how long the caller would wait; 0 for a try-lock
	Fence int64         // for a Kind that has fencing tokens to set

	lock  *Lock
	term  time.Duration // asked for, in whole milliseconds
	brief bool          // it may end sooner than others expect, who wait for it
	fixed bool          // the watchdog leaves it alone
	again bool          // the owner may hold it more than once
	asked bool          // Redis may have heard of the owner

	mu    sync.Mutex
	ttl   time.Duration // which the watchdog renews it for
	until time.Time
	gone  bool          // known to be lost
	lost  chan struct{} // nil until somebody asks
}

// TTL is how long the lease was asked for, in milliseconds.
func (held *Lease) TTL() int64 { return held.term.Milliseconds() }

// Brief says that the lease is shorter than the Locker's are. Who waits for the lock may
// be parked for longer, and is to look.
func (held *Lease) Brief() bool { return held.brief }

// Topic is where the lock's release is told on that channel.
func (held *Lease) Topic(channel string) Topic { return held.lock.herald.Topic(held.Key, channel) }

// ParkFor is how long to wait on a lock that has ms left by PTTL: no longer than the
// Locker's TTL, since its next holder's lease may end sooner than this one's, untold.
func (held *Lease) ParkFor(ms int64) time.Duration {
	most := held.lock.config.TTL
	if ms < 0 { // it has no TTL: somebody else's doing
		return most
	}
	// 0 is what is left of the last millisecond: not a reason to poll hot.
	return min(time.Duration(max(ms, 1))*time.Millisecond, most)
}

// ValidUntil is the TTL after the moment before the lock was last asked for or
// renewed.
func (held *Lease) ValidUntil() time.Time {
	held.mu.Lock()
	defer held.mu.Unlock()
	return held.until
}

// Lost is closed when the watchdog, Extend or Release finds that the lease is
// somebody else's or has run out.
func (held *Lease) Lost() <-chan struct{} {
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.lost == nil {
		held.lost = make(chan struct{})
		if held.gone {
			close(held.lost)
		}
	}
	return held.lost
}

func (held *Lease) lose() {
	held.mu.Lock()
	defer held.mu.Unlock()
	if !held.gone && held.lost != nil {
		close(held.lost)
	}
	held.gone = true
}

// Release gives up this hold; the last one of an owner frees the lock.
func (held *Lease) Release(ctx context.Context) error {
	held.lock.watchdog.forget(held)
	err := held.give(ctx)
	switch {
	case errors.Is(err, strategies.ErrNotHeld):
		held.lose()
		return err
	case err != nil:
		return fmt.Errorf("release %q: %w", held.Key, indeterminate.Because(ctx, err))
	}
	return nil
}

// give gives up the hold, or all of an owner that cannot hold twice: when it does,
// the client has sent the acquire again after a lost reply.
func (held *Lease) give(ctx context.Context) error {
	for {
		freed, err := held.lock.kind.Release(ctx, held.lock.client, held)
		if err != nil || freed || held.again {
			return err
		}
	}
}

// Extend makes the lease last ttl from now on; the watchdog, where it renews the lease,
// goes on from there and never with less than the Locker's own TTL.
func (held *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if held.lock.watchdog != nil && !held.fixed {
		ttl = max(ttl, held.lock.config.TTL)
	}
	ttl = ttl.Truncate(time.Millisecond)
	until := time.Now().Add(ttl)
	renewed, err := renewScript.Run(ctx, held.lock.client, []string{held.Key},
		max(ttl.Milliseconds(), 1), held.Owner).Int()
	if err != nil {
		return fmt.Errorf("extend %q: %w", held.Key, indeterminate.Because(ctx, err))
	}
	if renewed == 0 {
		held.lose()
		return strategies.ErrNotHeld
	}
	held.renewed(ttl, until)
	return nil
}

func (held *Lease) renewed(ttl time.Duration, until time.Time) {
	held.mu.Lock()
	defer held.mu.Unlock()
	held.ttl, held.until = ttl, until
}
