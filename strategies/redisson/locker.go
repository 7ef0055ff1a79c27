package redisson

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pending"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// protocol contains the operations that differ between RLock, RFairLock, RFencedLock and RSpinLock.
type protocol interface {
	// scripts returns the scripts to load before the first acquire.
	scripts() []*redis.Script
	// acquire sends the acquire script once. If the owner already has the lock, it gets one more hold. acquire may outlast
	// its caller, so it must not change held.
	acquire(ctx context.Context, client redis.Scripter, held *lease) (answer, error)
	// granted converts an acquired lease to the lease that Acquire returns to its caller.
	granted(held *lease) strategies.Lease
	// release sends the release script once. The script releases a single hold of the owner if the argument one is true,
	// and otherwise all holds. release returns ErrNotHeld if the owner has no hold. The release of the last hold is
	// published on held's topic.
	release(ctx context.Context, client redis.Scripter, held *lease, one bool) error
	// channel returns the channel on which a waiter for the lease receives releases.
	channel(held *lease) string
}

// answer is the parsed reply to an acquire.
type answer struct {
	taken bool
	left  time.Duration // the longest time to park if another owner has the lock
	fence int64         // the token of fenced, if the lock was acquired
}

// queuer is a protocol with a queue of waiters in Redis. leave removes a waiter that has given up.
type queuer interface {
	leave(ctx context.Context, held *lease)
}

// Locker gives the clients of one process access to all locks of one kind, such as pubsub or fair. Its holders share a
// watchdog. Its waiters share a subscription, except in pubsub-broadcast and redisson-spin. It implements
// strategies.Locker, Trier, Termed, Reentrant and Preparer; the leases of fenced implement strategies.Fenced.
type Locker struct {
	parts
	config   goredis.Config
	client   redis.UniversalClient
	owners   *token.Names
	holders  holders
	releases pending.Releases
	watchdog *watchdog // nil if leases are not renewed
	closed   atomic.Bool
}

// parts contains everything that differs between the kinds of Locker, such as pubsub and fair.
type parts struct {
	protocol protocol
	notifier redisson.Notifier
	herald   *redisson.Herald
	renew    bool   // a watchdog renews the leases, except those of AcquireFor
	blind    bool   // waiters do not try again after subscribing, so they may miss a release
	sleeps   bool   // waiters do not try again when the holder's TTL has expired
	finish   func() // ends the goroutines of the protocol; may be nil
}

// newLocker returns a Locker on the only node of config. It sends no command to Redis.
func newLocker(config goredis.Config, p parts) *Locker {
	config.TTL = config.TTL.Truncate(time.Millisecond)
	l := &Locker{parts: p, config: config, client: config.Nodes[0].Client, owners: token.NewNames()}
	if p.renew {
		l.watchdog = newWatchdog(l.client, config.TTL)
	}
	return l
}

// Prepare loads the scripts and opens the connections that waiters need, so that the first Acquire does not have to. It
// ignores the keys.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	load := func() error { return goredis.Load(ctx, l.client, l.protocol.scripts()...) }
	if err := l.releases.Calls.Do(ctx, load); err != nil {
		return err
	}
	return l.herald.Open(ctx, l.notifier)
}

// Acquire waits until the caller has the lock or ctx ends. After an error the caller does not hold the lock; if Redis
// may have granted it, the grant is released in the background.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, l.lease(key, l.owners.Next()), false)
}

// TryAcquire makes one attempt and does not wait. It returns ErrHeld if another owner has the lock.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, l.lease(key, l.owners.Next()), true)
}

// AcquireFor acquires the lock as Acquire does, but with a lease of ttl that the watchdog does not renew. Redisson
// calls ttl the lease time. A ttl below 1 ms is an error.
func (l *Locker) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	return l.acquireFor(ctx, key, ttl, false)
}

// TryAcquireFor makes one attempt to acquire the lock with a lease of ttl, which the watchdog does not renew.
func (l *Locker) TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	return l.acquireFor(ctx, key, ttl, true)
}

// AcquireAs acquires the lock as Acquire does, for an owner that may already hold it. All acquires of one Locker with
// the same owner's name belong to one holder. Like a thread, an owner must not wait for the same lock twice at the same
// time.
//
// If the reply to an acquire is lost, the owner may have one hold in Redis without a lease. The release of the owner's
// last lease ends all its holds.
func (l *Locker) AcquireAs(ctx context.Context, key, owner string) (strategies.Lease, error) {
	of := l.holders.find(hold{l.config.Key(key), owner}, l.owners.Next)
	held := l.lease(key, of.name)
	held.holder = of
	return l.acquire(ctx, held, false)
}

// Close ends the subscriptions and the watchdog, and repeats the releases to which Redis has not replied. Leases can
// still be released. If Redis does not reply, Close returns after two seconds.
func (l *Locker) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	var closing sync.WaitGroup // concurrent, because each may take two seconds
	if l.watchdog != nil {
		closing.Go(l.watchdog.close)
	}
	if l.finish != nil {
		closing.Go(l.finish)
	}
	closing.Go(l.releases.Close)
	closing.Go(l.herald.Close)
	err := l.notifier.Close()
	closing.Wait()
	return err
}

