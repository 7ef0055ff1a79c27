package redisson

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// Lease is one hold of a lock by an owner. The mutex is for the watchdog, which renews it
// while its holder uses it.
type Lease struct {
	Key   string        // the lock's, in Redis
	Owner string        // as Redis knows it
	Wait  time.Duration // how long the caller would wait; 0 for a try-lock
	Fence int64         // set by a Kind that has fencing tokens

	lock   *Lock
	term   time.Duration // the TTL asked for, in whole milliseconds
	brief  bool          // it may end sooner than waiters expect
	fixed  bool          // the watchdog leaves it alone
	again  bool          // the owner may hold it more than once
	as     string        // with again: the owner's name, of which Owner may be a later one
	stay   int           // with again: how many of the owner's holds a release leaves
	unsure bool          // with again: a release was not answered, and may be repeated
	asked  bool          // Redis may have heard of the owner

	until validity.Until

	mu   sync.Mutex
	ttl  time.Duration // for which the watchdog renews it
	gone bool          // known to be lost
	lost chan struct{} // nil until Lost is called
}

// TTL returns the TTL that was asked for, in milliseconds.
func (held *Lease) TTL() int64 { return held.term.Milliseconds() }

// Stay returns how many holds of the owner a release leaves; "" means one fewer than there are.
func (held *Lease) Stay() any {
	if held.again {
		return held.stay
	}
	return ""
}

// Brief says that the lease is shorter than the Locker's leases. Waiters may be parked for
// longer, and must look.
func (held *Lease) Brief() bool { return held.brief }

// Topic returns where the lock's release is told on that channel.
func (held *Lease) Topic(channel string) Topic { return held.lock.herald.Topic(held.Key, channel) }

// ParkFor returns how long to wait on a lock that has ms left by PTTL: at most the Locker's
// TTL, because the next holder's lease may end sooner than this one's, without a message.
func (held *Lease) ParkFor(ms int64) time.Duration {
	most := held.lock.config.TTL
	if ms < 0 { // it has no TTL: another program has set it
		return most
	}
	// 0 means less than a millisecond: wait for one, do not poll without a pause.
	return min(time.Duration(max(ms, 1))*time.Millisecond, most)
}

// ValidUntil returns the moment before the lock was last asked for or renewed, plus the TTL.
func (held *Lease) ValidUntil() time.Time { return held.until.Get() }

// Lost returns a channel that is closed when the watchdog, Extend or Release finds that
// another owner has the lock or that the lease has run out.
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
	held.lock.holds.remove(held)
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

// give gives up the hold. An owner that cannot hold twice gives up all holds: it has a second
// one if the client sent the acquire again after a lost reply.
func (held *Lease) give(ctx context.Context) error {
	if held.again {
		return held.giveOne(ctx)
	}
	for {
		freed, err := held.lock.kind.Release(ctx, held.lock.client, held)
		if err != nil || freed {
			return err
		}
	}
}

// giveOne gives up one hold of an owner that may have more.
func (held *Lease) giveOne(ctx context.Context) error {
	h := held.lock.holds
	defer h.lock(held)()
	stay, known := h.remove(held)
	if !known && !held.unsure { // it was released, or lost
		return strategies.ErrNotHeld
	}
	held.stay = stay
	_, err := held.lock.kind.Release(ctx, held.lock.client, held)
	held.unsure = err != nil && !errors.Is(err, strategies.ErrNotHeld)
	if stay == 0 && indeterminate.MayHaveRun(err) && !errors.Is(err, strategies.ErrNotHeld) {
		h.retire(held)
	}
	return err
}

// Extend makes the lease last ttl from now on, or after an error at most that long. If the
// watchdog renews the lease, ttl is at least the Locker's own, and the watchdog continues
// with it.
func (held *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	if held.lock.watchdog != nil && !held.fixed {
		ttl = max(ttl, held.lock.config.TTL)
	}
	ttl = ttl.Truncate(time.Millisecond)
	answer := held.extending(ttl)
	renewed, err := renewScript.Run(ctx, indeterminate.ScriptsOnce{Scripter: held.lock.client}, []string{held.Key},
		max(ttl.Milliseconds(), 1), held.Owner, held.again).Int()
	answer(renewed == 1, indeterminate.MayHaveRun(err))
	if err != nil {
		return fmt.Errorf("extend %q: %w", held.Key, indeterminate.Because(ctx, err))
	}
	if renewed == 0 {
		held.lose()
		return strategies.ErrNotHeld
	}
	held.mu.Lock()
	held.ttl = ttl
	held.mu.Unlock()
	return nil
}

// extending is called before a renewal is sent, and the func with its answer. That of an owner
// who may hold the lock more than once never shortens a lease.
func (held *Lease) extending(ttl time.Duration) (answer func(done, open bool)) {
	sent := time.Now()
	if !held.again {
		return held.until.Extending(sent, ttl)
	}
	return func(done, _ bool) {
		if done {
			held.until.Raise(sent.Add(ttl))
		}
	}
}

// renewal returns the TTL for which the watchdog renews the lease.
func (held *Lease) renewal() time.Duration {
	held.mu.Lock()
	defer held.mu.Unlock()
	return held.ttl
}
