package results

import "slices"

// herdColumns show the bursts of a workload that gathers a herd; nil for others.
func herdColumns(r *Report) []column {
	if !slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Herd != nil }) {
		return nil
	}
	of := func(value func(*Herd) *float64) func(Run) *float64 {
		return func(r Run) *float64 {
			if r.Herd == nil {
				return nil
			}
			return value(r.Herd)
		}
	}
	span := func(value func(*Herd) *Bound) func(Run) *Bound {
		return func(r Run) *Bound {
			if r.Herd == nil {
				return nil
			}
			return value(r.Herd)
		}
	}
	return []column{
		{"bursts", false, figure(of(func(h *Herd) *float64 { return exactly(h.Bursts) }), whole)},
		{"attempts", false, figure(of(func(h *Herd) *float64 { return h.Attempts }), significant)},
		{"wake-ups", false, figure(of(func(h *Herd) *float64 { return h.WakeUps }), significant)},
		{"commands", false, figure(of(func(h *Herd) *float64 { return h.Commands }), significant)},
		{"first\nhandoff", false, duration(span(func(h *Herd) *Bound { return h.FirstHandoff.P50 }))},
		{"drain\np50", false, duration(span(func(h *Herd) *Bound { return h.Drain.P50 }))},
		{"commands\nper turn", false, figure(of(func(h *Herd) *float64 { return h.DrainCommands }), significant)},
		{"peak\nCPU", false, figure(of(func(h *Herd) *float64 { return h.PeakCPU }), percent)},
	}
}
