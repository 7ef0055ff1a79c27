package locktest

import (
	"context"
	"runtime"
	"time"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/strategies"
)

// waiter is a call that runs in the background of a check, usually an acquire. It also holds the result of the call.
type waiter struct {
	s      *stage
	cancel context.CancelFunc
	done   chan struct{} // closed when the call has returned
	lease  strategies.Lease
	err    error
	over   time.Time // when the call returned

	on       *instance
	key      string
	attempts int64 // the attempts of the instance before this waiter started
	began    time.Time
}

// waiter starts a client of instance i that acquires the lock and then releases it.
func (s *stage) waiter(i *instance, key string) *waiter {
	return s.background(i, key, func(ctx context.Context) error {
		lease, err := i.Acquire(ctx, key)
		if err != nil {
			return err
		}
		return lease.Release(context.WithoutCancel(ctx))
	})
}

// waiterFor starts a client that acquires the lock with the given function and keeps the lease.
func (s *stage) waiterFor(i *instance, key string,
	acquire func(context.Context, string) (strategies.Lease, error),
) *waiter {
	s.recordUseOfKey(key)
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
		if s.Failed() { // the call may never return
			return
		}
		select {
		case <-w.done:
		case <-time.After(s.patience):
		}
	})
	return w
}

// background starts a call of an instance in a goroutine and returns it as a waiter without a lease.
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

// granted returns the waiter's lease, or nil if the call failed.
func (w *waiter) granted() strategies.Lease {
	if w.err != nil {
		return nil
	}
	return w.lease
}

// within waits for at most the limit, and reports whether the waiter's call has returned.
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

// returned waits until the background call returns, and ends the check with a failure if this takes longer than the
// patience.
func (w *waiter) returned(what string) {
	if !w.within(w.s.patience) {
		w.s.fatalf("%s has not returned after %v", what, w.s.patience)
	}
}

// meets waits until the blockade has caught traffic or the waiter's call has returned. It reports whether the blockade
// has caught traffic.
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

// parked returns when the waiter has found all permits taken and waits. It ends the check if the waiter was granted the
// lock.
func (w *waiter) parked() { w.parkedBefore(time.Now().Add(longTTL)) }

// parkedBefore is like parked for permits that are taken only until end. After that the waiter may have been granted a
// permit.
func (w *waiter) parkedBefore(end time.Time) {
	w.settle()
	switch {
	case !w.isOver():
	case w.err != nil:
		w.s.fatalf("a waiter's acquire failed: %v", w.err)
	case time.Now().Before(end):
		w.s.brokenNow(exclusive, "a waiter was granted the lock while other clients held all its permits")
	}
}

// settle returns when the waiter has the lock or waits for it, as far as the suite can observe. Since the waiter began,
// its instance must have made an attempt and sent a command, and its connections must be quiet. If the suite cannot
// observe the instance, settle waits for a fixed number of polls. It counts polls instead of time, because a stall of
// the test stops the waiter too.
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

// heard returns when the servers have read everything that the instance has sent and the instance sends no more.
func (w *waiter) heard() {
	for range 20 {
		moved := w.quiet()
		w.s.heard()
		if w.quiet().Equal(moved) {
			return
		}
	}
}

// quiet waits until the instance's connections have been idle for 4 polls. After 20 polls it stops waiting, unless a
// connection is being dialled. It returns the time of the last traffic.
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

// heard returns when the servers have read everything that was sent before. It sends two PINGs, because a server may
// reply to the first one before it reads the data on other connections.
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

// finish waits until the waiter has acquired the lock, and ends the check if the waiter fails. The lock must be free
// when finish is called.
func (w *waiter) finish() {
	w.overdue("a waiter is still waiting although the lock is free")
	if w.err != nil {
		w.s.fatalf("a waiter's acquire failed: %v", w.err)
	}
}

// passOn starts a waiter for a lock whose permits are all taken by leases, calls beforeRelease and releases the leases.
// The waiter must then get the lock.
func (s *stage) passOn(leases []strategies.Lease, to *instance, key string, beforeRelease func()) {
	w := s.waiter(to, key)
	w.parked()
	beforeRelease()
	s.release(leases[0])
	w.finish()
	s.release(leases[1:]...)
}

// overdue ends the check if the waiter's call does not return within the patience. If the lock is free, overdue reports
// a lost wake-up, and seen describes the events before it. If the lock is not free, overdue reports a lock that was
// never freed.
func (w *waiter) overdue(seen string, args ...any) {
	if w.within(w.s.patience) {
		return
	}
	if w.s.held(w.on, w.key) {
		w.s.broken(ungranted, "all clients have released the lock or given up, but the lock is not free")
	} else {
		w.s.broken(waking, seen, args...)
	}
	runtime.Goexit()
}

// end cancels the waiter and ends the check if its call does not return.
func (w *waiter) end() {
	w.cancel()
	if !w.within(w.s.patience) {
		w.s.brokenNow(ending, "a waiter keeps waiting although its context has ended")
	}
}
