package audit

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// Who gives up just when the lock comes leaves it to one other, and not to two.
func TestGivenUpAsItIsGranted(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		const rounds, leavers = 60, 3
		server := redistest.Start(t)
		open := func() strategies.Locker { return open(t, name, server.Addr, nil, time.Minute) }
		holder, leaving, others := open(), open(), []strategies.Locker{open(), open(), open()}
		b := &book{t: t}
		for range rounds {
			lease := acquire(t, holder)
			b.enter("the holder", lease)
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range leavers {
				all.Go(func() {
					if lease, err := leaving.Acquire(ctx, "key"); err == nil {
						b.enter("who gives up", lease)
						b.leave(lease)
						_ = release(t, lease)
					}
				})
			}
			time.Sleep(time.Millisecond)
			for n, locker := range others {
				all.Go(func() {
					lease := acquire(t, locker)
					b.enter(n, lease)
					time.Sleep(time.Millisecond)
					b.leave(lease)
					_ = release(t, lease)
				})
			}
			time.Sleep(2 * time.Millisecond)
			all.Go(func() { time.Sleep(rand.N(300 * time.Microsecond)); cancel() })
			b.leave(lease)
			_ = release(t, lease)
			all.Wait()
			if t.Failed() {
				return
			}
		}
	})
}
