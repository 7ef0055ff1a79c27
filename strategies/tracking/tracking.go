// Package tracking is a lock whose waiters are woken by client-side caching: Redis
// remembers that a connection has looked at the lock, and tells when it changes.
// The holder tells nobody anything, and a lock that expires is told like any other.
//
// An uncontended acquire is one SET, a release one EVALSHA that does a GET and a
// DEL: one round trip each. A waiter tries once and parks; its Locker looks at the
// lock with one PTTL, which leaves a mark in Redis that the next change uses up. A
// change wakes one waiter of each Locker that has looked, the longest waiting, which
// tries once more: one SET. Then the Locker looks again for those who wait on, one
// PTTL for each wake-up, many locks in one round trip. Finding the lock free wakes the
// next waiter at once. P processes make P attempts and P looks for each release.
// Newcomers may barge in between.
//
// A Locker has two connections of its own: the one that looks (CLIENT TRACKING ON
// REDIRECT), and the one that is told (subscribed to __redis__:invalidate), both in
// RESP2. Whichever breaks, all locks that are waited for are looked at again over the
// new one. PTTL is what is looked at because it also says how long a dead holder's
// lock may last: one waiter tries after that, told or not.
//
// It guarantees exclusion while a lease is valid, frees a dead holder's lock after
// the TTL, and lets nobody but the owner release or extend. The lock is one key, and
// there is no other.
//
// What breaks it: a holder that works on past ValidUntil; a failover to a replica
// that had not seen the SET. An Extend is a change too and wakes in vain. A connection
// that is told and is dead without being closed costs a PTTL for each wake-up until
// TCP notices. Redis forgets the oldest marks when there are more than
// tracking-table-max-keys, and wakes in vain then. With a client that retries by
// itself (MaxRetries other than -1), a SET whose reply was lost is sent again, finds
// the caller's own token and waits for it to expire.
package tracking

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/owner"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Name:        "tracking",
		Summary:     "client-side-caching invalidation wakes one waiter a process, also when a lock expires",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true},
		Capacity:    1,
		Nodes:       1,
		NoCluster:   noCluster,
		Connections: strategies.Connections{PerInstance: 2},
		Limits:      []strategies.Limit{strategies.ByRedisClock()},
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Channels: []string{"__redis__:invalidate"},
			Commands: []string{"set", "pttl", "client|id", "client|tracking", "subscribe", "ping", "eval", "evalsha", "get", "del", "pexpire", "script|load"},
		},
	}, Options{}, Open)
}

const noCluster = "a cluster's nodes cannot all redirect to one connection"

// Options are none.
type Options struct{}

// Locker is one process's side of the lock.
type Locker struct {
	config  goredis.Config
	client  redis.UniversalClient
	owners  *owner.Names
	tracker *tracker
	closed  atomic.Bool
}

// Open returns a Locker on the first node, which must not be a cluster. It does not
// talk to Redis yet.
func Open(config goredis.Config, _ Options) (*Locker, error) {
	node, err := goredis.Server(config, "tracking", noCluster)
	if err != nil {
		return nil, err
	}
	return &Locker{config: config, client: node.Client, owners: owner.New(), tracker: newTracker(node, config.TTL)}, nil
}

// Prepare loads the release script and opens both connections.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	if err := token.Load(ctx, l.client); err != nil {
		return err
	}
	return l.tracker.connect(ctx)
}

// Acquire waits until the lock is held or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.begin(key)
	if err != nil {
		return nil, err
	}
	taken, err := l.tryAgain(ctx, held)
	if err != nil {
		return nil, err
	}
	if !taken {
		if err := l.wait(ctx, held); err != nil {
			return nil, err
		}
	}
	return held, nil
}

// TryAcquire tries once.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.begin(key)
	if err != nil {
		return nil, err
	}
	taken, err := l.try(ctx, held)
	if err != nil {
		return nil, err
	}
	if !taken {
		return nil, strategies.ErrHeld
	}
	return held, nil
}

// Close ends the tracking. Leases can still be released.
func (l *Locker) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return l.tracker.close()
}

func (l *Locker) begin(key string) (*token.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	return &token.Lease{Client: l.client, Name: l.config.Key(key), Token: l.owners.Next()}, nil
}

// wait parks until the lock is the caller's.
func (l *Locker) wait(ctx context.Context, held *token.Lease) error {
	w := l.tracker.join(held.Name)
	for {
		var err error
		select {
		case err = <-w.wake:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			l.tracker.tried(w, true)
			return fmt.Errorf("wait for %q: %w", held.Name, err)
		}
		taken, err := l.tryAgain(ctx, held)
		l.config.Probe.Wake(taken)
		over := taken || err != nil
		l.tracker.tried(w, over)
		if over {
			return err
		}
	}
}

// tryAgain makes one attempt for a caller that makes more.
func (l *Locker) tryAgain(ctx context.Context, held *token.Lease) (bool, error) {
	taken, err := l.try(ctx, held)
	return taken, validity.UnlessLate(err)
}

// try makes one attempt. After an error the lock is not held.
func (l *Locker) try(ctx context.Context, held *token.Lease) (bool, error) {
	l.config.Probe.Attempt()
	return held.Try(ctx, l.config.TTL, func() (bool, error) {
		return l.client.SetNX(ctx, held.Name, held.Token, l.config.TTL).Result()
	})
}
