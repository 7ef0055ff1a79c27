package selfcheck

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

const (
	// longEnough an overlap must be for the audit to find it without fail.
	longEnough = 100 * time.Microsecond
	// enough overlaps make the check worth its name. A busy machine may need a window
	// more for them, and gets mostWindows.
	enough, mostWindows = 50, 4
	// overlapOff is what the audit's overlapped time may be off, in percent.
	overlapOff = 2.0
)

// audit runs a lock that often lets in a second client. How often and for how
// long is counted twice beside the audit: by the lock itself, and afterwards from
// the instants at which the clients had their leases. Without rigging the same
// lock must come out clean.
func (s *session) audit(ctx context.Context, c *check) error {
	w := workload(8, 4, s.Effort.Window)
	_ = w.Hold.UnmarshalText([]byte("uniform:1ms,4ms")) // a constant
	s.say("audit: a lock that lets in two")
	lock := newDoubling(true)
	var found []time.Duration // by the clients' own instants
	var audited, overlapNS, long int64
	broken, total := 1, time.Duration(0)
	for window := 0; window < mostWindows && long < enough; window++ {
		seen := &records{}
		job := s.job(lock.strategy(), w)
		job.Observer = seen
		run, err := s.do(ctx, job)
		if err != nil {
			return err
		}
		found = append(found, overlaps(seen.all)...)
		long, total = 0, 0
		for _, o := range found {
			total += o
			if o >= longEnough {
				long++
			}
		}
		audited += run.Safety.Overlaps
		overlapNS += run.Safety.OverlapNS
		broken = min(broken, len(run.Safety.Broken))
	}
	let := lock.twice.Load()
	if long < enough {
		c.unsure("only %d overlaps of %v and more: too few", long, longEnough)
	}
	c.inform("times the lock let in a second one", float64(let), results.Number)
	c.want(int64(len(found)) <= let, "overlaps by the clients' own instants", float64(len(found)), results.Number, "at most as many")
	c.inform("shortest of them", float64(shortest(found)), results.Nanoseconds)
	c.inform("of 100 µs and more", float64(long), results.Number)
	// A client can be kept from running between the instant that ends its hold and
	// the call of Release: somebody let in meanwhile is found, and not in the instants.
	c.want(audited >= long && audited <= let, "found by the audit", float64(audited), results.Number,
		"at least %d, at most %d", long, let)
	off := (float64(overlapNS)/float64(total) - 1) * 100
	c.want(near(off, 0, overlapOff), "overlapped time off the instants'", off, results.Percent, "within %v %%", overlapOff)
	c.want(broken == 1, "claims found broken", float64(broken), results.Number, "1")

	s.say("audit: the same lock, letting in one")
	honest := &records{}
	job := s.job(newDoubling(false).strategy(), w)
	job.Observer = honest
	run, err := s.do(ctx, job)
	if err != nil {
		return err
	}
	c.want(run.Safety.Overlaps+run.Safety.Late == 0, "honest lock: found by the audit", float64(run.Safety.Overlaps+run.Safety.Late), results.Number, "0")
	c.inform("honest lock: acquisitions", float64(len(honest.all)), results.Number)
	return nil
}

// overlaps are the times for which a lease was in a client's hands before an
// earlier one had left another's, by their instants alone. No more than two are
// ever held at a time.
func overlaps(acquired []workloads.Acquisition) []time.Duration {
	ordered := slices.Clone(acquired)
	slices.SortFunc(ordered, func(a, b workloads.Acquisition) int { return cmp.Compare(a.Granted, b.Granted) })
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
