package selfcheck

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// The clients of the check, each an instance of its own, how long they hold, and what part
// of a round the short window has room for.
const (
	line      = crowdInstances
	lineHold  = 20 * time.Millisecond
	partRound = 0.5
)

// fairRound runs a first-come-first-served lock in a window in which not everybody can have
// a turn, and rigged, so that one client never has one, in one of many rounds. In the first
// nothing may be said of starving, in the other exactly one client starves.
func (s *session) fairRound(ctx context.Context, c *Check) error {
	const round = line * lineHold
	w := workload(line, line, time.Duration(partRound*float64(round)))
	w.Hold = workloads.Fixed(lineHold)
	s.say("fairround: a window too short for everybody")
	short, err := s.do(ctx, s.job(queueWith(false), w))
	if err != nil {
		return err
	}
	w = workload(line, line, s.Effort.Window)
	w.Hold = workloads.Fixed(200 * time.Microsecond)
	s.say("fairround: one client never gets the lock")
	long, err := s.do(ctx, s.job(queueWith(true), w))
	if err != nil {
		return err
	}
	noted := func(r *results.Run) float64 {
		return truth(slices.ContainsFunc(r.Labels, func(label string) bool { return strings.HasPrefix(label, "window too short for one fair round") }))
	}
	c.inform("short: acquisitions", float64(short.Speed.Served), results.Number)
	c.inform("short: clients without an acquisition", math.Max(0, float64(line-short.Speed.Served)), results.Number)
	c.want(short.Fairness.Starved == nil, "short: starving is told of", truth(short.Fairness.Starved != nil), results.Number, "0")
	c.want(noted(short) == 1, "short: the window is called too short", noted(short), results.Number, "1")
	c.want(told(long.Fairness.Starved) == 1, "long: starved clients", told(long.Fairness.Starved), results.Number, "1")
	c.want(noted(long) == 0, "long: the window is called too short", noted(long), results.Number, "0")
	return nil
}

// truth is 1 or 0.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// told is a count, -1 where there is none to be had: here that is a fault, and not a check
// that could not be made.
func told(n *int) float64 {
	if n == nil {
		return -1
	}
	return float64(*n)
}
