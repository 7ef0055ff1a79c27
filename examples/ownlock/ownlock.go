// Package ownlock is an example of a lock outside lockbench's module. SET NX PX acquires the lock, waiters poll, and a
// script releases it if the caller still holds it.
package ownlock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// Options are the options of the strategy. For example, -s ownlock:poll=5ms sets Poll.
type Options struct {
	Poll time.Duration `opt:"poll" help:"sleep between two tries"`
}

// Defaults returns the options that apply unless the user sets others: a pause of 10 ms between two attempts.
func Defaults() Options { return Options{Poll: 10 * time.Millisecond} }

// Strategy describes the lock and its claims. The conformance suite tests each claim.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Name: "ownlock", Summary: "SET NX PX, polled", Capacity: 1, Nodes: 1,
		Claims: strategies.Claims{Exclusion: true, Recovery: true},
		Limits: []strategies.Limit{
			// The client computes the end of its lease with its own clock, but the key expires by the server's clock.
			strategies.ByRedisClock(),
			{
				Check:   "hanging server",
				Because: "a call ends with its context only if the client's ContextTimeoutEnabled is set",
			},
			{Check: "refused release", Because: "it does not repeat a release"},
		},
		Rights: strategies.Rights{Keys: []string{"{key}"}, Commands: []string{"set", "eval", "evalsha", "get", "del"}},
	}, Defaults(), Open)
}

// Locker is the lock of one application instance.
type Locker struct {
	config goredis.Config
	poll   time.Duration
	closed chan struct{}
	close  func()
}

// Open returns a Locker on the first node.
func Open(config goredis.Config, o Options) (*Locker, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("ownlock: %w", err)
	}
	if o.Poll <= 0 {
		return nil, fmt.Errorf("ownlock: poll must be positive, not %v", o.Poll)
	}
	closed := make(chan struct{})
	return &Locker{config, o.Poll, closed, sync.OnceFunc(func() { close(closed) })}, nil
}

// Close makes waiting clients return ErrClosed. Leases can still be released.
func (l *Locker) Close() error {
	l.close()
	return nil
}

// Acquire polls until it gets the lock, ctx ends or the Locker is closed.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	name := l.config.Key(key)
	for {
		select {
		case <-l.closed:
			return nil, strategies.ErrClosed
		default:
		}
		lease, err := l.try(ctx, name)
		if err != nil || lease != nil {
			return lease, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %q: %w", name, strategies.WaitEnded(ctx))
		case <-l.closed:
			return nil, strategies.ErrClosed
		case <-time.After(l.poll):
		}
	}
}

// try makes one attempt. If another client holds the lock, it returns neither a lease nor an error.
func (l *Locker) try(ctx context.Context, name string) (strategies.Lease, error) {
	lease := &Lease{client: l.config.Nodes[0].Client, name: name, token: rand.Text()}
	l.config.Probe.Attempt()
	lease.until = time.Now().Add(l.config.TTL) // before the request: Redis starts the TTL later
	args := redis.SetArgs{Mode: "NX", TTL: l.config.TTL}
	err := lease.client.SetArgs(ctx, name, lease.token, args).Err()
	switch late := time.Now().After(lease.until); {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil || late:
		// The reply was lost or came too late. Redis may have granted the lock, and no client would release it.
		settle, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer done()
		_ = lease.Release(settle)
		if late && err == nil {
			return nil, nil
		}
		return nil, fmt.Errorf("set %q: %w", name, errors.Join(ctx.Err(), err))
	}
	return lease, nil
}

// Lease is a held lock.
type Lease struct {
	client redis.UniversalClient
	name   string
	token  string // random value of the key, which identifies the owner
	until  time.Time
}

// ValidUntil returns the end of the lease by this machine's clock.
func (held *Lease) ValidUntil() time.Time { return held.until }

var release = redis.NewScript(`
if redis.call('get', KEYS[1]) == ARGV[1] then
	return redis.call('del', KEYS[1])
end
return 0`)

// Release frees the lock. It returns ErrNotHeld if the lease has expired, because another client may hold the lock.
func (held *Lease) Release(ctx context.Context) error {
	deleted, err := release.Run(ctx, held.client, []string{held.name}, held.token).Int()
	switch {
	case err != nil:
		return fmt.Errorf("release %q: %w", held.name, errors.Join(ctx.Err(), err))
	case deleted == 0:
		return strategies.ErrNotHeld
	}
	return nil
}
