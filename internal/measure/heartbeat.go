package measure

import (
	"sync"
	"sync/atomic"
	"time"
)

// Heartbeat measures for how long this process did not run because it was stopped, its container was paused or its
// machine was suspended. A goroutine wakes up at a fixed interval (beat) and reads the clocks.
type Heartbeat struct {
	window *Window
	still  atomic.Int64 // ns, the longest such time
	end    chan struct{}
	ended  sync.WaitGroup
}

// beat is the time between two wake-ups. Only stops much longer than a beat can be detected.
const beat = 20 * time.Millisecond

// pulse holds the readings of the clocks at one wake-up.
type pulse struct {
	at   int64         // by the window's clock, which may stop during a suspension
	real time.Duration // since a fixed instant, including suspensions
	cpu  time.Duration // CPU time used by this process
}

// NewHeartbeat starts a Heartbeat. The window must already be planned.
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

// stood returns for how long the process did not run between two wake-ups in the window. It subtracts the CPU time used
// in between, because a busy process may also wake up late.
func (h *Heartbeat) stood(last, now pulse) int64 {
	end := h.window.End()
	if h.window.clip(last.at, now.at, end) == 0 {
		return 0
	}
	late := h.window.clip(last.at+int64(beat), now.at, end)
	suspended := now.real - last.real - time.Duration(now.at-last.at)
	return max(0, late+int64(max(0, suspended))-int64(now.cpu-last.cpu))
}

// End stops the heartbeat and returns the longest time in the window for which the process did not run.
func (h *Heartbeat) End() time.Duration {
	close(h.end)
	h.ended.Wait()
	return time.Duration(h.still.Load())
}
