package pause

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// overshoot returns by how much the median of 101 calls of sleep(d) exceeds d.
func overshoot(sleep func(time.Duration), d time.Duration) time.Duration {
	var over []time.Duration
	for range 101 {
		began := time.Now()
		sleep(d)
		over = append(over, time.Since(began)-d)
	}
	slices.Sort(over)
	return over[len(over)/2]
}

// With Exact, the median sleep must not be shorter than requested. The test only logs by how much the other sleeps, and
// time.Sleep, exceed the request.
func TestSleepsAreExact(t *testing.T) {
	for _, exact := range []bool{true, false} {
		s := &Sleepers{Exact: exact}
		defer s.Close()
		for _, d := range []time.Duration{100 * time.Microsecond, time.Millisecond, 8 * time.Millisecond} {
			own := overshoot(func(d time.Duration) { s.Sleep(nil, d) }, d)
			t.Logf("exact %v, %v: %v too long in the median, time.Sleep %v", exact, d, own, overshoot(time.Sleep, d))
			if exact && own < 0 {
				t.Errorf("a sleep of %v ended %v early", d, -own)
			}
		}
	}
}

func TestConcurrentSleeps(t *testing.T) {
	s := &Sleepers{Exact: true}
	var all sync.WaitGroup
	began := time.Now()
	for range 2 * mostOpen {
		all.Go(func() { s.Sleep(nil, 5*time.Millisecond) })
	}
	all.Wait()
	if time.Since(began) < 5*time.Millisecond {
		t.Error("they did not sleep")
	}
	if s.open > mostOpen || len(s.idle) != s.open || s.computing.Load() != 0 {
		t.Errorf("%d descriptors, %d of them idle, %d computing", s.open, len(s.idle), s.computing.Load())
	}
	s.Close()
	s.Sleep(nil, time.Microsecond) // works without any
	if len(s.idle) != 0 {
		t.Errorf("%d descriptors after Close", len(s.idle))
	}
}

func TestLongSleepCanBeEnded(t *testing.T) {
	s := &Sleepers{}
	defer s.Close()
	done := make(chan struct{})
	close(done)
	slept := make(chan struct{})
	go func() {
		defer close(slept)
		s.Sleep(done, time.Hour)
	}()
	<-slept
}

func TestPlainSleepsUseVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Sleepers{Exact: true, Plain: true}
		began := time.Now()
		s.Sleep(nil, 90*time.Microsecond)
		if got := time.Since(began); got != 90*time.Microsecond {
			t.Errorf("slept %v", got)
		}
	})
}
