package redisson

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/owner"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// Kind is what differs between the locks of the family: what they say to Redis.
type Kind interface {
	// Scripts returns the scripts to load before the first acquire.
	Scripts() []*redis.Script
	// Acquire asks for the lock once; an owner that has it gets one more hold. If another
	// owner has it, left is how long to park at most.
	Acquire(ctx context.Context, client redis.Scripter, held *Lease) (taken bool, left time.Duration, err error)
	// Granted returns a lease that was acquired, as its holder gets it.
	Granted(held *Lease) strategies.Lease
	// Release gives up one hold, or all but held.Stay(), and says whether it was the owner's last.
	// It returns ErrNotHeld when the owner has none. It publishes by the command of held's Topic.
	Release(ctx context.Context, client redis.Scripter, held *Lease) (freed bool, err error)
	// Channel returns where a waiter for that lease is told of a release.
	Channel(held *Lease) string
}

// Queuer is a Kind whose waiters are in a queue in Redis. A waiter that gives up
// leaves it.
type Queuer interface {
	Leave(ctx context.Context, held *Lease) error
}

// Lock is one process's side of a lock of the family, a strategies.Locker. Its waiters share
// a line, and its holders share a watchdog.
type Lock struct {
	config   goredis.Config
	client   redis.UniversalClient
	kind     Kind
	line     Line
	herald   *Herald
	owners   *owner.Names
	watchdog *watchdog // nil without renewals
	holds    *holds    // of owners that may hold the lock more than once
	blind    bool
	closed   atomic.Bool
}

// Ways are how a Lock may be used.
type Ways struct {
	Renew bool // a watchdog renews the leases without a TTL of their own
	Blind bool // waiters do not try again after subscribing: wake-ups get lost
}

// NewLock returns a lock on the first node, which it does not talk to yet. The lock's Close
// closes the line.
func NewLock(config goredis.Config, kind Kind, line Line, herald *Herald, ways Ways) *Lock {
	config.TTL = config.TTL.Truncate(time.Millisecond)
	l := &Lock{
		config: config, client: config.Nodes[0].Client, kind: kind,
		line: line, herald: herald, owners: owner.New(), holds: newHolds(), blind: ways.Blind,
	}
	if ways.Renew {
		l.watchdog = newWatchdog(l.client, config.TTL)
	}
	return l
}

// Prepare loads the scripts and opens the connections that waiters need.
func (l *Lock) Prepare(ctx context.Context, _ []string) error {
	if err := goredis.Load(ctx, l.client, l.kind.Scripts()...); err != nil {
		return err
	}
	return l.herald.Open(ctx, l.line)
}

// Acquire waits until the lock is held or ctx ends.
func (l *Lock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, l.lease(key, l.owners.Next()))
}

// AcquireFor is Acquire for a lease of ttl, which the watchdog does not renew: what
// Redisson calls a lease time. ttl is at least 1 ms.
func (l *Lock) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	held, err := l.leaseFor(key, ttl)
	if err != nil {
		return nil, err
	}
	return l.acquire(ctx, held)
}

// AcquireAs is Acquire for an owner that may hold the lock already: all acquires of one
// Locker in the same owner's name belong to one holder. An owner is like a thread: it does
// not wait for one lock twice at the same time.
//
// An acquire whose reply was lost may leave the owner one hold too many in Redis. The release of
// its last lease ends all of them; without another lease of the owner, the TTL does.
func (l *Lock) AcquireAs(ctx context.Context, key, owner string) (strategies.Lease, error) {
	as := l.owners.Of(owner)
	held := l.lease(key, l.holds.name(l.config.Key(key), as))
	held.again, held.as = true, as
	return l.acquire(ctx, held)
}

// TryAcquire tries once.
func (l *Lock) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.tryAcquire(ctx, l.lease(key, l.owners.Next()))
}

// TryAcquireFor tries once for a lease like AcquireFor's.
func (l *Lock) TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	held, err := l.leaseFor(key, ttl)
	if err != nil {
		return nil, err
	}
	return l.tryAcquire(ctx, held)
}

