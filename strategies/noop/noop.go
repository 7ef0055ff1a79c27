// Package noop is a lock that does nothing: it shows what the harness itself
// can do, and that the audit notices a lock that does not lock.
//
// It sends no command and wakes nobody; Acquire and Release return at once.
// It guarantees nothing: any number of callers hold at the same time.
package noop

import (
	"context"
	_ "embed"

	"github.com/lockbench/lockbench/strategies"
)

//go:embed noop.go
var source string

func init() {
	strategies.Register(strategies.Info{
		Name:     "noop",
		Summary:  "does nothing: the harness floor",
		Doc:      strategies.PackageComment(source),
		Capacity: 1, // it poses as a lock, so that the audit can catch it
		Caveat:   "excludes nobody",
	}, Options{}, New)
}

// Options are none.
type Options struct{}

// Locker hands out leases to everybody.
type Locker struct{}

// New returns a Locker; it never fails.
func New(strategies.Config, Options) (Locker, error) { return Locker{}, nil }

// Acquire returns at once.
func (Locker) Acquire(context.Context, string) (strategies.Lease, error) { return lease{}, nil }

// TryAcquire is Acquire.
func (Locker) TryAcquire(context.Context, string) (strategies.Lease, error) { return lease{}, nil }

// Close has nothing to free.
func (Locker) Close() error { return nil }

// lease has no size, so that handing it out allocates nothing.
type lease struct{}

func (lease) Release(context.Context) error { return nil }
