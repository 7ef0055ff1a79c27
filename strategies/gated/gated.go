// Package gated puts any strategy behind a plain mutex for each process and key. gated:spin models a service that takes
// a local lock before it sends a request to Redis. It is the appropriate baseline for locks that hand over within a
// process.
//
//  1. Acquire takes the mutex of the key, and then acquires the strategy's lock.
//  2. Other callers of the process wait for the mutex, in the order of arrival, and send nothing.
//  3. Release releases the strategy's lease, and then the mutex.
//
// A release wakes the longest waiting caller of the process, which then acquires the strategy's lock. The order of the
// processes depends on the strategy.
//
// gated.md describes guarantees, costs and failure modes.
package gated

import (
	"context"
	_ "embed" // the text
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
)

//go:embed gated.md
var doc string

// Wrapper returns the wrapper gated, for strategies.RegisterWrapper.
func Wrapper() strategies.Wrapper {
	return strategies.Wrapper{
		Doc:     doc,
		Name:    "gated",
		Summary: "NAME behind a mutex: one client of a process at a time asks Redis",
		Claims:  "NAME's, except for the order (FIFO, bounded overtaking) and re-entrance",
		Refine:  refine,
		Wrap:    New,
	}
}

// refine returns the Info of the strategy behind the mutex, without the claims of order and re-entrance, which the
// mutex breaks. It returns an error if the strategy is not a lock or allows several holders.
func refine(info strategies.Info) (strategies.Info, error) {
	switch {
	case info.Capacity == 0:
		return info, errors.New("the strategy is not a lock, so a mutex in front of it has no effect")
	case info.Capacity > 1:
		return info, fmt.Errorf("the strategy allows %d holders at a time, but a mutex in front of it would admit only one "+
			"per process", info.Capacity)
	}
	info.Summary = "behind a mutex for each process and key: " + info.Summary
	info.Claims.FIFO, info.Claims.Bounded, info.Claims.Reentrant = false, false, false
	return info, nil
}

// Locker admits one caller at a time for each key to another Locker. It has no Unwrap, because calls must not bypass
// the mutex.
type Locker struct {
	inner  strategies.Locker
	gates  baselines.Gates
	closed atomic.Bool
}

// New returns a Locker in front of inner. Closing the returned Locker closes inner.
func New(inner strategies.Locker) strategies.Locker { return &Locker{inner: inner} }

// Prepare prepares the Locker behind the mutex, if it is a Preparer.
func (l *Locker) Prepare(ctx context.Context, keys []string) error {
	if p, ok := strategies.As[strategies.Preparer](l.inner); ok {
		return p.Prepare(ctx, keys)
	}
	return nil
}

// Acquire waits for the caller's turn in the process, and then for the lock of the strategy.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.through(ctx, key, true, l.inner.Acquire)
}

// TryAcquire makes one attempt to take the strategy's lock. If a caller of this process is inside the gate, it returns
// ErrHeld without an attempt.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	inner, ok := strategies.As[strategies.Trier](l.inner)
	if !ok {
		return nil, errors.New("the lock behind the mutex has no try-lock")
	}
	return l.through(ctx, key, false, inner.TryAcquire)
}

// through enters the gate of the key and calls acquire. If acquire fails, through leaves the gate, so that the next
// caller can enter.
func (l *Locker) through(
	ctx context.Context, key string, wait bool, acquire func(context.Context, string) (strategies.Lease, error),
) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	if _, err := l.gates.Enter(ctx, key, wait); errors.Is(err, strategies.ErrHeld) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("wait for the in-process mutex of %q: %w", key, err)
	}
	held, err := acquire(ctx, key)
	if err != nil {
		l.gates.Leave(key)
		return nil, err
	}
	return &lease{inner: held, gates: &l.gates, key: key}, nil
}

// Close makes further acquires fail with ErrClosed, and closes the strategy's Locker. Whether leases can still be
// released depends on the strategy.
func (l *Locker) Close() error {
	l.closed.Store(true)
	return l.inner.Close()
}

// lease is a lease of the strategy's lock. Its holder is inside the gate.
type lease struct {
	inner strategies.Lease
	gates *baselines.Gates
	key   string
	once  sync.Once
}

// Release releases the strategy's lease, then lets the next caller in, even if the release
// failed.
func (held *lease) Release(ctx context.Context) error {
	defer held.once.Do(func() { held.gates.Leave(held.key) })
	return held.inner.Release(ctx)
}

// Unwrap returns the strategy's lease, in which As finds capabilities such as Extender.
func (held *lease) Unwrap() strategies.Lease { return held.inner }
