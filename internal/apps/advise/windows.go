package advise

import (
	"time"

	"github.com/lockbench/lockbench/workloads"
)

const (
	// turns are how often each client can be served in a window: one that is served once
	// less than the others is not told from one that starves.
	turns = 2
	// leastWindow and leastWarmup are those of the shortest runs.
	leastWindow, leastWarmup = 500 * time.Millisecond, 200 * time.Millisecond
	// passing is about what a lock needs to get from one holder to the next.
	passing = time.Millisecond
	// arrivals are as many of an open loop as a 90th percentile takes, for one turn.
	arrivals = 50

	// most is how long an answer may take, and allowed what runs may take of it, the rest
	// being for starting and cleaning up.
	most, allowed = 3 * time.Minute, most - 15*time.Second
)

// round is about how long every client needs for one turn, as long as somebody wants the
// lock: clients × mean hold ÷ keys, where one key is wanted most clients × its share; but
// no less than a client alone needs.
func round(w workloads.Spec) time.Duration {
	_ = w.Load() // its errors have been named
	hold := w.Hold.Mean() + passing
	if w.Rate > 0 {
		return max(hold, time.Duration(arrivals/float64(w.Rate)*float64(time.Second)))
	}
	crowd := float64(w.Clients) * w.KeyDist.Hottest(w.Keys)
	return max(hold+w.Think.Mean(), time.Duration(crowd*float64(hold)))
}

// fair are a window in which every client can be served as often as it must, and the
// warm-up after which waits are as long as they get.
func fair(w workloads.Spec) (window, warmup time.Duration) {
	one := round(w)
	return max(leastWindow, (turns * one).Round(10*time.Millisecond)), max(leastWarmup, (one / 2).Round(10*time.Millisecond))
}

// Sized is the question with windows and warm-ups, as far as they are not given, that are
// long enough to see who starves, and short enough for an answer within three minutes.
func (q Question) Sized(givenWindow, givenWarmup bool) Question {
	window, warmup := fair(q.Workload)
	set := func(part float64) {
		if !givenWindow {
			q.Workload.Duration = workloads.Duration(max(leastWindow, scaled(window, part)))
		}
		if !givenWarmup {
			q.Workload.Warmup = workloads.Duration(max(leastWarmup, scaled(warmup, part)))
		}
	}
	set(1)
	q.sized = !givenWindow
	if !q.sized {
		return q
	}
	for part := 0.95; q.Expected() > allowed && time.Duration(q.Workload.Duration) > leastWindow; part *= 0.95 {
		set(part)
	}
	if time.Duration(q.Workload.Duration) < window {
		q.needed = window
	}
	return q
}

// scaled is a part of a time, to 10 ms.
func scaled(t time.Duration, part float64) time.Duration {
	return time.Duration(float64(t) * part).Round(10 * time.Millisecond)
}

// Needed is the window that it would take to serve every client twice, where time does not
// allow it; else 0.
func (q Question) Needed() time.Duration { return q.needed }
