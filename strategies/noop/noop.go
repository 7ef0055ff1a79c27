// Package noop is a lock that does nothing: it shows what the harness itself
// can do, and that the audit notices a lock that does not lock.
//
// noop.md has the rest: what it guarantees, what breaks it, and what it costs.
package noop

import (
	"context"
	_ "embed"

	"github.com/lockbench/lockbench/strategies"
)

//go:embed noop.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:      doc,
		Name:     "noop",
		Summary:  "does nothing: the baseline of the harness",
		Capacity: 1, // like a lock, so that the audit can catch it
		Caveat:   "excludes nobody",
	}, Options{}, Open)
}

// Options are none.
type Options struct{}

// Locker hands out leases to everybody.
type Locker struct{}

// Open returns a Locker; it never fails.
func Open(strategies.Config, Options) (Locker, error) { return Locker{}, nil }

// Acquire returns at once.
func (Locker) Acquire(context.Context, string) (strategies.Lease, error) { return lease{}, nil }

// TryAcquire is Acquire.
func (Locker) TryAcquire(context.Context, string) (strategies.Lease, error) { return lease{}, nil }

// Close has nothing to free.
func (Locker) Close() error { return nil }

// lease has no size, so that handing it out allocates nothing.
type lease struct{}

func (lease) Release(context.Context) error { return nil }
