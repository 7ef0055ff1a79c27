package results

// faultMetrics are what the workload's faults came to, all together; unknown without
// faults.
func faultMetrics() []Metric {
	count := func(value func(Strike) int64) func(Run) *Figure {
		return func(r Run) *Figure {
			if len(r.Faults) == 0 {
				return nil
			}
			var sum int64
			for _, s := range r.strikes() {
				sum += value(s)
			}
			return known(&sum)
		}
	}
	return []Metric{
		{Name: "fault_strikes", Whole: true, total: true, Help: "times that a fault came about", value: count(func(Strike) int64 { return 1 })},
		{
			Name: "fault_recovery_max", Unit: Nanoseconds, Better: Lower, Help: "the longest from a fault to the first acquisition that followed",
			value: timed(func(r Run) *Bound {
				return longest(r.strikes(), func(s Strike) *Bound { return s.recovery(r.WindowNS) })
			}),
		},
		{
			Name: "fault_stall_max", Unit: Nanoseconds, Better: Lower, Help: "the longest time after a fault in which nobody got a lock",
			value: timed(func(r Run) *Bound { return LongestStall(r.strikes()) }),
		},
		{
			Name: "lost_wake_ups", Better: Lower, Whole: true, total: true, Help: "keys that stayed free after a fault although somebody waited",
			value: count(func(s Strike) int64 { return s.LostWakeUps }),
		},
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

// LongestStall is the longest time after one of these in which nobody got a lock; nil
// where none is known.
func LongestStall(strikes []Strike) *Bound {
	return longest(strikes, func(s Strike) *Bound { return s.Stall })
}

func longest(strikes []Strike, of func(Strike) *Bound) *Bound {
	var all []*Bound
	for _, s := range strikes {
		all = append(all, of(s))
	}
	return Longest(all...)
}
