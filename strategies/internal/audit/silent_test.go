package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// Who waits for any of many keys is told when Redis takes everything and answers nothing.
// Nothing of it stays behind.
func TestSilentServerIsNoticed(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		const keys = 1000
		server := redistest.Start(t)
		holder, waiter := open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, nil, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		var holding, waiting sync.WaitGroup
		defer waiting.Wait()
		defer cancel()
		leases, told := make([]strategies.Lease, keys), make(chan error, keys)
		atOnce := make(chan struct{}, 50) // on a busy machine a thousand may take longer than Redis may be silent
		for n := range keys {
			holding.Go(func() {
				atOnce <- struct{}{}
				defer func() { <-atOnce }()
				var err error
				if leases[n], err = holder.Acquire(ctx, fmt.Sprint("key", n)); err != nil {
					t.Error(err)
				}
			})
		}
		holding.Wait()
		if t.Failed() {
			return
		}
		for n := range keys {
			waiting.Go(func() {
				lease, err := waiter.Acquire(ctx, fmt.Sprint("key", n))
				if err == nil {
					_ = lease.Release(context.Background())
					err = errors.New("it was granted")
				}
				told <- err
			})
		}
		time.Sleep(300 * time.Millisecond)
		server.Pause()
		late := time.After(patience)
		for n := range keys {
			select {
			case err := <-told:
				if errors.Is(err, context.Canceled) {
					t.Errorf("it was told %v", err)
				}
			case <-late:
				t.Errorf("%d of %d waiters noticed nothing", keys-n, keys)
				server.Resume()
				return
			}
		}
		server.Resume()
		for _, n := range []int{0, keys / 2, keys - 1} {
			if err := release(t, leases[n]); err != nil {
				t.Errorf("the release returned %v", err)
			}
			_ = release(t, freeKey(t, waiter, fmt.Sprint("key", n)))
		}
	})
}

// A context of 10 ms ends a call within much less than a second, whatever Redis does, and
// no lock is left with nobody.
func TestShortContextOnASilentServer(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		const limit = 4 * time.Second // for a machine that stands still meanwhile; it was 5 s
		server := redistest.Start(t)
		holder, locker, cold := open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, nil, time.Hour)
		acquireKey := func(locker strategies.Locker, key string) strategies.Lease {
			t.Helper()
			lease, err := locker.Acquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return lease
		}
		held, own := acquireKey(holder, "held"), acquireKey(locker, "own")
		acquired := func(do func(context.Context, string) (strategies.Lease, error), key string) func(context.Context) error {
			return func(ctx context.Context) error { _, err := do(ctx, key); return err }
		}
		calls := map[string]func(context.Context) error{
			"release": own.Release,
			"extend":  func(ctx context.Context) error { return own.(strategies.Extender).Extend(ctx, time.Hour) },
		}
		for which, locker := range map[string]strategies.Locker{"": locker, " of a process without connections": cold} {
			for _, key := range []string{"held", "free"} {
				calls["acquire "+key+which] = acquired(locker.Acquire, key)
				calls["try "+key+which] = acquired(locker.(strategies.Trier).TryAcquire, key)
			}
		}
		server.Pause()
		for what, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			result := make(chan error, 1)
			go func() { result <- call(ctx) }()
			<-ctx.Done()
			select {
			case err := <-result:
				if err == nil {
					t.Errorf("%s: no error, and Redis is stopped", what)
				}
			case <-time.After(limit):
				t.Errorf("%s has not returned %v after its context ended", what, limit)
				defer func() { <-result }()
			}
			cancel()
		}
		server.Resume()
		for _, lease := range []strategies.Lease{held, own} {
			_ = release(t, lease)
		}
		for _, key := range []string{"held", "own", "free"} {
			_ = release(t, freeKey(t, holder, key))
		}
	})
}
