package advise

import (
	"time"

	"github.com/lockbench/lockbench/workloads"
)

const (
	// turns is how often each client can be served in a window: with one turn, a client that is served
	// once less than the others looks like one that starves.
	turns = 2
	// leastWindow and leastWarmup belong to the shortest runs.
	leastWindow, leastWarmup = 500 * time.Millisecond, 200 * time.Millisecond
	// passing is the approximate time of a lock from one holder to the next.
	passing = time.Millisecond
	// arrivals is the number of arrivals in an open loop that a 90th percentile needs, for one turn.
	arrivals = 50

	// most is the time limit of an answer, and allowed the part of it for runs; the rest is for start
	// and clean-up.
	most, allowed = 3 * time.Minute, most - 15*time.Second
)

// round is about how long it takes to serve every client once under constant contention: clients × mean
// hold ÷ keys, or with a most wanted key, clients × its share × mean hold; but at least what one
// client alone needs.
func round(w workloads.Spec) time.Duration {
	_ = w.Load() // Validate has reported its errors
	hold := w.Hold.Mean() + passing
	if w.Rate > 0 {
		return max(hold, time.Duration(arrivals/float64(w.Rate)*float64(time.Second)))
	}
	crowd := float64(w.Clients) * w.KeyDist.Hottest(w.Keys)
	return max(hold+w.Think.Mean(), time.Duration(crowd*float64(hold)))
}

// fair returns a window in which every client can be served often enough, and the warm-up after which the
// waits do not grow any more.
func fair(w workloads.Spec) (window, warmup time.Duration) {
	one := round(w)
	return max(leastWindow, (turns * one).Round(10*time.Millisecond)), max(leastWarmup, (one / 2).Round(10*time.Millisecond))
}

// Sized returns the question with windows and warm-ups, unless given, that are long enough to see which
// clients starve, and short enough for an answer within three minutes.
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

// scaled returns a part of a time, rounded to 10 ms.
func scaled(t time.Duration, part float64) time.Duration {
	return time.Duration(float64(t) * part).Round(10 * time.Millisecond)
}

// Needed returns the window that would serve every client twice if there is no time for it; else 0.
func (q Question) Needed() time.Duration { return q.needed }
