package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A fault's target requests the lock like any other client for the duration grace. If it has no lease by then, the
// other clients must pause until this target and all earlier targets have been served.
func TestClientsYieldToTargets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPrecedence(t.Context().Done())
		began := time.Now()
		waited := func() time.Duration {
			p.yieldToTargets()
			return time.Since(began)
		}
		first, second := make(chan struct{}), make(chan struct{})
		go p.goFirst(first)
		if took := waited(); took != 0 {
			t.Errorf("clients stood back %v after a request; a target has the same rights for %v", took, grace)
		}
		time.Sleep(grace + time.Millisecond)
		go p.goFirst(second)
		time.Sleep(grace + time.Millisecond)
		time.AfterFunc(time.Second, func() { close(second) })
		time.AfterFunc(3*time.Second, func() { close(first) })
		if took, least := waited(), 3*time.Second+2*grace; took < least {
			t.Errorf("clients stood back for %v, not %v, when two targets went first", took, least)
		}
	})
}

// A fault's target waits for ever. The clients that let it go first must return at the end of the window.
func TestClientsYieldUntilWindowEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		window, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		p := newPrecedence(window.Done())
		served := make(chan struct{})
		defer close(served)
		go p.goFirst(served)
		time.Sleep(2 * grace)
		began := time.Now()
		if p.yieldToTargets(); time.Since(began) != time.Second-2*grace {
			t.Errorf("clients stood back for %v", time.Since(began))
		}
	})
}

// A fault waits for a client that holds a lock. The first such client must keep its lock until the fault ends, and
// later holders must continue at once.
func TestPinnedHolderKeepsItsLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPrecedence(t.Context().Done())
		needed, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		pinned := make(chan int, 1)
		p.keepLock(1) // returns at once because no fault waits for a holder yet
		go func() {
			key, err := p.pinHolder(needed)
			if err != nil {
				t.Error(err)
			}
			pinned <- key
		}()
		synctest.Wait()
		began := time.Now()
		p.keepLock(7)
		if took, key := time.Since(began), <-pinned; took != time.Minute || key != 7 {
			t.Errorf("the holder kept key %d for %v", key, took)
		}
		p.keepLock(8)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("another holder kept its lock for %v", took-time.Minute)
		}
		if _, err := p.pinHolder(needed); err == nil {
			t.Error("a fault pinned a holder although its time was over")
		}
	})
}
