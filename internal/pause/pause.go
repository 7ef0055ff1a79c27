// Package pause sleeps more exactly than the time package: on an idle Linux
// machine time.Sleep rounds up to a millisecond, because it waits in epoll, whose
// time-out has no finer unit.
package pause

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Sleepers sleep for any number of goroutines at a time. Close releases their
// descriptors. The zero value is ready, and sleeps without computing.
type Sleepers struct {
	// Exact has the end of a sleep computed away, by as many goroutines at a time
	// as half of the CPUs. It costs 30 µs of CPU a sleep, and three times as much as
	// sleepers have lately woken up late: it is not for a service.
	Exact bool
	// Plain uses nothing but the time package, as in a bubble of testing/synctest,
	// where no other clock goes.
	Plain bool

	mu     sync.Mutex
	idle   []*descriptor
	open   int
	closed bool

	computing atomic.Int32
	late      atomic.Int64 // moving average of how late a descriptor wakes its sleeper, ns
}

const (
	// coarse is what is left to the time package of a long sleep: it may be a
	// millisecond late, or two.
	coarse = 3 * time.Millisecond
	// margin is what is computed away at least: an idle machine takes 30 to 50 µs to
	// wake up.
	margin = 30 * time.Microsecond
	// spare times the usual lateness is computed away besides.
	spare = 3
	// foreseen is the most of a sleeper's lateness that others learn from: what keeps
	// it from running for longer is chance.
	foreseen = 300 * time.Microsecond
	// mostOpen bounds the descriptors. Who finds none sleeps as the time package has it.
	mostOpen = 1024
)

// Sleep returns after d, or up to 6 ms later than done is closed. Done may be nil.
// Where it does not compute, it returns early as often as late, by microseconds, so
// that sleeps are right on average.
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

// sleep aims at an instant before the end, by so many times as much as sleepers have
// usually been late, and learns from by how much this one was. Where nothing is left
// to sleep it forgets a little, so that the next ones try again.
func (s *Sleepers) sleep(timer *descriptor, end time.Time, times int64) {
	late := s.late.Load()
	goal := end.Add(-time.Duration(times * late))
	if timer.sleep(goal) {
		s.late.Store(late + (int64(min(time.Since(goal), foreseen))-late)/16)
	} else {
		s.late.Store(late - late/16)
	}
}

// mayCompute says whether few enough compute already; who may has to be counted
// out again.
func (s *Sleepers) mayCompute() bool {
	if s.computing.Add(1) <= int32(max(1, runtime.GOMAXPROCS(0)/2)) {
		return true
	}
	s.computing.Add(-1)
	return false
}

// Plain sleeps as the time package has it. It says whether it slept to the end; it
// did not if done was closed before. Done may be nil.
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

// take is a descriptor that nobody uses; nil where there can be none.
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

// Close releases the descriptors. Who sleeps goes on sleeping; later sleeps are
// as the time package has them.
func (s *Sleepers) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, timer := range s.idle {
		timer.close()
	}
	s.idle = nil
}
