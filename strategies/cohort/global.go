package cohort

import (
	"context"
	"errors"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
)

// global is the lock among the processes: handoff's.
type global interface {
	strategies.Preparer
	// acquire waits for a lease with n tokens.
	acquire(ctx context.Context, key string, n int64) (block, error)
	// try takes one with a single token, or returns ErrHeld.
	try(ctx context.Context, key string) (block, error)
	Close() error
}

// block is the process's lease; see handoff.Lease.
type block interface {
	strategies.Lease
	strategies.Extender
	strategies.Timed
	Fences() (first, n int64)
	Unbroken() bool
	// requeue releases it and queues again, with n tokens to be reserved. With ErrNotHeld,
	// and without an error, wait returns the next lease and must be called.
	requeue(ctx context.Context, n int64) (wait, error)
}

type wait func(context.Context) (block, error)

type overHandoffLock struct{ *handoff.Locker }

func overHandoff(config strategies.Config) (global, error) {
	locker, err := handoff.New(config, handoff.Options{})
	return overHandoffLock{locker}, err
}

func (l overHandoffLock) acquire(ctx context.Context, key string, n int64) (block, error) {
	return asBlock(l.AcquireBlock(ctx, key, n))
}

func (l overHandoffLock) try(ctx context.Context, key string) (block, error) {
	lease, err := l.TryAcquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return handoffBlock{lease.(*handoff.Lease)}, nil
}

type handoffBlock struct{ *handoff.Lease }

func (b handoffBlock) requeue(ctx context.Context, n int64) (wait, error) {
	turn, err := b.Requeue(ctx, n)
	if err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		return nil, err
	}
	return func(ctx context.Context) (block, error) { return asBlock(turn.Wait(ctx)) }, err
}

func asBlock(lease *handoff.Lease, err error) (block, error) {
	if err != nil {
		return nil, err
	}
	return handoffBlock{lease}, nil
}
