package lock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/lock"
)

// backend is an in-memory lock whose leases expire by the process's clock.
type backend struct {
	config goredis.Config

	mu     sync.Mutex
	free   chan struct{} // closed when a lease is given up
	owner  *lease
	tokens int64
	asked  []time.Duration // the TTLs of all attempts

	extended atomic.Int64
	// shortest, if not 0, limits the TTL of each Extend, as if an earlier extension with this TTL might still reach the
	// server.
	shortest time.Duration
	// extending, if not nil, is called by each Extend before the lease changes. It may block to delay Extend.
	extending func()
	// refusing, if not nil, is called by each Extend and Release. If it returns an error, the call fails with that error.
	refusing func() error
	closed   bool
}

var errBusy = errors.New("BUSY")

func (b *backend) refused() error {
	if b.refusing == nil {
		return nil
	}
	return b.refusing()
}

// lease is a lease of the backend b. The mutex of b guards it.
type lease struct {
	b     *backend
	token int64
	until time.Time
}

func (b *backend) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return b.AcquireFor(ctx, key, b.config.TTL)
}

func (b *backend) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	for {
		l, err := b.TryAcquireFor(ctx, key, ttl)
		if err == nil {
			return l, nil
		}
		b.mu.Lock()
		free, rest := b.free, time.Until(b.owner.until)
		b.mu.Unlock()
		select {
		case <-free:
		case <-time.After(rest):
		case <-ctx.Done():
			return nil, strategies.WaitEnded(ctx)
		}
	}
}

func (b *backend) TryAcquireFor(_ context.Context, _ string, ttl time.Duration) (strategies.Lease, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, ttl)
	if b.held(b.owner) {
		return nil, strategies.ErrHeld
	}
	b.tokens++
	b.owner, b.free = &lease{b: b, token: b.tokens, until: time.Now().Add(ttl)}, make(chan struct{})
	return b.owner, nil
}

func (b *backend) Close() error { b.closed = true; return nil }

// held reports whether l is the lease of the current owner and has not expired. The caller holds the mutex.
func (b *backend) held(l *lease) bool { return l != nil && b.owner == l && time.Now().Before(l.until) }

func (l *lease) ValidUntil() time.Time {
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	return l.until
}

func (l *lease) FencingToken() int64 { return l.token }

func (l *lease) Release(context.Context) error {
	if err := l.b.refused(); err != nil {
		return err
	}
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	if !l.b.held(l) {
		return strategies.ErrNotHeld
	}
	l.b.owner = nil
	close(l.b.free)
	return nil
}

func (l *lease) Extend(ctx context.Context, ttl time.Duration) error {
	l.b.extended.Add(1)
	if l.b.extending != nil {
		l.b.extending()
	}
	if err := errors.Join(ctx.Err(), l.b.refused()); err != nil {
		return err
	}
	l.b.mu.Lock()
	defer l.b.mu.Unlock()
	if !l.b.held(l) {
		return strategies.ErrNotHeld
	}
	if l.b.shortest > 0 {
		ttl = min(ttl, l.b.shortest)
	}
	l.until = time.Now().Add(ttl)
	return nil
}

// steal gives the lock to another owner, as may happen after a loss of data.
func (b *backend) steal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.owner = &lease{b: b, until: time.Now().Add(time.Hour)}
}

func open(t *testing.T, options ...lock.Option) (*lock.FencedLocker, *backend) {
	t.Helper()
	b := new(backend)
	locker, err := lock.OpenFenced(nil, func(c goredis.Config, b *backend) (*backend, error) {
		b.config = c
		return b, nil
	}, b, options)
	if err != nil {
		t.Fatal(err)
	}
	return locker, b
}

func acquire(t *testing.T, locker *lock.FencedLocker, options ...lock.CallOption) *lock.FencedLease {
	t.Helper()
	l, err := locker.Acquire(t.Context(), "key", options...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
