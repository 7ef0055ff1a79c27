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

// The errors that all locks return, wrapped in what was being done.
var (
	// ErrHeld is returned by TryAcquire when another has the lock, and by Acquire when Wait
	// ends while another has it.
	ErrHeld = strategies.ErrHeld
	// ErrNotHeld is returned by Release and Extend when the lease had been lost before. It is
	// the cause of WithLock's context when the lease is lost.
	ErrNotHeld = strategies.ErrNotHeld
	// ErrNoQuorum is returned when too few nodes answer to reach a majority.
	ErrNoQuorum = strategies.ErrNoQuorum
	// ErrClosed is returned after Close.
	ErrClosed = strategies.ErrClosed
)

// Backend is a lock, as Open needs it. Its leases may be extended while they are
// released. A wait for another holder that ctx ends returns strategies.WaitEnded.
type Backend interface {
	strategies.Locker
	strategies.Termed
}

// Locker is one process's side of a lock. It is safe for concurrent use; a process needs
// one for all its goroutines and keys.
type Locker struct {
	backend  Backend
	settings settings
	single   bool // a client takes its server for a single one

	ctx      context.Context // for the goroutines that watch leases
	stop     context.CancelFunc
	watchers background.Group
	renewals bounded.Calls // of the watchdogs
}

// Open makes a Locker of a lock on these nodes; most locks have one. open opens the lock,
// with options of its own. Open is for packages that implement a lock; services call the New
// of such a package. It does not talk to Redis.
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

// Acquire waits until the lock on the key is the caller's, until Wait is over, or until ctx ends
// (its error). At the end of Wait the error is ErrHeld if the caller then waited for another to
// give the lock up. Where it waited for an answer of Redis's, it is what kept the answer from coming, as
// far as that is known. After an error nothing is held: what Redis may still grant is given back in the background.
func (l *Locker) Acquire(ctx context.Context, key string, options ...CallOption) (*Lease, error) {
	lease := new(Lease)
	if err := l.acquire(ctx, lease, key, options, false); err != nil {
		return nil, err
	}
	return lease, nil
}

// TryAcquire is Acquire without waiting: it returns ErrHeld at once when another has the
// lock.
func (l *Locker) TryAcquire(ctx context.Context, key string, options ...CallOption) (*Lease, error) {
	lease := new(Lease)
	if err := l.acquire(ctx, lease, key, options, true); err != nil {
		return nil, err
	}
	return lease, nil
}

// acquire fills in a lease.
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
		err = fmt.Errorf("%w: this is a node of a cluster, which needs a client of redis.NewClusterClient", err)
	}
	s.hooks.waited(ctx, key, start, err)
	if err != nil {
		return err
	}
	lease.begin(l, inner, key, s)
	s.hooks.acquired(ctx, lease)
	return nil
}

// ask asks the lock, for as long as the settings say.
func (l *Locker) ask(ctx context.Context, key string, s settings, try bool) (strategies.Lease, error) {
	if try || s.waits && s.wait == 0 {
		return l.backend.TryAcquireFor(ctx, key, s.ttl)
	}
	if !s.waits {
		return l.backend.AcquireFor(ctx, key, s.ttl)
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.wait, ErrHeld) // found again in strategies.WaitEnded
	defer cancel()
	inner, err := l.backend.AcquireFor(limited, key, s.ttl)
	switch {
	case err == nil || !errors.Is(context.Cause(limited), ErrHeld):
		return inner, err
	case errors.Is(err, ErrHeld):
		err = ErrHeld // its deadline is not the caller's
	}
	return nil, fmt.Errorf("waited %v: %w", s.wait, err)
}

// Close ends connections and goroutines that the Locker has opened, watchdogs too, and
// waits for them, for a call that Redis does not answer two seconds at most. The client stays open. Leases can still be
// released.
func (l *Locker) Close() error {
	deadline := time.Now().Add(bounded.Patience)
	l.stop()
	err := l.backend.Close()
	l.watchers.Close()
	l.renewals.CloseBy(deadline)
	return err
}

// Unwrap returns the lock behind the Locker.
func (l *Locker) Unwrap() strategies.Locker { return l.backend }

// FencedLocker is a Locker whose leases have fencing tokens.
type FencedLocker struct{ *Locker }

// OpenFenced is Open for a lock whose leases are strategies.Fenced.
func OpenFenced[O any, B Backend](
	clients []redis.UniversalClient, open func(goredis.Config, O) (B, error), own O, options []Option,
) (*FencedLocker, error) {
	l, err := Open(clients, open, own, options)
	if err != nil {
		return nil, err
	}
	return &FencedLocker{l}, nil
}

// Acquire is Locker.Acquire.
func (l *FencedLocker) Acquire(ctx context.Context, key string, options ...CallOption) (*FencedLease, error) {
	lease := new(FencedLease)
	if err := l.acquire(ctx, &lease.Lease, key, options, false); err != nil {
		return nil, err
	}
	return lease, nil
}

// TryAcquire is Locker.TryAcquire.
func (l *FencedLocker) TryAcquire(ctx context.Context, key string, options ...CallOption) (*FencedLease, error) {
	lease := new(FencedLease)
	if err := l.acquire(ctx, &lease.Lease, key, options, true); err != nil {
		return nil, err
	}
	return lease, nil
}
