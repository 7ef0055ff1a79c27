package merge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// part is one generator's run.
type part struct {
	generator string
	results.Run
}

// enough is the least share of a window that all windows must have in common: otherwise the figures
// are of different loads.
const enough = 0.9

// common returns the instant from which all windows were open together, and for how many
// nanoseconds; 0 if they never were.
func common(parts []part) (time.Time, int64) {
	opened, closed := parts[0].Started, end(parts[0])
	for _, p := range parts[1:] {
		if p.Started.After(opened) {
			opened = p.Started
		}
		if end(p).Before(closed) {
			closed = end(p)
		}
	}
	return opened, max(0, int64(closed.Sub(opened)))
}

func end(p part) time.Time { return p.Started.Add(time.Duration(p.WindowNS)) }

// join returns the run of all generators' clients: results.Combine of their runs, and some of
// the fields that Combine leaves empty. These remain empty:
//
//   - handoffs, working set, reacquire distance, overtaken and lost updates: only one process
//     could observe both sides;
//   - Redis over the whole run: each generator saw another interval;
//   - other clients' traffic: it would be the other generators';
//   - herd and faults: they need a single process.
func join(parts []part) (results.Run, error) {
	var runs []results.Run
	for _, p := range parts {
		runs = append(runs, p.Run)
	}
	run, err := results.Combine(runs)
	if err != nil {
		return run, err
	}
	run.Started, run.WindowNS = common(parts)
	for i := range run.Timeline {
		for _, p := range parts {
			run.Timeline[i].TakeSlowest(p.Timeline[i])
		}
	}
	slices.SortFunc(run.Errors, func(a, b results.ErrorCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Error, b.Error))
	})
	readings(&run.Server, parts)
	remarks(&run, parts)
	invalidTogether(&run, parts)
	return run, acquisitions(&run.Fairness, parts)
}

// gap is the time per acquisition in which no client held the lock. No generator sees the waiters
// of another, so it is only known if clients always wait: several clients for one key, and none
// of them pauses, times out, shares or ends early. nil otherwise.
func gap(of *results.Report, each workloads.Spec, run results.Run) *float64 {
	hold, speed := run.Speed.Hold.MeanNS, run.Speed.PerSecond
	one := slices.ContainsFunc(of.Strategies, func(s results.Strategy) bool { return s.Name == run.Strategy && s.Capacity == 1 })
	if !one || each.Keys != 1 || each.Rate > 0 || len(each.Stages) > 0 || !each.Think.IsZero() ||
		each.Timeout != nil || each.Coalesce || each.Iterations > 0 || hold == nil || speed == 0 {
		return nil
	}
	return new(1e9/speed - *hold)
}

// readings removes Redis's counts if a generator could not read them. A generator without any
// acquisition has no counts per acquisition and no share in the total: then only the counts of
// the sockets are removed.
func readings(s *results.Server, parts []part) {
	for _, p := range parts {
		switch {
		case p.Server.Window != nil || s.Window == nil:
		case p.Speed.Acquisitions > 0:
			s.Window = nil
		default:
			s.Window.RoundTrips, s.Window.ClientBytesOut, s.Window.ClientBytesIn = nil, nil, nil
		}
	}
}

// remarks adds what was said of the parts, with the generator's name where they differ.
func remarks(run *results.Run, parts []part) {
	for _, p := range parts {
		for _, claim := range p.Safety.Broken {
			run.Safety.Broken = append(run.Safety.Broken, claim+" (seen by "+p.generator+")")
		}
		for _, why := range p.Invalid {
			run.Invalid = append(run.Invalid, p.generator+": "+why)
		}
		if p.Failure != "" && run.Failure == "" {
			run.Failure = p.generator + ": " + p.Failure
		}
		for _, label := range p.Labels {
			if label != results.PartOfASession && !slices.Contains(run.Labels, label) {
				run.Labels = append(run.Labels, label)
			}
		}
	}
}

// invalidTogether adds the reasons that only all parts together show.
func invalidTogether(run *results.Run, parts []part) {
	longest := slices.MaxFunc(parts, func(a, b part) int { return cmp.Compare(a.WindowNS, b.WindowNS) }).WindowNS
	if float64(run.WindowNS) < enough*float64(longest) {
		run.Invalid = append(run.Invalid, fmt.Sprintf("its generators' windows were open together for %v of %v",
			time.Duration(run.WindowNS).Round(time.Millisecond), time.Duration(longest).Round(time.Millisecond)))
	}
	if run.Speed.Acquisitions == 0 && len(parts[0].Faults) == 0 && run.Valid() {
		run.Invalid = append(run.Invalid, "it had not one acquisition")
	}
}

// acquisitions combines the acquisitions per client, and computes Jain's index from them: exact up
// to 2047 acquisitions per client, within 0.1 % above. Both stay empty in an open loop, whose
// clients are slots.
func acquisitions(f *results.Fairness, parts []part) error {
	all := results.NewPerClientHistogram()
	for _, p := range parts {
		h, err := p.Fairness.PerClientHistogram()
		if err != nil {
			return fmt.Errorf("%s: %w", p.generator, err)
		}
		if h == nil {
			return nil
		}
		all.Merge(h)
	}
	var n, sum, squares float64
	for _, bar := range all.Distribution() {
		clients, x := float64(bar.Count), float64(bar.From)
		n += clients
		sum += clients * x
		squares += clients * x * x
	}
	f.Jain = results.Jain(n, sum, squares)
	f.SetPerClient(all)
	return nil
}
