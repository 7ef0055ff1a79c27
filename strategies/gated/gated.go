// Package gated puts any strategy behind a plain mutex for each process and key:
// gated:spin is what a service has that takes a local lock before it asks Redis. It is
// the fair baseline for locks that hand over within a process.
//
// gated.md has the rest: what it guarantees, what breaks it, and what it costs.
package gated

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

//go:embed gated.md
var doc string

// Wrapper describes the gate, to be registered and named before a strategy's name.
func Wrapper() strategies.Wrapper {
	return strategies.Wrapper{
		Doc:     doc,
		Name:    "gated",
		Summary: "NAME behind a mutex: of a process's clients one at a time goes to Redis",
		Claims:  "NAME's, but for the order (FIFO, bounded overtaking) and re-entrance",
		Fits:    fits,
		Refine:  refine,
		Wrap:    New,
	}
}

// fits refuses a strategy that a mutex would change into something else.
func fits(info strategies.Info) error {
	switch {
	case info.Capacity == 0:
		return errors.New("it is no lock, so there is nothing to wait for before it")
	case info.Capacity > 1:
		return fmt.Errorf("it has %d holders at a time, and a mutex before it would let in one of a process",
			info.Capacity)
	}
	return nil
}

func refine(info strategies.Info) strategies.Info {
	info.Summary = "behind a mutex for each process and key: " + info.Summary
	info.Claims.FIFO, info.Claims.Bounded, info.Claims.Reentrant = false, false, false
	info.Limits = append(slices.Clone(info.Limits), strategies.Limit{
		Check:   "TTL of a call",
		Because: "a lease that ran out keeps others of its process waiting until it is released",
	})
	return info
}

// Locker lets one caller at a time through to another Locker.
type Locker struct {
	inner  strategies.Locker
	gates  gates
	closed atomic.Bool
}

// trier is the Locker of a strategy with a try-lock, and termed that of one that also has a
// TTL for each lease. A Locker has no Unwrap: calls must not pass the gate.
type (
	trier struct {
		*Locker
		inner strategies.Trier
	}
	termed struct {
		trier
		inner strategies.Termed
	}
)

// New returns a Locker before inner, which it closes. It has a try-lock if inner has, and
// a TTL for each lease if inner has both.
func New(inner strategies.Locker) strategies.Locker {
	l := &Locker{inner: inner}
	try, canTry := strategies.As[strategies.Trier](inner)
	term, hasTerms := strategies.As[strategies.Termed](inner)
	switch {
	case canTry && hasTerms:
		return &termed{trier{l, try}, term}
	case canTry:
		return &trier{l, try}
	}
	return l
}

// Prepare prepares the strategy.
func (l *Locker) Prepare(ctx context.Context, keys []string) error {
	if p, ok := strategies.As[strategies.Preparer](l.inner); ok {
		return p.Prepare(ctx, keys)
	}
	return nil
}

// Acquire waits until it is the caller's turn in the process, then for the lock.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.wait(ctx, key, func() (strategies.Lease, error) { return l.inner.Acquire(ctx, key) })
}

// AcquireFor is Acquire for a lease of ttl.
func (t *termed) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	return t.wait(ctx, key, func() (strategies.Lease, error) { return t.inner.AcquireFor(ctx, key, ttl) })
}

// TryAcquire tries once, unless somebody of this process holds the lock or waits.
func (t *trier) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return t.try(key, func() (strategies.Lease, error) { return t.inner.TryAcquire(ctx, key) })
}

// TryAcquireFor is TryAcquire for a lease of ttl.
func (t *termed) TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	return t.try(key, func() (strategies.Lease, error) { return t.inner.TryAcquireFor(ctx, key, ttl) })
}

func (l *Locker) wait(
	ctx context.Context, key string, acquire func() (strategies.Lease, error),
) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	if err := l.gates.enter(ctx, key); err != nil {
		return nil, fmt.Errorf("wait for %q in the process: %w", key, err)
	}
	return l.through(key, acquire)
}

func (l *Locker) try(key string, acquire func() (strategies.Lease, error)) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	if !l.gates.tryEnter(key) {
		return nil, strategies.ErrHeld
	}
	return l.through(key, acquire)
}

// through acquires a lease and wraps it, or lets the next one in.
func (l *Locker) through(key string, acquire func() (strategies.Lease, error)) (strategies.Lease, error) {
	held, err := acquire()
	if err != nil {
		l.gates.leave(key)
		return nil, err
	}
	return &lease{inner: held, gates: &l.gates, key: key}, nil
}

// Close closes the strategy. Leases can still be released as far as its own can.
func (l *Locker) Close() error {
	l.closed.Store(true)
	return l.inner.Close()
}
