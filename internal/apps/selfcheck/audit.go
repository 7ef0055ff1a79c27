package selfcheck

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

const (
	// longEnough is the length from which the audit must find every overlap.
	longEnough = 100 * time.Microsecond
	// The check needs at least enough overlaps. On a busy machine it may use up to mostWindows windows.
	enough, mostWindows = 50, 4
	// overlapOff is the permitted error of the audit's overlapped time, in percent.
	overlapOff = 2.0
)

// audit runs a lock that often admits a second client. The number and the length of the overlaps are known in
// two more ways: the lock counts them, and the instants of the clients' leases show them. If it is not
// rigged, the same lock must have no overlaps.
func (s *session) audit(ctx context.Context, c *Check) error {
	w := workload(8, 4, s.Effort.Window)
	_ = w.Hold.UnmarshalText([]byte("uniform:1ms,4ms")) // a valid constant
	s.say("audit: a lock that lets in two")
	lock, seen := newDoubling(true), observations{}
	for seen.windows < mostWindows && seen.long() < enough {
		if err := s.observe(ctx, lock, w, &seen); err != nil {
			return err
		}
	}
	let, long := lock.twice.Load(), seen.long()
	if long < enough {
		c.unsure("only %d overlaps of %v and more: too few", long, longEnough)
	}
	c.inform("times the lock let in a second one", float64(let), results.Number)
	c.want(int64(len(seen.overlaps)) <= let, "overlaps by the clients' own instants", float64(len(seen.overlaps)), results.Number, "at most as many")
	c.inform("shortest of them", float64(shortest(seen.overlaps)), results.Nanoseconds)
	c.inform("of 100 µs and more", float64(long), results.Number)
	// A client may not run between the end of its recorded hold and its call of Release: the audit
	// finds an overlap then that the instants do not show.
	c.want(seen.audited >= long && seen.audited <= let, "found by the audit", float64(seen.audited), results.Number,
		"at least %d, at most %d", long, let)
	off := (float64(seen.auditedNS)/float64(seen.total()) - 1) * 100
	c.want(near(off, 0, overlapOff), "overlapped time off the instants'", off, results.Percent, "within %v %%", overlapOff)
	c.want(seen.broken == seen.windows, "windows in which the claim was found broken", float64(seen.broken), results.Number, "%d", seen.windows)

	s.say("audit: the same lock, letting in one")
	honest := &records{}
	run, err := s.watched(ctx, newDoubling(false).strategy(), w, honest)
	if err != nil {
		return err
	}
	c.want(run.Safety.Overlaps+run.Safety.ExpiredOverlaps == 0, "honest lock: found by the audit", float64(run.Safety.Overlaps+run.Safety.ExpiredOverlaps), results.Number, "0")
	c.inform("honest lock: acquisitions", float64(len(honest.all)), results.Number)
	return nil
}

// observations is what a rigged lock's windows have shown.
type observations struct {
	overlaps           []time.Duration // by the clients' instants
	audited, auditedNS int64           // overlaps found by the audit
	windows, broken    int             // all windows, and those in which the claim was found broken
}

// observe runs a lock for one window.
func (s *session) observe(ctx context.Context, lock *doubling, w workloads.Spec, seen *observations) error {
	observed := &records{}
	run, err := s.watched(ctx, lock.strategy(), w, observed)
	if err != nil {
		return err
	}
	seen.overlaps = append(seen.overlaps, overlaps(observed.all)...)
	seen.audited += run.Safety.Overlaps
	seen.auditedNS += run.Safety.OverlapNS
	seen.windows++
	if len(run.Safety.Broken) > 0 {
		seen.broken++
	}
	return nil
}

// long returns how many overlaps the audit must have found.
func (seen *observations) long() (n int64) {
	for _, o := range seen.overlaps {
		if o >= longEnough {
			n++
		}
	}
	return n
}

func (seen *observations) total() (sum time.Duration) {
	for _, o := range seen.overlaps {
		sum += o
	}
	return sum
}

// overlaps returns how long two leases were held at once, from the instants alone. There are never more than
// two holders.
func overlaps(acquired []engine.Acquisition) []time.Duration {
	ordered := slices.Clone(acquired)
	slices.SortFunc(ordered, func(a, b engine.Acquisition) int { return cmp.Compare(a.Granted, b.Granted) })
	var found []time.Duration
	for i := 1; i < len(ordered); i++ {
		before, after := ordered[i-1], ordered[i]
		if both := min(before.Released, after.Released) - after.Granted; both > 0 {
			found = append(found, time.Duration(both))
		}
	}
	return found
}

func shortest(of []time.Duration) time.Duration {
	if len(of) == 0 {
		return 0
	}
	return slices.Min(of)
}
