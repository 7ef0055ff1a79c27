package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
)

// All locks return these errors, most of them wrapped. A caller tests for them with errors.Is.
var (
	// ErrHeld is returned by TryAcquire when another client holds the lock, and by Acquire when Wait ends while another
	// client holds it.
	ErrHeld = strategies.ErrHeld
	// ErrNotHeld is returned by Release and Extend when the lease was lost before the call. When WithLock loses its lease,
	// ErrNotHeld is also the cause of the context that it passed to its function.
	ErrNotHeld = strategies.ErrNotHeld
	// ErrNoQuorum is returned by a lock on several nodes when fewer than a majority of them reply.
	ErrNoQuorum = strategies.ErrNoQuorum
	// ErrClosed is returned by Acquire and TryAcquire after Close.
	ErrClosed = strategies.ErrClosed
)

// Backend is the interface that a lock must implement for Open. Its leases must allow concurrent calls of Extend and
// Release. If ctx ends while Acquire waits for another holder, Acquire must return strategies.WaitEnded.
type Backend interface {
	strategies.Locker
	strategies.Termed
}

// Locker acquires locks for the goroutines of one process. It is safe for concurrent use; a process needs only one for
// all its goroutines and keys.
type Locker struct {
	backend  Backend
	settings settings
	single   bool // at least one client is not a cluster client

	ctx      context.Context // for the goroutines that watch leases
	stop     context.CancelFunc
	watchers background.Group
	renewals bounded.Calls // the watchdogs' calls of Extend
}

// Open returns a Locker for a lock on the given nodes; most locks use one node. The function open opens the lock with
// the lock's own options. Open is for packages that implement a lock; services call the function New of such a package.
// Open sends no command to Redis.
func Open[O any, B Backend](
	clients []redis.UniversalClient, open func(goredis.Config, O) (B, error), own O, options []Option,
) (*Locker, error) {
	s, err := newSettings(options)
	problems := []error{err}
	config, single := goredis.Config{Prefix: s.prefix, TTL: s.ttl}, false
	for _, client := range clients {
		node, err := goredis.NodeOf(client)
		problems = append(problems, err)
		single = single || !node.Clustered()
		config.Nodes = append(config.Nodes, node)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	backend, err := open(config, own)
	if err != nil {
		return nil, err
	}
	l := &Locker{backend: backend, settings: s, single: single}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// Acquire waits until the caller holds the lock on the key, until the time set by Wait is over, or until ctx ends. If
// ctx ends, Acquire returns the error of ctx. At the end of Wait the error is ErrHeld if another client held the lock.
// If Acquire was waiting for a reply from Redis at the end of Wait, the error says why no reply arrived, if the reason
// is known. After an error the caller does not hold the lock. If Redis may still grant it, the grant is released in the
// background.
func (l *Locker) Acquire(ctx context.Context, key string, options ...CallOption) (*Lease, error) {
	lease := new(Lease)
	if err := l.acquire(ctx, lease, key, options, false); err != nil {
		return nil, err
	}
	return lease, nil
}

// TryAcquire acquires the lock if it is free. When another client holds the lock, TryAcquire returns ErrHeld at once.
// After any other error the caller does not hold the lock either.
func (l *Locker) TryAcquire(ctx context.Context, key string, options ...CallOption) (*Lease, error) {
	lease := new(Lease)
	if err := l.acquire(ctx, lease, key, options, true); err != nil {
		return nil, err
	}
	return lease, nil
}

// acquire acquires the lock, fills in lease and calls the hooks. If try is true, it does not wait for another holder.
func (l *Locker) acquire(ctx context.Context, lease *Lease, key string, options []CallOption, try bool) error {
	s, err := l.settings.with(options)
	if err != nil {
		return fmt.Errorf("acquire %q: %w", key, err)
	}
	var start time.Time
	if s.hooks != nil {
		start = time.Now()
	}
	inner, err := l.ask(ctx, key, s, try)
	if l.single && redis.HasErrorPrefix(err, "MOVED") {
		err = fmt.Errorf("%w: the server is a node of a cluster: create the client with redis.NewClusterClient", err)
	}
	s.hooks.waited(ctx, key, start, err)
	if err != nil {
		return err
	}
	lease.begin(l, inner, key, s)
	s.hooks.acquired(ctx, lease)
	return nil
}

// ask calls the lock's Acquire or TryAcquire, for at most the time set by Wait. If that time ends while another client
// holds the lock, ask returns ErrHeld.
func (l *Locker) ask(ctx context.Context, key string, s settings, try bool) (strategies.Lease, error) {
	if try || s.waits && s.wait == 0 {
		return l.backend.TryAcquireFor(ctx, key, s.ttl)
	}
	if !s.waits {
		return l.backend.AcquireFor(ctx, key, s.ttl)
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.wait, ErrHeld) // strategies.WaitEnded returns this cause
	defer cancel()
	inner, err := l.backend.AcquireFor(limited, key, s.ttl)
	switch {
	case err == nil || !errors.Is(context.Cause(limited), ErrHeld):
		return inner, err
	case errors.Is(err, ErrHeld):
		err = ErrHeld // without the deadline error, because the caller set no deadline
	}
	return nil, fmt.Errorf("waited %v: %w", s.wait, err)
}

// Close ends the connections and goroutines that the Locker has opened, including watchdogs, and waits for their end.
// It waits at most two seconds for calls to which Redis does not reply. The client stays open. Leases can still be
// released.
func (l *Locker) Close() error {
	deadline := time.Now().Add(bounded.Patience)
	l.stop()
	err := l.backend.Close()
	l.watchers.Close()
	l.renewals.CloseBy(deadline)
	return err
}

// Unwrap returns the Locker of the lock's own package, which may have more methods than this one.
func (l *Locker) Unwrap() strategies.Locker { return l.backend }

// FencedLocker is a Locker whose leases have fencing tokens.
type FencedLocker struct{ *Locker }

// OpenFenced opens a lock as Open does. The leases of that lock must implement strategies.Fenced.
func OpenFenced[O any, B Backend](
	clients []redis.UniversalClient, open func(goredis.Config, O) (B, error), own O, options []Option,
) (*FencedLocker, error) {
	l, err := Open(clients, open, own, options)
	if err != nil {
		return nil, err
	}
	return &FencedLocker{l}, nil
}

// Acquire acquires the lock as Locker.Acquire does, and returns a lease with a fencing token.
func (l *FencedLocker) Acquire(ctx context.Context, key string, options ...CallOption) (*FencedLease, error) {
	lease := new(FencedLease)
	if err := l.acquire(ctx, &lease.Lease, key, options, false); err != nil {
		return nil, err
	}
	return lease, nil
}

// TryAcquire acquires the lock as Locker.TryAcquire does, and returns a lease with a fencing token.
func (l *FencedLocker) TryAcquire(ctx context.Context, key string, options ...CallOption) (*FencedLease, error) {
	lease := new(FencedLease)
	if err := l.acquire(ctx, &lease.Lease, key, options, true); err != nil {
		return nil, err
	}
	return lease, nil
}
