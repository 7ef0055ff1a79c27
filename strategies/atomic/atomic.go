// Package atomic is no lock. It is the bound to which any lock can be compared:
// where the work under the lock is one counter, one INCR does it, and nobody
// waits for anybody.
//
// atomic.md has the rest: what it guarantees, what breaks it, and what it costs.
package atomic

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

//go:embed atomic.md
var doc string

// Strategy describes the counter, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:         doc,
		Name:        "atomic",
		Summary:     "no lock: one INCR does the work (only with --work counter)",
		Nodes:       1,
		OnlyCounter: true,
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Commands: []string{"incr"},
		},
	}, struct{}{}, func(c goredis.Config, _ struct{}) (strategies.Locker, error) { return Open(c) })
}

// Locker lets everybody in.
type Locker struct{ config goredis.Config }

// Open returns a Locker that increments on the first node.
func Open(config goredis.Config) (*Locker, error) {
	if len(config.Nodes) == 0 {
		return nil, errors.New("atomic: it needs a Redis node")
	}
	return &Locker{config}, nil
}

// Acquire lets the caller in.
func (*Locker) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	return admission, ctx.Err()
}

// Increment adds one to the counter, atomically.
func (l *Locker) Increment(ctx context.Context, counter string) error {
	if err := l.config.Nodes[0].Client.Incr(ctx, counter).Err(); err != nil {
		return fmt.Errorf("increment %q: %w", counter, err)
	}
	return nil
}

// Close has nothing to free.
func (*Locker) Close() error { return nil }

type lease struct{}

var admission strategies.Lease = lease{}

func (lease) Release(context.Context) error { return nil }
