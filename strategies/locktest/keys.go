package locktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// teardown bounds each step in which a check that failed frees what it took.
const teardown = 5 * time.Second

// own is an instance's lock as a check uses it. It gives the check's keys names of their own,
// which also count in a lock that ignores the Prefix, and keeps the leases for the teardown.
type own struct {
	strategies.Locker
	s *stage

	mu     sync.Mutex
	leases []strategies.Lease
}

// ownTrier is own with a try-lock.
type ownTrier struct {
	*own
	trier strategies.Trier
}

func (o *own) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return o.kept(o.Locker.Acquire(ctx, o.s.named(key)))
}

func (o *ownTrier) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return o.kept(o.trier.TryAcquire(ctx, o.s.named(key)))
}

func (o *own) kept(lease strategies.Lease, err error) (strategies.Lease, error) {
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.leases = append(o.leases, lease)
	}
	return lease, err
}

// vacate releases the leases; who has released one already is told so.
func (o *own) vacate() {
	ctx, cancel := context.WithTimeout(context.Background(), teardown)
	defer cancel()
	o.mu.Lock()
	leases := slices.Clone(o.leases)
	o.mu.Unlock()
	over := make(chan struct{})
	go func() { // a release that never returns stays behind
		defer close(over)
		for _, lease := range leases {
			_ = lease.Release(ctx)
		}
	}()
	select {
	case <-over:
	case <-ctx.Done():
	}
}

// named returns the name that a lock gets instead of key: no other check has it.
func (s *stage) named(key string) string {
	if s.verbatim {
		return key
	}
	return key + "-" + s.id
}

// asksFor notes a key that the check uses, as a lock with the Prefix calls it and as one that
// ignores it.
func (s *stage) asksFor(key string) {
	s.locks[s.prefix+s.named(key)], s.locks[s.named(key)] = true, true
}

// unlink deletes the keys of a server that match a pattern.
func (o *outside) unlink(ctx context.Context, pattern string) error {
	keys := o.Scan(ctx, 0, pattern, 1000).Iterator()
	for keys.Next(ctx) {
		if err := o.Del(ctx, keys.Val()).Err(); err != nil {
			return fmt.Errorf("delete a key: %w", err)
		}
	}
	if err := keys.Err(); err != nil {
		return fmt.Errorf("look for keys: %w", err)
	}
	return nil
}
