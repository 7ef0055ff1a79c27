package runner

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
)

// Sweep removes what dead runs left: on this machine, and, if an address is given, on that server of
// any store.
func Sweep(ctx context.Context, at store.Options) (launch.Swept, store.Swept, error) {
	here := launch.SweepMachine(ctx)
	there, err := sweepServer(ctx, at)
	return here, there, err
}

// sweepServer removes what dead runs left on a user's server, if one is given.
func sweepServer(ctx context.Context, at store.Options) (store.Swept, error) {
	if at.Started() {
		return store.Swept{}, nil
	}
	name, err := store.At(at.Address)
	if err != nil {
		return store.Swept{}, fmt.Errorf("%w: --redis: %w", store.ErrConfig, err)
	}
	kind, err := store.Lookup(name)
	if err != nil {
		return store.Swept{}, err
	}
	sweeper, ok := kind.(store.Sweeper)
	if !ok {
		return store.Swept{}, fmt.Errorf("%w: --redis: nothing is left on %s", store.ErrConfig, name)
	}
	return sweeper.Sweep(ctx, store.NewRunID(), at)
}
