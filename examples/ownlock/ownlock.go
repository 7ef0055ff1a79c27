// Package ownlock is a lock in a module of its own: SET NX PX takes it, waiters poll, and a script gives it
// back if it is still the caller's.
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

// Options are what can be set with -s ownlock:poll=5ms.
type Options struct {
	Poll time.Duration `opt:"poll" help:"sleep between two tries"`
}

// Defaults returns the options of a lock without any.
func Defaults() Options { return Options{Poll: 10 * time.Millisecond} }

// Strategy says what the lock claims. The conformance suite tests each claim.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Name: "ownlock", Summary: "SET NX PX, polled", Capacity: 1, Nodes: 1,
		Claims: strategies.Claims{Exclusion: true, Recovery: true},
		Limits: []strategies.Limit{
			// The holder's clock says when its lease ends, the server's when the key does.
			strategies.ByRedisClock(),
			{
				Check:   "hanging server",
				Because: "its calls end with their contexts only if the client's ContextTimeoutEnabled is set",
			},
			{Check: "refused release", Because: "it does not repeat a release"},
		},
		Rights: strategies.Rights{Keys: []string{"{key}"}, Commands: []string{"set", "eval", "evalsha", "get", "del"}},
	}, Defaults(), Open)
}

// Locker is one instance's handle on the lock.
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

// Close ends the waits. Leases can still be released.
func (l *Locker) Close() error {
	l.close()
	return nil
}

// Acquire tries until the lock is held or ctx ends.
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

// try asks once. It returns neither a lease nor an error if another holds the lock.
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
		// The answer is lost or too late: nobody would release what Redis may have granted.
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
	token  string // whose it is
	until  time.Time
}

// ValidUntil returns when the lease ends, on this machine's clock.
func (held *Lease) ValidUntil() time.Time { return held.until }

var release = redis.NewScript(`
if redis.call('get', KEYS[1]) == ARGV[1] then
	return redis.call('del', KEYS[1])
end
return 0`)

// Release gives the lock back, or returns ErrNotHeld if another may have it by now.
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
