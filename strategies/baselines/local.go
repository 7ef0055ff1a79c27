package baselines

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/lockbench/lockbench/strategies"
)

// Local describes the mutex in the process.
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

// OpenLocal returns a LocalLocker; it never fails.
func OpenLocal(config strategies.Config, _ Options) (*LocalLocker, error) {
	return &LocalLocker{probe: config.Probe}, nil
}

// Acquire waits in the key's queue.
func (l *LocalLocker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.enter(ctx, key, true)
	if err != nil {
		return nil, fmt.Errorf("wait for %q: %w", key, err)
	}
	return held, nil
}

// TryAcquire takes the lock if it is free.
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

// Close refuses further calls; leases can still be released.
func (l *LocalLocker) Close() error {
	l.closed.Store(true)
	return nil
}

// lease is a lock on a key.
type lease struct {
	locker   *LocalLocker
	key      string
	released atomic.Bool
}

// Release hands the lock to the waiter that has waited longest, if there is one.
func (held *lease) Release(context.Context) error {
	if held.released.Swap(true) {
		return strategies.ErrNotHeld
	}
	held.locker.gates.Leave(held.key)
	return nil
}
