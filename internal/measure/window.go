// Package measure records the events of a run, with their instants, durations and order. It checks whether more clients
// held the lock at the same time than the lock allows. It does not access any server.
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

// Clock measures a run's monotonic time in nanoseconds since its epoch.
type Clock struct{ epoch time.Time }

// NewClock returns a clock that starts at 0.
func NewClock() Clock { return Clock{time.Now()} }

// Now returns the nanoseconds since the epoch.
func (c Clock) Now() int64 { return int64(time.Since(c.epoch)) }

// At converts a time.Time that has a monotonic reading to an instant of the Clock.
func (c Clock) At(t time.Time) int64 { return int64(t.Sub(c.epoch)) }

// Time converts an instant of the Clock to a time.Time.
func (c Clock) Time(at int64) time.Time { return c.epoch.Add(time.Duration(at)) }

// Window is the measured interval [Open, End). It opens at a planned time. It closes at a
// planned time, after a number of acquisitions, or when the run is stopped, whichever is
// first.
type Window struct {
	Clock Clock
	Open  int64

	quota  int64 // number of acquisitions after which the window closes; 0 means no quota
	end    atomic.Int64
	shut   sync.Mutex
	closed chan struct{}

	_     [64]byte // keeps the frequently written taken out of the cache line of frequently read fields
	taken atomic.Int64
}

// closing is the value of Window.end while Close determines the end.
const closing = -1

// NewWindow returns a window that is not planned yet. A quota of 0 means no quota.
func NewWindow(clock Clock, quota int64) *Window {
	return &Window{Clock: clock, quota: quota, closed: make(chan struct{})}
}

// Plan sets the instants open and end of the window. If end is 0, the window stays open until the quota is used up or
// Close is called. Call Plan before the first client starts.
func (w *Window) Plan(open, end int64) {
	if end == 0 {
		end = math.MaxInt64
	}
	w.Open = open
	w.end.Store(end)
}

// End returns the instant at which the window closes, as currently planned. As long as the window is open, this instant
// may still move to an earlier time.
func (w *Window) End() int64 {
	for {
		if end := w.end.Load(); end != closing {
			return end
		}
		runtime.Gosched()
	}
}

// Closed returns a channel that is closed when the window closes before its planned end.
func (w *Window) Closed() <-chan struct{} { return w.closed }

// Close ends the window just after the current instant unless it has already ended.
//
// The end is published in two steps, so that no client accounts for time after an end that it has not read. First the
// end becomes closing, and clients that read it wait. Then Close publishes the end, which lies after all time that
// clients have accounted for.
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

// Count counts an acquisition towards the quota. The acquisition that uses up the quota closes the window. Count
// returns false for an acquisition beyond the quota.
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

// Contains reports whether an instant lies in the window.
func (w *Window) Contains(at int64) bool { return at >= w.Open && at < w.End() }

// clip returns how much of [from, to) lies in the window, in nanoseconds. end is the end of the window.
func (w *Window) clip(from, to, end int64) int64 {
	return max(0, min(to, end)-max(from, w.Open))
}

// Length returns the window's length in nanoseconds; 0 if it never opened.
func (w *Window) Length() int64 { return max(0, w.End()-w.Open) }
