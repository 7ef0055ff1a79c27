package baselines

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/lockbench/lockbench/strategies"
)

// Local returns the strategy local, a FIFO mutex for each key that excludes the clients of one process.
func Local() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:          localDoc,
		Name:         "local",
		Summary:      "in-process FIFO mutex: the baseline with exclusion",
		Claims:       strategies.Claims{Exclusion: true, FIFO: true},
		Capacity:     1,
		MaxInstances: 1,
	}, Options{}, OpenLocal)
}

// LocalLocker is a set of mutexes, one for each key that is held.
type LocalLocker struct {
	probe  *strategies.Probe
	gates  Gates
	closed atomic.Bool
}

// OpenLocal returns a LocalLocker. Its error is always nil.
func OpenLocal(config strategies.Config, _ Options) (*LocalLocker, error) {
	return &LocalLocker{probe: config.Probe}, nil
}

// Acquire waits in the queue of the key's mutex until the caller holds the mutex or ctx ends.
func (l *LocalLocker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.enter(ctx, key, true)
	if err != nil {
		return nil, fmt.Errorf("wait for %q: %w", key, err)
	}
	return held, nil
}

// TryAcquire takes the mutex of the key if it is free. Otherwise it returns ErrHeld.
func (l *LocalLocker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.enter(ctx, key, false)
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (l *LocalLocker) enter(ctx context.Context, key string, wait bool) (*lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	l.probe.Attempt()
	waited, err := l.gates.Enter(ctx, key, wait)
	if err != nil {
		return nil, err
	}
	if waited {
		l.probe.Wake(true)
	}
	return &lease{locker: l, key: key}, nil
}

// Close makes further acquires fail with ErrClosed. Leases can still be released.
func (l *LocalLocker) Close() error {
	l.closed.Store(true)
	return nil
}

// lease is the mutex of a key while a caller holds it.
type lease struct {
	locker   *LocalLocker
	key      string
	released atomic.Bool
}

// Release hands the mutex to the waiter that has waited longest, if there is one. A second call returns ErrNotHeld.
func (held *lease) Release(context.Context) error {
	if held.released.Swap(true) {
		return strategies.ErrNotHeld
	}
	held.locker.gates.Leave(held.key)
	return nil
}
