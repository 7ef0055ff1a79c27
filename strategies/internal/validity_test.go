package internal_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// One goroutine sets an Until to ever later times while another reads it. The read times must never decrease, and the
// race detector must find no race.
func TestUntil(t *testing.T) {
	var until validity.Until
	if !until.Get().IsZero() {
		t.Errorf("never set, it is %v", until.Get())
	}
	start := time.Now()
	var all sync.WaitGroup
	all.Go(func() {
		for n := range 100 {
			until.Set(start.Add(time.Duration(n)))
		}
	})
	for last := (time.Time{}); last.Before(start.Add(99)); {
		now := until.Get()
		if now.Before(last) {
			t.Errorf("it went back from %v to %v", last, now)
		}
		last = now
	}
	all.Wait()
}

// UnlessLate must return nil for ErrLate, after which a waiter tries again, and any other error unchanged.
func TestUnlessLate(t *testing.T) {
	other := errors.New("broken pipe")
	for _, c := range []struct{ err, want error }{
		{nil, nil}, {fmt.Errorf("set: %w", validity.ErrLate), nil}, {other, other},
	} {
		if got := validity.UnlessLate(c.err); !errors.Is(got, c.want) {
			t.Errorf("of %v it is %v, want %v", c.err, got, c.want)
		}
	}
}

// TTL must cut off fractions of a millisecond, because Redis counts in milliseconds, and a lease must not outlive its
// key. It must refuse any TTL below 1 ms.
func TestTTL(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{
		time.Millisecond: time.Millisecond, 1999 * time.Microsecond: time.Millisecond, time.Hour + 1: time.Hour,
	} {
		if got, err := validity.TTL(asked); got != want || err != nil {
			t.Errorf("of %v it is %v, %v, want %v", asked, got, err, want)
		}
	}
	for _, asked := range []time.Duration{-time.Hour, -1, 0, time.Millisecond - 1} {
		if got, err := validity.TTL(asked); err == nil {
			t.Errorf("%v was taken, as %v", asked, got)
		}
	}
}
