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

// The clients of the check, each an instance of its own, their hold, and the part of a round that the short
// window has room for.
const (
	line      = crowdInstances
	lineHold  = 20 * time.Millisecond
	partRound = 0.5
)

// fairRound runs a first-come-first-served lock twice: in a window that is too short for a turn of every
// client, and rigged, so that one client never has a turn, in a window of many rounds. The first run
// must not report starvation, the second must report exactly one starved client.
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

// truth returns 1 or 0.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// told returns a count, or -1 if it is not known: here that is a failure, not an inconclusive check.
func told(n *int) float64 {
	if n == nil {
		return -1
	}
	return float64(*n)
}
