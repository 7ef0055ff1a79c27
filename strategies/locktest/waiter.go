package locktest

import (
	"context"
	"runtime"
	"time"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/strategies"
)

// waiter is a call in the background, mostly an acquire.
type waiter struct {
	s      *stage
	cancel context.CancelFunc
	done   chan struct{} // closed once the waiter is over
	lease  strategies.Lease
	err    error
	over   time.Time // when it was over

	on       *instance
	key      string
	attempts int64 // the attempts of the instance before this waiter started
	began    time.Time
}

// waiter starts a client that acquires on i and then releases.
func (s *stage) waiter(i *instance, key string) *waiter {
	return s.background(i, key, func(ctx context.Context) error {
		lease, err := i.Acquire(ctx, key)
		if err != nil {
			return err
		}
		return lease.Release(context.WithoutCancel(ctx))
	})
}

// waiterFor starts a client that acquires with the given function and keeps the lease.
func (s *stage) waiterFor(i *instance, key string,
	acquire func(context.Context, string) (strategies.Lease, error),
) *waiter {
	s.asksFor(key)
	ctx, cancel := context.WithCancel(context.Background())
	w := &waiter{
		s: s, on: i, key: key, cancel: cancel, done: make(chan struct{}), began: time.Now(),
		attempts: i.probe.Counts().Attempts,
	}
	go func() {
		defer close(w.done)
		w.lease, w.err = acquire(ctx, key)
		w.over = time.Now()
	}()
	s.Cleanup(func() {
		cancel()
		if s.Failed() { // it may hang forever
			return
		}
		select {
		case <-w.done:
		case <-time.After(s.patience):
		}
	})
	return w
}

// background runs a call of an instance in a goroutine.
func (s *stage) background(i *instance, key string, do func(context.Context) error) *waiter {
	return s.waiterFor(i, key, func(ctx context.Context, _ string) (strategies.Lease, error) { return nil, do(ctx) })
}

func (w *waiter) isOver() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// granted returns the waiter's lease, nil for none.
func (w *waiter) granted() strategies.Lease {
	if w.err != nil {
		return nil
	}
	return w.lease
}

// within reports whether the waiter ends within the given time.
func (w *waiter) within(limit time.Duration) bool {
	if w.isOver() {
		return true
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-w.done:
		return true
	case <-timer.C:
		return false
	case <-w.s.ctx.Done():
		w.s.alive()
		return false
	}
}

// returned waits until the background call is over.
func (w *waiter) returned(what string) {
	if !w.within(w.s.patience) {
		w.s.fatalf("%s does not return within %v", what, w.s.patience)
	}
}

// meets waits until the blockade stops something or the waiter is over. It returns true in the first case.
func (w *waiter) meets(blockade *netfault.Blockade) bool {
	timer := time.NewTimer(w.s.patience)
	defer timer.Stop()
	select {
	case <-blockade.Caught:
		return true
	case <-w.done:
	case <-timer.C:
	}
	return blockade.Catches(0)
}

// parked returns when the waiter has found all permits taken and waits.
func (w *waiter) parked() { w.parkedBefore(time.Now().Add(longTTL)) }

// parkedBefore is parked for permits that are taken until an instant. After this instant the waiter may have a
// permit.
func (w *waiter) parkedBefore(end time.Time) {
	w.settle()
	switch {
	case !w.isOver():
	case w.err != nil:
		w.s.fatalf("a waiter got: %v", w.err)
	case time.Now().Before(end):
		w.s.brokenNow(exclusive, "a waiter was granted the lock while other clients held all its permits")
	}
}

// settle returns when the waiter has the lock or waits for it, as far as the suite can observe: since the waiter
// began, its instance has made an attempt and sent something, and its connections are quiet. If the suite cannot
// observe the instance, settle waits for a fixed number of polls. It counts polls, not time, because a stall of the
// test stops the waiter too.
func (w *waiter) settle() {
	queues := w.s.info.Claims.FIFO // the servers must read this waiter's commands before the next waiter's
	for look, end := 0, w.began.Add(w.s.patience); !w.seen() && !w.isOver(); look++ {
		if !queues && look > 100 || time.Now().After(end) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if queues {
		w.heard()
	} else {
		w.quiet()
	}
}

// heard returns when the servers have read everything that the instance has sent, and the instance sends nothing
// more.
func (w *waiter) heard() {
	for range 20 {
		moved := w.quiet()
		w.s.heard()
		if w.quiet().Equal(moved) {
			return
		}
	}
}

// quiet returns when the instance's connections were idle for some polls, or after too many polls. It returns the
// time of the last traffic.
func (w *waiter) quiet() time.Time {
	last, dialling := w.on.wire.Last()
	for look, still := 0, 0; still < 4 && (look < 20 || dialling); look++ {
		time.Sleep(time.Millisecond)
		var moved time.Time
		if moved, dialling = w.on.wire.Last(); dialling || !moved.Equal(last) {
			still, last = 0, moved
		} else {
			still++
		}
	}
	return last
}

// heard returns when the servers have read all that was sent before: a server may answer the
// first PING before it reads the rest, but not the second.
func (s *stage) heard() {
	for _, o := range s.outside {
		for range 2 {
			_ = o.Ping(context.Background()).Err()
		}
	}
}

func (w *waiter) seen() bool {
	attempted := w.on.probe.Counts().Attempts > w.attempts
	if w.s.info.BlackBox {
		attempted = w.s.info.OnRedis()
	}
	return attempted && (!w.s.info.OnRedis() || w.on.wire.LastWrite().After(w.began))
}

// finish waits until the waiter has had the lock, which is free by now.
func (w *waiter) finish() {
	w.overdue("a waiter is still waiting although the lock is free")
	if w.err != nil {
		w.s.fatalf("a waiter got: %v", w.err)
	}
}

// passOn starts a waiter for a lock, all of whose leases are held, and releases the leases to it.
func (s *stage) passOn(leases []strategies.Lease, to *instance, key string, beforeRelease func()) {
	w := s.waiter(to, key)
	w.parked()
	beforeRelease()
	s.release(leases[0])
	w.finish()
	s.release(leases[1:]...)
}

// overdue ends the check if the waiter is not over. seen describes the fault if the lock is free, as expected.
func (w *waiter) overdue(seen string, args ...any) {
	if w.within(w.s.patience) {
		return
	}
	if w.s.held(w.on, w.key) {
		w.s.broken(ungranted, "all clients have released the lock or given up, and it is not free")
	} else {
		w.s.broken(waking, seen, args...)
	}
	runtime.Goexit()
}

// end cancels the waiter and expects its return.
func (w *waiter) end() {
	w.cancel()
	if !w.within(w.s.patience) {
		w.s.brokenNow(ending, "a waiter keeps waiting although its context has ended")
	}
}
