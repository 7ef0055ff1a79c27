package audit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// Many waiters of several processes whose subscriptions Redis ends come back and are all
// served, those of one process in their order.
func TestManyComeBackInOrder(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"subscriptions", "all connections"} {
		t.Run(how, func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				const processes, batches, batch = 3, 5, 100
				server := redistest.Start(t)
				outside := server.Client(t)
				holder := open(t, name, server.Addr, nil, time.Hour)
				lease := acquire(t, holder)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				var all sync.WaitGroup
				defer all.Wait()
				defer cancel()
				var mu sync.Mutex
				order := make([][]int, processes) // of the batches that were served
				var lockers []strategies.Locker
				for range processes {
					lockers = append(lockers, open(t, name, server.Addr, nil, time.Hour))
				}
				// A batch comes when the one before it waits, so that its process knows the order.
				for b := range batches {
					var asking sync.WaitGroup
					for p, locker := range lockers {
						for range batch {
							asking.Add(1)
							all.Go(func() {
								ctx := &awaited{Context: ctx, begun: asking.Done}
								lease, err := locker.Acquire(ctx, "key")
								_ = ctx.Done() // where it has not waited
								if err != nil {
									t.Errorf("a waiter of process %d was told %v", p, err)
									return
								}
								mu.Lock()
								order[p] = append(order[p], b)
								mu.Unlock()
								if err := release(t, lease); err != nil {
									t.Errorf("release: %v", err)
								}
							})
						}
					}
					asking.Wait()
				}
				time.Sleep(200 * time.Millisecond)
				if how == "subscriptions" {
					if err := outside.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
						t.Fatal(err)
					}
				} else {
					disconnect(t, outside)
				}
				if err := release(t, lease); err != nil {
					t.Errorf("release: %v", err)
				}
				all.Wait()
				for p, served := range order {
					if len(served) != batches*batch {
						t.Errorf("%d waiters of process %d were served, want %d", len(served), p, batches*batch)
					}
					if !slices.IsSorted(served) {
						t.Errorf("process %d's waiters were served in this order of their batches: %s", p, runs(served))
					}
				}
			})
		})
	}
}

// awaited is a context that tells when somebody begins to wait for its end.
type awaited struct {
	context.Context
	once  sync.Once
	begun func()
}

func (a *awaited) Done() <-chan struct{} {
	a.once.Do(a.begun)
	return a.Context.Done()
}

// runs tells a sequence shortly.
func runs(sequence []int) (text string) {
	for len(sequence) > 0 {
		n := slices.IndexFunc(sequence, func(other int) bool { return other != sequence[0] })
		if n < 0 {
			n = len(sequence)
		}
		text += fmt.Sprintf("%d×%d ", n, sequence[0])
		sequence = sequence[n:]
	}
	return text
}

// A process that is gone keeps nobody waiting, also when somebody else listens to all that
// is published.
func TestDeadWaiterBesideAListener(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		everything := server.Client(t).PSubscribe(t.Context(), "*")
		defer func() { _ = everything.Close() }()
		if _, err := everything.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := new(trial.Path)
		holder, dead := open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, p.Dial, time.Hour)
		behind := open(t, name, server.Addr, nil, time.Hour)
		lease := acquire(t, holder)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		for range 3 {
			all.Go(func() {
				if lease, err := dead.Acquire(ctx, "key"); err == nil {
					t.Error("a process without connections got the lock")
					_ = lease.Release(context.Background())
				}
			})
		}
		time.Sleep(200 * time.Millisecond)
		b := &book{t: t}
		b.enter("the holder", lease)
		w := b.wait(0, behind)
		p.Block(true)
		p.HangUp()
		b.leave(lease)
		if err := release(t, lease); err != nil {
			t.Errorf("release: %v", err)
		}
		w.all.Wait()
	})
}

// Places in the queue do not follow the clocks of the processes: all of them are ahead of
// Redis's here, or behind it, and connections break.
func TestOrderWithAnotherClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				server, clock := trial.StartSettable(t)
				clock.Set(ahead)
				outside := server.Client(t)
				lease := acquire(t, open(t, name, server.Addr, nil, time.Hour))
				a, b, c := open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, nil, time.Hour)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				served := make(chan int, 6)
				var all sync.WaitGroup
				for n, locker := range []strategies.Locker{a, b, c, a, b, c} {
					all.Go(func() {
						lease, err := locker.Acquire(ctx, "key")
						if err != nil {
							t.Errorf("waiter %d: %v", n, err)
							return
						}
						served <- n
						_ = release(t, lease)
					})
					time.Sleep(100 * time.Millisecond)
					if n == 2 {
						if err := outside.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
							t.Fatal(err)
						}
						time.Sleep(300 * time.Millisecond)
					}
				}
				if err := release(t, lease); err != nil {
					t.Errorf("release: %v", err)
				}
				all.Wait()
				close(served)
				place := map[int]int{}
				for n := range served {
					place[n] = len(place)
				}
				for n := range 3 {
					if place[n] > place[n+3] {
						t.Errorf("waiter %d was served after waiter %d of the same process", n, n+3)
					}
				}
			})
		})
	}
}
