package measure

import (
	"sync"
	"sync/atomic"
	"time"
)

// Heartbeat notes for how long this process did not run: it was stopped, its container was
// paused, or its machine was suspended. It is a goroutine that wakes up all the time.
type Heartbeat struct {
	window *Window
	still  atomic.Int64 // ns, the longest time
	end    chan struct{}
	ended  sync.WaitGroup
}

// beat is the time between two wake-ups. What lasts much longer than this is of interest.
const beat = 20 * time.Millisecond

// pulse is what a wake-up sees.
type pulse struct {
	at   int64         // by the window's clock, which may stand still while a machine is suspended
	real time.Duration // since some instant, suspensions included
	cpu  time.Duration // used by this process
}

// NewHeartbeat begins to beat. The window must be planned.
func NewHeartbeat(w *Window) *Heartbeat {
	h := &Heartbeat{window: w, end: make(chan struct{})}
	last := h.pulse()
	h.ended.Go(func() {
		beats := time.NewTicker(beat)
		defer beats.Stop()
		for {
			select {
			case <-beats.C:
			case <-h.end:
				return
			}
			now := h.pulse()
			h.still.Store(max(h.still.Load(), h.stood(last, now)))
			last = now
		}
	})
	return h
}

func (h *Heartbeat) pulse() pulse {
	return pulse{at: h.window.Clock.Now(), real: realTime(), cpu: processCPU()}
}

// stood returns for how long, between two wake-ups and in the window, the process did not run.
// The CPU time that it used in between is subtracted: a busy process may also wake up late.
func (h *Heartbeat) stood(last, now pulse) int64 {
	end := h.window.End()
	if h.window.clip(last.at, now.at, end) == 0 {
		return 0
	}
	late := h.window.clip(last.at+int64(beat), now.at, end)
	suspended := now.real - last.real - time.Duration(now.at-last.at)
	return max(0, late+int64(max(0, suspended))-int64(now.cpu-last.cpu))
}

// End ends the heartbeat, and returns the longest time in the window for which the process did
// not run.
func (h *Heartbeat) End() time.Duration {
	close(h.end)
	h.ended.Wait()
	return time.Duration(h.still.Load())
}
