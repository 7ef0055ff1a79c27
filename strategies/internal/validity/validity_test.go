package validity_test

import (
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
