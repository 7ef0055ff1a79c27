// Package measure records what happened in a run: when, how long, in which
// order and whether exclusion held. It talks to no server.
//
// All instants are nanoseconds of a run's Clock.
package measure

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Clock is a run's time: nanoseconds since its epoch, monotonic.
type Clock struct{ epoch time.Time }

// NewClock starts a clock at 0.
func NewClock() Clock { return Clock{time.Now()} }

// Now is the time since the epoch.
func (c Clock) Now() int64 { return int64(time.Since(c.epoch)) }

// At converts an instant that carries a monotonic reading.
func (c Clock) At(t time.Time) int64 { return int64(t.Sub(c.epoch)) }

// Time converts back.
func (c Clock) Time(at int64) time.Time { return c.epoch.Add(time.Duration(at)) }

// Window is the measured interval [Open, End). It opens at a time known
// beforehand and closes at a planned time, after a number of acquisitions, or
// early because the run is stopped, whichever is first.
type Window struct {
	Clock Clock
	Open  int64

	quota  int64 // acquisitions that close it, 0 for none
	end    atomic.Int64
	shut   sync.Mutex
	closed chan struct{}

	_     [64]byte // what is written all the time must not slow down what is read all the time
	taken atomic.Int64
}

// closing stands for an end that is being fixed at this moment.
const closing = -1

// NewWindow makes a window that is not planned yet. Quota 0 is none.
func NewWindow(clock Clock, quota int64) *Window {
	return &Window{Clock: clock, quota: quota, closed: make(chan struct{})}
}

// Plan sets the window from open to end; end 0 leaves it open until the quota
// is used up or Close is called. It comes before the first client starts.
func (w *Window) Plan(open, end int64) {
	if end == 0 {
		end = math.MaxInt64
	}
	w.Open = open
	w.end.Store(end)
}

// End is the instant at which the window closes, as far as is known now.
func (w *Window) End() int64 {
	for {
		if end := w.end.Load(); end != closing {
			return end
		}
		runtime.Gosched()
	}
}

// Closed is closed once the window has been closed before its planned end.
func (w *Window) Closed() <-chan struct{} { return w.closed }

// Close ends the window behind this instant, which it still holds, unless it has
// ended already.
//
// The end is published in two steps, so that no client can account for time beyond an
// end that it could not see yet: what is accounted for before the first step lies
// before the end, and after it everybody waits for the second.
func (w *Window) Close() {
	w.shut.Lock()
	defer w.shut.Unlock()
	planned := w.end.Swap(closing)
	end := w.Clock.Now() + 1
	if end >= planned {
		w.end.Store(planned)
		return
	}
	w.end.Store(end)
	close(w.closed)
}

// Count takes an acquisition at an instant into the quota and closes the window
// with the last one. It returns false for one beyond the quota.
func (w *Window) Count(at int64) bool {
	if w.quota == 0 || at < w.Open {
		return true
	}
	n := w.taken.Add(1)
	if n == w.quota {
		w.Close()
	}
	return n <= w.quota
}

// Contains says whether an instant lies in the window.
func (w *Window) Contains(at int64) bool { return at >= w.Open && at < w.End() }

// clip is the part of [from, to) inside the window.
func (w *Window) clip(from, to, end int64) int64 {
	return max(0, min(to, end)-max(from, w.Open))
}

// Length of the window in nanoseconds, 0 if it never opened.
func (w *Window) Length() int64 { return max(0, w.End()-w.Open) }
