package internal_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/lockbench/lockbench/strategies/internal/background"
)

// One goroutine calls Go while another calls Close. All functions that Go has started must have returned when Close
// returns. The race detector would also report a call of WaitGroup.Go during WaitGroup.Wait.
func TestCloseDuringGo(t *testing.T) {
	t.Parallel()
	for range 100 {
		var g background.Group
		var started, ended atomic.Int64
		others := make(chan struct{})
		go func() {
			defer close(others)
			for range 20 {
				if !g.Go(func() { runtime.Gosched(); ended.Add(1) }) {
					return
				}
				started.Add(1)
			}
		}()
		runtime.Gosched()
		g.Close()
		at := ended.Load()
		<-others
		if !g.Closed() || started.Load() != at {
			t.Fatalf("%d goroutines started, of which %d had ended when Close returned", started.Load(), at)
		}
	}
}
