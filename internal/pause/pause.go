// Package pause sleeps more exactly than the time package. On an idle Linux machine, time.Sleep rounds up to a
// millisecond, because the runtime waits in epoll, whose timeout has no finer unit.
package pause

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Sleepers sleeps for any number of goroutines at a time. Close releases its descriptors. The zero value is ready for
// use and does not busy-wait.
type Sleepers struct {
	// Exact means to busy-wait at the end of a sleep, in at most half as many goroutines at a time as there are CPUs. A
	// sleep then costs 30 µs of CPU time plus three times the recent mean lateness, so a service must not use it.
	Exact bool
	// Plain means to use only the time package, as is necessary in a bubble of testing/synctest, where only that package's
	// clock is virtual.
	Plain bool

	mu     sync.Mutex
	idle   []*descriptor
	open   int
	closed bool

	computing atomic.Int32
	late      atomic.Int64 // moving average of how late a descriptor wakes its sleeper, ns
}

const (
	// coarse is how long before its end a long sleep stops using the time package, which may be late by one or two
	// milliseconds.
	coarse = 3 * time.Millisecond
	// margin is the shortest time to busy-wait, because an idle machine needs 30 to 50 µs to wake up.
	margin = 30 * time.Microsecond
	// spare is the factor by which the usual lateness is multiplied before it is added to margin.
	spare = 3
	// foreseen is the largest lateness of a single sleep that enters the usual lateness. A greater lateness is due to
	// chance and counts as foreseen.
	foreseen = 300 * time.Microsecond
	// mostOpen limits the number of open timer descriptors. A sleep that gets no descriptor uses the time package.
	mostOpen = 1024
)

// Sleep returns after d, or at most 6 ms after done is closed; done may be nil. If it does not busy-wait, it returns
// some microseconds early as often as late, so that sleeps have the right length on average.
func (s *Sleepers) Sleep(done <-chan struct{}, d time.Duration) {
	if d <= 0 {
		return
	}
	if s.Plain {
		Plain(done, d)
		return
	}
	s.until(done, time.Now().Add(d))
}

func (s *Sleepers) until(done <-chan struct{}, end time.Time) {
	if left := time.Until(end); left > 2*coarse && !Plain(done, left-coarse) {
		return
	}
	timer := s.take()
	if timer == nil {
		Plain(done, time.Until(end))
		return
	}
	if s.Exact && s.mayCompute() {
		s.sleep(timer, end.Add(-margin), spare)
		for time.Now().Before(end) {
		}
		s.computing.Add(-1)
	} else {
		s.sleep(timer, end, 1)
	}
	s.give(timer)
}

// sleep sets the timer to an instant before end. The time between the two is the usual lateness multiplied by times.
// After waking up, sleep updates the usual lateness with the lateness of this sleep. If the instant has already passed,
// sleep only reduces the usual lateness a little, so that later sleeps use the timer again.
func (s *Sleepers) sleep(timer *descriptor, end time.Time, times int64) {
	late := s.late.Load()
	goal := end.Add(-time.Duration(times * late))
	if timer.sleep(goal) {
		s.late.Store(late + (int64(min(time.Since(goal), foreseen))-late)/16)
	} else {
		s.late.Store(late - late/16)
	}
}

// mayCompute reports whether one more goroutine may busy-wait. If so, the caller must decrement computing afterwards.
func (s *Sleepers) mayCompute() bool {
	if s.computing.Add(1) <= int32(max(1, runtime.GOMAXPROCS(0)/2)) {
		return true
	}
	s.computing.Add(-1)
	return false
}

// Plain sleeps with the time package. It returns false if done was closed before the end of the sleep. done may be nil.
func Plain(done <-chan struct{}, d time.Duration) bool {
	if d <= 0 {
		select {
		case <-done:
			return false
		default:
			return true
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-done:
		return false
	}
}

// Rest sleeps with the time package before a retry: 20 ms after the first failure (failures is 0), twice as long after
// each further one, and at most a second. It ends early when done is closed.
func Rest(done <-chan struct{}, failures int) {
	Plain(done, min(time.Second, 20*time.Millisecond<<min(failures, 6)))
}

// take returns an unused descriptor; nil if none is available.
func (s *Sleepers) take() *descriptor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.idle) - 1; last >= 0 {
		timer := s.idle[last]
		s.idle = s.idle[:last]
		return timer
	}
	if s.closed || s.open >= mostOpen {
		return nil
	}
	timer := open()
	if timer != nil {
		s.open++
	}
	return timer
}

func (s *Sleepers) give(timer *descriptor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		timer.close()
		return
	}
	s.idle = append(s.idle, timer)
}

// Close releases the descriptors. Sleeps in progress continue. Later sleeps use the time package.
func (s *Sleepers) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, timer := range s.idle {
		timer.close()
	}
	s.idle = nil
}
