package baselines

import (
	"container/list"
	"context"
	"fmt"
	"sync"

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
	probe *strategies.Probe

	mu     sync.Mutex
	queues map[string]*queue // of the keys that are held
	closed bool
}

// queue is a held key's waiters, in the order in which they came.
type queue struct {
	holder  *lease
	waiters list.List // of *waiter
}

// waiter gets the lock through granted, which has a buffer so that the releaser never blocks.
type waiter struct{ granted chan *lease }

// OpenLocal returns a LocalLocker; it never fails.
func OpenLocal(config strategies.Config, _ Options) (*LocalLocker, error) {
	return &LocalLocker{probe: config.Probe, queues: map[string]*queue{}}, nil
}

// Acquire waits in the key's queue.
func (l *LocalLocker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, place, err := l.enter(key, true)
	if err != nil {
		return nil, err
	}
	if held != nil {
		return held, nil
	}
	w := place.Value.(*waiter)
	select {
	case held = <-w.granted:
		l.probe.Wake(true)
		return held, nil
	case <-ctx.Done():
	}
	if held := l.leave(key, place); held != nil {
		_ = held.Release(ctx) // it was granted in this very moment
	}
	return nil, fmt.Errorf("wait for %q: %w", key, ctx.Err())
}

// TryAcquire takes the lock if nobody holds it.
func (l *LocalLocker) TryAcquire(_ context.Context, key string) (strategies.Lease, error) {
	held, _, err := l.enter(key, false)
	if err != nil {
		return nil, err
	}
	if held == nil {
		return nil, strategies.ErrHeld
	}
	return held, nil
}

// enter takes the lock, or else queues when asked to.
func (l *LocalLocker) enter(key string, wait bool) (*lease, *list.Element, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, strategies.ErrClosed
	}
	l.probe.Attempt()
	q := l.queues[key]
	if q == nil {
		held := &lease{locker: l, key: key}
		l.queues[key] = &queue{holder: held}
		return held, nil, nil
	}
	if !wait {
		return nil, nil, nil
	}
	return nil, q.waiters.PushBack(&waiter{granted: make(chan *lease, 1)}), nil
}

// leave gives up waiting and returns the lease if it had been granted already.
func (l *LocalLocker) leave(key string, place *list.Element) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case held := <-place.Value.(*waiter).granted:
		return held
	default:
		l.queues[key].waiters.Remove(place)
		return nil
	}
}

// Close refuses further calls; leases can still be released.
func (l *LocalLocker) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// lease is a key held.
type lease struct {
	locker *LocalLocker
	key    string
}

// Release hands the lock to the waiter that has waited longest.
func (held *lease) Release(context.Context) error {
	l := held.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[held.key]
	if q == nil || q.holder != held {
		return strategies.ErrNotHeld
	}
	first := q.waiters.Front()
	if first == nil {
		delete(l.queues, held.key)
		return nil
	}
	q.waiters.Remove(first)
	q.holder = &lease{locker: l, key: held.key}
	first.Value.(*waiter).granted <- q.holder
	return nil
}