func (l *Locker) lease(key, owner string) *lease {
	return &lease{locker: l, key: l.config.Key(key), owner: owner, term: l.config.TTL, ttl: l.config.TTL}
}

func (l *Locker) acquireFor(ctx context.Context, key string, ttl time.Duration, once bool) (strategies.Lease, error) {
	held := l.lease(key, l.owners.Next())
	ttl, err := validity.TTL(ttl)
	if err != nil {
		return nil, fmt.Errorf("acquire %q: %w", held.key, err)
	}
	held.term, held.fixed, held.brief = ttl, true, ttl < l.config.TTL
	return l.acquire(ctx, held, once)
}

// If once is true, acquire makes one attempt; otherwise it waits until the caller has the lock. A waiter of fair that
// gives up is removed from the queue.
func (l *Locker) acquire(ctx context.Context, held *lease, once bool) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	if !once {
		held.wait = math.MaxInt64
		if deadline, ok := ctx.Deadline(); ok {
			held.wait = max(time.Until(deadline), 1)
		}
	}
	taken, left, err := l.try(ctx, held)
	if !once && !taken && validity.UnlessLate(err) == nil {
		err = l.park(ctx, held, left)
		taken = err == nil
	}
	switch {
	case err != nil:
		l.giveUp(ctx, held)
		return nil, fmt.Errorf("acquire %q: %w", held.key, indeterminate.Because(ctx, err))
	case !taken:
		return nil, strategies.ErrHeld
	}
	return l.protocol.granted(held), nil
}

// park waits until the caller has the lock. left is the longest time until the next try.
func (l *Locker) park(ctx context.Context, held *lease, left time.Duration) error {
	w := redisson.Waiting{
		Notifier: l.notifier, Topic: held.topic(l.protocol.channel(held)), Probe: l.config.Probe, Left: left, Blind: l.blind,
		Brief: held.brief,
	}
	return w.Wait(ctx, func() (bool, time.Duration, error) {
		taken, left, err := l.try(ctx, held)
		if l.sleeps {
			left = math.MaxInt64
		}
		return taken, left, validity.UnlessLate(err)
	})
}

// try makes one attempt. After an error the caller does not hold the lock; if Redis may have granted the lock, try
// releases it. After validity.ErrLate the caller may try again.
func (l *Locker) try(ctx context.Context, held *lease) (taken bool, left time.Duration, err error) {
	if err := l.herald.Learn(ctx); err != nil {
		return false, 0, err
	}
	until := time.Now().Add(held.term)
	got, err := bounded.Get(ctx, &l.releases.Calls, func() (answer, error) {
		return l.protocol.acquire(ctx, l.client, held)
	})
	l.config.Probe.Attempt() // after the reply, so that tests know that Redis has executed each counted attempt
	open := pending.Asked(err)
	switch {
	case open != nil:
		held.asked, held.open = true, open
		l.undo(ctx, held)
	case err != nil:
	case got.taken && !time.Now().Before(until):
		held.asked = true
		return false, time.Millisecond, l.undoLate(ctx, held)
	case got.taken:
		held.asked, held.fence = true, got.fence
		held.until.Set(until)
		if held.holder != nil {
			l.holders.add(held)
		}
		if !held.fixed {
			l.watchdog.watch(held)
		}
	default:
		held.asked = true
	}
	return got.taken, got.left, err
}

// undo releases the lock that an acquire without a reply may have taken. If the owner has other leases, the release of
// the last lease undoes the acquire instead.
func (l *Locker) undo(ctx context.Context, held *lease) {
	if held.holder != nil && l.holders.leaveOpen(held.holder, held.open) {
		return
	}
	l.releases.GiveBack(ctx, l.release(held, held.term, held.open))
}

// undoLate releases a lock that was granted too late. It returns validity.ErrLate only after the release has succeeded,
// because a release that is still under way could undo the same owner's next acquire.
func (l *Locker) undoLate(ctx context.Context, held *lease) error {
	if held.holder != nil && l.holders.count(held.holder) > 0 {
		return validity.ErrLate
	}
	err := l.releases.Release(ctx, l.release(held, held.term, nil))
	if err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		return fmt.Errorf("release a lock that was granted too late: %w", err)
	}
	return validity.ErrLate
}

// release returns what pending.Releases needs to repeat the release of all holds of held's owner. ttl is the longest
// time for which Redis keeps the lock. open is closed at the end of an acquire that got no reply, see lease.open.
func (l *Locker) release(held *lease, ttl time.Duration, open <-chan struct{}) *pending.Release {
	return &pending.Release{TTL: ttl, Asked: open, Send: func(ctx context.Context) error {
		return l.protocol.release(ctx, l.client, held, false)
	}}
}

// giveUp removes a waiter whose acquire has failed from the queue in Redis. It does nothing for a protocol without a
// queue, or if the waiter cannot have been queued.
func (l *Locker) giveUp(ctx context.Context, held *lease) {
	q, ok := l.protocol.(queuer)
	if !ok || !held.asked || held.wait == 0 {
		return
	}
	q.leave(ctx, held)
}
