package results

// faultMetrics are what the workload's faults came to, all together; unknown without
// faults.
func faultMetrics() []Metric {
	count := func(value func(Strike) int64) func(Run) *int64 {
		return func(r Run) *int64 {
			if len(r.Faults) == 0 {
				return nil
			}
			var sum int64
			for _, s := range r.strikes() {
				sum += value(s)
			}
			return &sum
		}
	}
	strikes := totalOf("fault_strikes", "times that a fault came about", count(func(Strike) int64 { return 1 }))
	strikes.Better = Neither
	return []Metric{
		strikes,
		durationOf("fault_recovery_max", "the longest from a fault to the first acquisition that followed", func(r Run) *Bound {
			return longest(r, func(s Strike) *Bound { return s.recovery(r.WindowNS) })
		}),
		durationOf("fault_stall_max", "the longest time after a fault in which nobody got a lock", func(r Run) *Bound {
			return longest(r, func(s Strike) *Bound { return s.Stall })
		}),
		totalOf("lost_wake_ups", "keys that stayed free after a fault although somebody waited", count(func(s Strike) int64 { return s.LostWakeUps })),
	}
}

// strikes are those of all faults.
func (r Run) strikes() []Strike {
	var all []Strike
	for _, f := range r.Faults {
		all = append(all, f.Strikes...)
	}
	return all
}

// recovery is at least the rest of the window where there was none.
func (s Strike) recovery(window int64) *Bound {
	if s.RecoveryNS == nil {
		return &Bound{NS: max(0, window-s.AtNS), AtLeast: true}
	}
	return &Bound{NS: *s.RecoveryNS}
}

// longest is the longest duration of a run's strikes; nil without any.
func longest(r Run, of func(Strike) *Bound) *Bound {
	var most *Bound
	for _, s := range r.strikes() {
		b := of(s)
		if b != nil && (most == nil || b.NS > most.NS || b.NS == most.NS && b.AtLeast) {
			most = b
		}
	}
	return most
}
