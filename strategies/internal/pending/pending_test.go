package pending_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/pending"
)

var errBusy = errors.New("BUSY")

// refused returns a release whose sends first fail with BUSY. times is the number of these failures. Every later send
// returns answer. sent counts all sends.
func refused(times int64, answer error) (p *pending.Release, sent *atomic.Int64) {
	sent = new(atomic.Int64)
	return &pending.Release{TTL: time.Hour, Send: func(context.Context) error {
		if sent.Add(1) <= times {
			return errBusy
		}
		return answer
	}}, sent
}

func TestRefusedReleaseIsRepeated(t *testing.T) {
	for _, answer := range []error{nil, strategies.ErrNotHeld} {
		synctest.Test(t, func(t *testing.T) {
			var r pending.Releases
			defer r.Close()
			p, sent := refused(3, answer)
			if err := r.Release(t.Context(), p); !errors.Is(err, errBusy) {
				t.Errorf("the error is %v", err)
			}
			_ = r.Release(t.Context(), p) // again by the caller, and still one repetition
			time.Sleep(100 * time.Millisecond)
			if n := sent.Load(); n != 4 {
				t.Errorf("it was sent %d times, not until it was answered", n)
			}
			time.Sleep(time.Hour)
			if n := sent.Load(); n != 4 {
				t.Errorf("it was sent %d times, although it was answered", n)
			}
			again, sent := refused(2, nil) // the goroutine has ended
			r.Add(again)
			time.Sleep(100 * time.Millisecond)
			if n := sent.Load(); n != 3 {
				t.Errorf("a later release was sent %d times", n)
			}
		})
	}
}

func TestAnsweredReleaseIsNotRepeated(t *testing.T) {
	for _, answer := range []error{nil, strategies.ErrNotHeld} {
		synctest.Test(t, func(t *testing.T) {
			var r pending.Releases
			defer r.Close()
			p, sent := refused(0, answer)
			if err := r.Release(t.Context(), p); !errors.Is(err, answer) {
				t.Errorf("the error is %v", err)
			}
			time.Sleep(time.Hour)
			if n := sent.Load(); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
		})
	}
}

func TestReleaseEndsAfterTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r pending.Releases
		defer r.Close()
		p, sent := refused(1<<40, nil)
		p.TTL = time.Minute
		r.Add(p)
		time.Sleep(time.Minute)
		before := sent.Load()
		if before < 60 || before > 80 {
			t.Errorf("it was sent %d times in a minute", before)
		}
		time.Sleep(time.Minute)
		after := sent.Load()
		time.Sleep(time.Hour)
		if n := sent.Load(); after <= before || n != after {
			t.Errorf("it was sent %d times in its TTL, %d times in the minute after it, %d times later", before,
				after-before, n-after)
		}
	})
}

// 30 releases hang, as if their server were down. Another release must still be sent within 20 s.
func TestDeadServerDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r pending.Releases
		for range 30 {
			r.Add(&pending.Release{Send: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }})
		}
		p, sent := refused(0, nil)
		r.Add(p)
		time.Sleep(20 * time.Second)
		if sent.Load() != 1 {
			t.Error("it was not sent")
		}
		began := time.Now()
		r.Close()
		if took := time.Since(began); took > 2200*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
	})
}

// Many waiters may give up during an outage, and each leaves a release behind. 10,000 releases must be sent without
// pauses in between.
func TestManyReleasesAreSentWithoutPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r pending.Releases
		defer r.Close()
		var sent atomic.Int64
		for range 10000 {
			r.Add(&pending.Release{Send: func(context.Context) error { sent.Add(1); return nil }})
		}
		time.Sleep(11 * time.Millisecond)
		if n := sent.Load(); n != 10000 {
			t.Errorf("%d of 10000 were sent", n)
		}
	})
}

// Redis executes an acquire that got no reply, up to a minute after its call has ended. The release must be repeated so
// that the lock is free again after twice that time plus 3 s.
func TestReleaseIsRepeatedAfterAcquire(t *testing.T) {
	for _, late := range []time.Duration{0, 20 * time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var r pending.Releases
			defer r.Close()
			var sent, gap, last atomic.Int64
			var held atomic.Bool
			asked := make(chan struct{})
			r.GiveBack(t.Context(), &pending.Release{TTL: time.Hour, Asked: asked, Send: func(context.Context) error {
				sent.Add(1)
				held.Store(false)
				now := time.Now().UnixNano()
				gap.Store(now - last.Swap(now))
				return nil
			}})
			time.Sleep(10 * time.Second)
			if n := sent.Load(); n < 10 || n > 30 {
				t.Errorf("it was sent %d times in the 10s of the call", n)
			}
			before := sent.Load()
			close(asked)
			time.Sleep(time.Second)
			// Two replies are needed: Redis may read the acquire after it has replied to the first release.
			if n, apart := sent.Load()-before, time.Duration(gap.Load()); n != 2 || apart > 100*time.Millisecond {
				t.Errorf("it was sent %d times after the call's end, the last two %v apart", n, apart)
			}
			time.Sleep(late)
			held.Store(true)
			time.Sleep(late + 3*time.Second)
			if held.Load() {
				t.Errorf("what a command took that came %v after the call's end is held for as long", late)
			}
			time.Sleep(time.Hour)
			if n := sent.Load() - before; n > 12 {
				t.Errorf("it was sent %d times after the call's end", n)
			}
		})
	}
}

func TestGiveBackEndsSoonAfterItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r pending.Releases
		defer r.Close()
		heals := time.Now().Add(5 * time.Second)
		var freed atomic.Bool
		p := &pending.Release{Send: func(context.Context) error { // of a client that ignores contexts
			time.Sleep(time.Until(heals))
			freed.Store(true)
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		r.GiveBack(ctx, p)
		if took := time.Since(began); took < 400*time.Millisecond || took > 600*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		time.Sleep(10 * time.Second)
		if !freed.Load() {
			t.Error("the lock stays")
		}
	})
}

func TestCloseSendsOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r pending.Releases
		p, sent := refused(12, nil)
		r.Add(p)
		time.Sleep(4 * time.Second) // in a pause
		before := sent.Load()
		began := time.Now()
		r.Close()
		if n := sent.Load() - before; n != 1 || time.Since(began) > time.Millisecond {
			t.Errorf("Close has sent the release %d times in %v", n, time.Since(began))
		}
		r.Add(p)
		time.Sleep(time.Hour)
		if n := sent.Load() - before; n != 1 {
			t.Errorf("after Close the release was sent %d times", n)
		}
		r.Close()
	})
}

// Redis does not reply, and the client has no timeouts. Close must return after two seconds.
func TestCloseWithSilentRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r pending.Releases
		end := make(chan struct{})
		defer close(end)
		p := &pending.Release{Send: func(context.Context) error { <-end; return nil }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Release(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		time.Sleep(10 * time.Second)
		began := time.Now()
		r.Close()
		if took := time.Since(began); took < 2*time.Second || took > 2200*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
	})
}
