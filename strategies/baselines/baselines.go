// Package baselines provides the strategies that locks are compared with. noop does nothing: it shows the speed of the
// harness itself, and that the audit detects a lock without exclusion. local is a mutex in the process. atomic is one
// INCR in place of a lock.
//
//  1. Acquire sends no command. In local it takes the mutex of the key, and in noop and atomic it returns at once.
//  2. A waiter of local waits in the queue of the mutex. noop and atomic have no waiters.
//  3. Release sends no command. In local it hands the mutex to the first waiter.
//
// A client of atomic does its work by one INCR of the counter's key. A release of local wakes one waiter.
//
// The .md page of each strategy describes guarantees and costs.
package baselines

import (
	"context"
	_ "embed" // the texts
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/strategies"
)

var (
	//go:embed noop.md
	noopDoc string
	//go:embed local.md
	localDoc string
	//go:embed atomic.md
	atomicDoc string
)

// Options is empty, because the baselines have no options.
type Options struct{}

// Strategies returns noop, local and atomic, for registration under their names.
func Strategies() []strategies.Strategy {
	return []strategies.Strategy{Noop(), Local(), Atomic()}
}

// Noop returns the strategy noop, which grants every request and excludes no client.
func Noop() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:      noopDoc,
		Name:     "noop",
		Summary:  "does nothing: the baseline of the harness",
		Capacity: 1, // like a lock, so that the audit detects the missing exclusion
		Caveat:   "excludes no client",
	}, Options{}, func(strategies.Config, Options) (NoopLocker, error) { return NoopLocker{}, nil })
}

// NoopLocker grants a lease to every caller at once, so that any number of clients hold the lock.
type NoopLocker struct{}

// Acquire returns a lease at once, even if another client holds a lease.
func (NoopLocker) Acquire(context.Context, string) (strategies.Lease, error) { return nothing{}, nil }

// TryAcquire returns a lease at once, and never ErrHeld.
func (NoopLocker) TryAcquire(context.Context, string) (strategies.Lease, error) {
	return nothing{}, nil
}

// Close does nothing, because a NoopLocker has no resources.
func (NoopLocker) Close() error { return nil }

// nothing is a lease of size zero, so that a grant allocates no memory.
type nothing struct{}

func (nothing) Release(context.Context) error { return nil }

// Atomic returns the strategy atomic, which increments a counter by INCR instead of locking it.
func Atomic() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:         atomicDoc,
		Name:        "atomic",
		Summary:     "no lock: one INCR does the work (only with --work counter)",
		Nodes:       1,
		OnlyCounter: true,
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Commands: []string{"incr"},
		},
	}, Options{}, openAtomic)
}

// counting is the interface that atomic requires of its node. A goredis.Node implements it.
type counting interface {
	Incr(ctx context.Context, key string) error
}

// incrementer is the Locker of atomic. It increments counters on the first node, and grants a lease to every caller.
type incrementer struct {
	NoopLocker
	node counting
}

func openAtomic(config strategies.ConfigOf[counting], _ Options) (*incrementer, error) {
	if len(config.Nodes) == 0 {
		return nil, errors.New("atomic: the strategy needs a Redis node")
	}
	return &incrementer{node: config.Nodes[0]}, nil
}

// Acquire returns a lease at once. If ctx has ended, it returns the error of ctx.
func (*incrementer) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	return nothing{}, ctx.Err()
}

// Increment adds one to the counter by INCR, which Redis executes atomically.
func (c *incrementer) Increment(ctx context.Context, counter string) error {
	if err := c.node.Incr(ctx, counter); err != nil {
		return fmt.Errorf("increment %q: %w", counter, err)
	}
	return nil
}
