package locktest_test

import (
	"context"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// cohortLock is one instance's side of a lock that goes round among those who wait in an
// instance when it comes there, and then to the next instance. All in one process.
type cohortLock struct {
	faults
	shared *cohorts
	config goredis.Config
	closed bool
}

// cohorts are the instances of all such locks.
type cohorts struct {
	mu   sync.Mutex
	keys map[string]*cohortKey
}

type cohortKey struct {
	owner   *cohortLock   // nil while it is free
	queue   []*cohortLock // who have waiters, and not the lock
	batch   int           // turns that the owner still has
	waiters map[*cohortLock][]*localWaiter
}

func (l *cohortLock) Close() error {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	l.closed = true
	return nil
}

func (l *cohortLock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	all := l.shared
	all.mu.Lock()
	if l.closed {
		all.mu.Unlock()
		return nil, strategies.ErrClosed
	}
	l.config.Probe.Attempt()
	k := all.keys[l.config.Key(key)]
	if k == nil {
		k = &cohortKey{waiters: map[*cohortLock][]*localWaiter{}}
		all.keys[l.config.Key(key)] = k
	}
	if k.owner == nil {
		k.owner, k.batch = l, 0
		all.mu.Unlock()
		return &cohortLease{l, k, false}, nil
	}
	w := &localWaiter{granted: make(chan *localLease, 1)}
	k.waiters[l] = append(k.waiters[l], w)
	if k.owner != l && !slices.Contains(k.queue, l) {
		k.queue = append(k.queue, l)
	}
	all.mu.Unlock()
	select {
	case <-w.granted:
		return &cohortLease{l, k, false}, nil
	case <-ctx.Done():
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if i := slices.Index(k.waiters[l], w); i >= 0 {
		k.waiters[l] = slices.Delete(k.waiters[l], i, i+1)
	} else {
		l.free(k)
	}
	return nil, ctx.Err()
}

// free passes the lock on. The caller holds mu.
func (l *cohortLock) free(k *cohortKey) {
	if len(k.waiters[l]) > 0 && (k.batch > 0 || l.faults["forEver"]) {
		k.batch--
		l.grant(k)
		return
	}
	if len(k.waiters[l]) > 0 {
		if l.faults["barges"] {
			k.queue = slices.Insert(k.queue, 0, l)
		} else {
			k.queue = append(k.queue, l)
		}
	}
	for k.owner = nil; k.owner == nil && len(k.queue) > 0; k.queue = k.queue[1:] {
		if next := k.queue[0]; len(k.waiters[next]) > 0 {
			k.owner, k.batch = next, len(k.waiters[next])-1
			next.grant(k)
		}
	}
}

// grant gives the lock to the first who waits. The caller holds mu.
func (l *cohortLock) grant(k *cohortKey) {
	first := k.waiters[l][0]
	k.waiters[l] = k.waiters[l][1:]
	first.granted <- nil
}

type cohortLease struct {
	lock     *cohortLock
	key      *cohortKey
	released bool
}

func (lease *cohortLease) Release(context.Context) error {
	all := lease.lock.shared
	all.mu.Lock()
	defer all.mu.Unlock()
	if lease.released {
		return strategies.ErrNotHeld
	}
	lease.released = true
	lease.lock.free(lease.key)
	return nil
}
