package engine

import (
	"math"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// park makes a client of a closed loop wait while the stages want fewer clients.
func (c *client) park() {
	r := c.run
	if r.arrivals != nil || len(r.Workload.Stages) == 0 {
		return
	}
	for !r.control.stopping.Load() {
		now := time.Duration(r.clock.Now() - r.window.Open)
		at, ever := reach(r.Workload.Stages, now, float64(c.id+1))
		switch {
		case !ever:
			<-r.control.acquire.Done()
		case at <= max(now, 0):
			return
		default:
			c.sleep(at - now)
		}
	}
}

// reach returns the first instant from at on, as a time since the window opened, at which
// the stages want n clients or more; false if there is none.
func reach(stages workloads.Stages, at time.Duration, n float64) (time.Duration, bool) {
	from, begin := stages[0].Target, time.Duration(0)
	for _, stage := range stages {
		length := time.Duration(stage.Duration)
		offset := max(at-begin, 0)
		if at < begin+length {
			slope := (stage.Target - from) / float64(length)
			switch level := from + slope*float64(offset); {
			case level >= n:
				return max(at, begin), true
			case stage.Target >= n:
				return begin + time.Duration(math.Ceil((n-from)/slope)), true
			}
		}
		from, begin = stage.Target, begin+length
	}
	return max(at, begin), from >= n
}
