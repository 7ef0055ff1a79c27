// Package gated puts any strategy behind a plain mutex for each process and key:
// gated:spin is what a service has that takes a local lock before it asks Redis. It is
// the fair baseline for locks that hand over within a process.
//
// Of all callers of one Locker one at a time goes on to the strategy, holds its lease
// and releases it; the others wait in the process and cost Redis nothing. An acquire,
// a wait and a release cost what the strategy's cost for one caller a process.
//
// The mutex is a channel with room for one: Go serves those who wait to send in the
// order in which they came and hands over directly, so nobody barges, and a wait ends
// with its context, which that for a sync.Mutex does not. FIFO is lost all the same,
// as the processes' turns follow the strategy; and no bound on overtaking is left, as the
// next of a process asks the strategy only when the one before him has released. Re-entrance
// is lost too: the owner would wait for itself.
//
// What else the strategy guarantees is kept, and what its leases can do. What breaks
// it: a holder that is stuck keeps its process's others out although its lease has run
// out.
package gated

import (
	"context"
	_ "embed" // the package comment
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/lockbench/lockbench/strategies"
)

//go:embed gated.go
var source string

func init() {
	strategies.RegisterWrapper(strategies.Wrapper{
		Name:    "gated",
		Summary: "NAME behind a mutex: of a process's clients one at a time goes to Redis",
		Claims:  "NAME's, but for the order (FIFO, bounded overtaking) and re-entrance",
		Fits:    fits,
		Refine:  refine,
		Wrap:    New,
	})
}

// fits refuses what a mutex would make something else of.
func fits(info strategies.Info) error {
	switch {
	case info.Capacity == 0:
		return errors.New("it is no lock, so there is nothing to wait for before it")
	case info.Capacity > 1:
		return fmt.Errorf("it has %d holders at a time, and a mutex before it would let in one of a process", info.Capacity)
	}
	return nil
}

func refine(info strategies.Info) strategies.Info {
	info.Summary = "behind a mutex for each process and key: " + info.Summary
	info.Doc = strategies.PackageComment(source) + "\n" + info.Doc
	info.Claims.FIFO, info.Claims.Bounded, info.Claims.Reentrant = false, false, false
	return info
}

// Locker lets one caller at a time through to another Locker.
type Locker struct {
	inner  strategies.Locker
	gates  gates
	closed atomic.Bool
}

// trier is the Locker of a strategy with a try-lock.
type trier struct {
	*Locker
	inner strategies.Trier
}

// New returns a Locker before inner, which it closes. It has a try-lock if inner has.
func New(inner strategies.Locker) strategies.Locker {
	l := &Locker{inner: inner}
	if t, ok := inner.(strategies.Trier); ok {
		return &trier{l, t}
	}
	return l
}

// Prepare prepares the strategy.
func (l *Locker) Prepare(ctx context.Context, keys []string) error {
	if p, ok := l.inner.(strategies.Preparer); ok {
		return p.Prepare(ctx, keys)
	}
	return nil
}

// Acquire waits for the process's turn to be the caller's, then for the lock.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	if err := l.gates.enter(ctx, key); err != nil {
		return nil, fmt.Errorf("wait for %q in the process: %w", key, err)
	}
	held, err := l.inner.Acquire(ctx, key)
	return l.through(key, held, err)
}

// TryAcquire tries once, unless somebody of this process holds the lock or waits.
func (t *trier) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	if t.closed.Load() {
		return nil, strategies.ErrClosed
	}
	if !t.gates.tryEnter(key) {
		return nil, strategies.ErrHeld
	}
	held, err := t.inner.TryAcquire(ctx, key)
	return t.through(key, held, err)
}

// through wraps the lease, or lets the next one in.
func (l *Locker) through(key string, held strategies.Lease, err error) (strategies.Lease, error) {
	if err != nil {
		l.gates.leave(key)
		return nil, err
	}
	return wrap(&lease{inner: held, gates: &l.gates, key: key}), nil
}

// Close closes the strategy. Leases can still be released as far as its own can.
func (l *Locker) Close() error {
	l.closed.Store(true)
	return l.inner.Close()
}