func (l *Lock) tryAcquire(ctx context.Context, held *Lease) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	taken, _, err := l.try(ctx, held)
	if err != nil {
		return nil, fmt.Errorf("acquire %q: %w", held.Key, indeterminate.Because(ctx, err))
	}
	if !taken {
		return nil, strategies.ErrHeld
	}
	return l.kind.Granted(held), nil
}

// Close ends the subscriptions and the watchdog. Leases can still be released.
func (l *Lock) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	if l.watchdog != nil {
		l.watchdog.close()
	}
	return l.line.Close()
}

func (l *Lock) lease(key, owner string) *Lease {
	return &Lease{lock: l, Key: l.config.Key(key), Owner: owner, term: l.config.TTL, ttl: l.config.TTL}
}

func (l *Lock) leaseFor(key string, ttl time.Duration) (*Lease, error) {
	held := l.lease(key, l.owners.Next())
	ttl, err := validity.TTL(ttl)
	if err != nil {
		return nil, fmt.Errorf("acquire %q: %w", held.Key, err)
	}
	held.term, held.fixed, held.brief = ttl, true, ttl < l.config.TTL
	return held, nil
}

func (l *Lock) acquire(ctx context.Context, held *Lease) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	held.Wait = math.MaxInt64
	if deadline, ok := ctx.Deadline(); ok {
		held.Wait = max(time.Until(deadline), 1)
	}
	try := func() (bool, time.Duration, error) {
		taken, left, err := l.try(ctx, held)
		return taken, left, validity.UnlessLate(err)
	}
	taken, left, err := try()
	if err == nil && !taken {
		if l.blind {
			try = onceKnown(left, try)
		}
		err = Wait(ctx, l.line, held.Topic(l.kind.Channel(held)), l.config.Probe, held.brief, try)
	}
	if err != nil {
		l.giveUp(ctx, held)
		return nil, fmt.Errorf("acquire %q: %w", held.Key, indeterminate.Because(ctx, err))
	}
	return l.kind.Granted(held), nil
}

// onceKnown returns a try whose first call returns the known result of an earlier one.
func onceKnown(left time.Duration, try func() (bool, time.Duration, error)) func() (bool, time.Duration, error) {
	known := true
	return func() (bool, time.Duration, error) {
		if known {
			known = false
			return false, left, nil
		}
		return try()
	}
}

// try makes one attempt. After an error the lock is not held; after validity.ErrLate the
// caller may try again.
func (l *Lock) try(ctx context.Context, held *Lease) (taken bool, left time.Duration, err error) {
	if err := l.herald.Learn(ctx); err != nil {
		return false, 0, err
	}
	until := time.Now().Add(held.term)
	taken, left, err = l.kind.Acquire(ctx, l.client, held)
	l.config.Probe.Attempt() // counted after the answer: it saw all that was done before
	held.asked = held.asked || err == nil || indeterminate.MayHaveRun(err)
	late := taken && !time.Now().Before(until)
	switch {
	case late:
		taken, left, err = false, time.Millisecond, validity.ErrLate
	case taken:
		held.until.Set(until)
		if held.again {
			for _, other := range l.holds.add(held) {
				l.watchdog.forget(other)
				other.lose()
			}
		}
		if !held.fixed {
			l.watchdog.watch(held)
		}
	}
	if late || indeterminate.MayHaveRun(err) && !held.again {
		settle, done := indeterminate.Settle(ctx)
		defer done()
		// Nothing more can be done about a failure here: the TTL frees the lock.
		held.unsure = held.again // it is no hold yet
		_ = held.give(settle)
	}
	return taken, left, err
}

// giveUp removes what a failed wait left in Redis. If that fails too, it runs out.
func (l *Lock) giveUp(ctx context.Context, held *Lease) {
	queuer, ok := l.kind.(Queuer)
	if !ok || !held.asked {
		return
	}
	settle, done := indeterminate.Settle(ctx)
	defer done()
	_ = queuer.Leave(settle, held)
}
