package gated

import (
	"context"
	"sync"

	"github.com/lockbench/lockbench/strategies"
)

// lease is a lease with its place inside the gate.
type lease struct {
	inner strategies.Lease
	gates *gates
	key   string
	once  sync.Once
}

// Release releases the strategy's lease, then lets the next caller in, even if the release
// failed.
func (held *lease) Release(ctx context.Context) error {
	defer held.once.Do(func() { held.gates.leave(held.key) })
	return held.inner.Release(ctx)
}

// Unwrap returns the strategy's lease, for what else it can do.
func (held *lease) Unwrap() strategies.Lease { return held.inner }
