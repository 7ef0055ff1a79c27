package validity_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// The race detector checks that a holder may move it while an auditor reads it.
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

// Who waits tries again after an answer that came too late, and ends with any other error.
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

// A lease may end earlier than was thought.
func TestLower(t *testing.T) {
	var until validity.Until
	until.Lower(time.Now())
	if !until.Get().IsZero() {
		t.Errorf("never set, it is %v", until.Get())
	}
	start := time.Now()
	until.Set(start.Add(time.Minute))
	for _, to := range []time.Duration{time.Hour, time.Second, time.Minute} {
		until.Lower(start.Add(to))
		if want := min(to, time.Minute); to != time.Minute && !until.Get().Equal(start.Add(want)) {
			t.Errorf("lowered to %v, it is %v", to, until.Get().Sub(start))
		}
	}
	if !until.Get().Equal(start.Add(time.Second)) {
		t.Errorf("lowered to what is later, it is %v", until.Get().Sub(start))
	}
}
