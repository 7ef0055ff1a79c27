package results

// faultMetrics summarise all faults of the workload; they are unknown without faults.
func faultMetrics() []Metric {
	count := func(value func(Injection) int64) func(Run) *Figure {
		return func(r Run) *Figure {
			if len(r.Faults) == 0 {
				return nil
			}
			var sum int64
			for _, s := range r.injections() {
				sum += value(s)
			}
			return known(&sum)
		}
	}
	return []Metric{
		{Name: "fault_injections", Whole: true, total: true, Help: "times that a fault was injected", value: count(func(Injection) int64 { return 1 })},
		{
			Name: "fault_recovery_max", Unit: Nanoseconds, Better: Lower, Help: "the longest from a fault to the first acquisition that followed",
			value: timed(func(r Run) *Bound {
				return longest(r.injections(), func(s Injection) *Bound { return s.recovery(r.WindowNS) })
			}),
		},
		{
			Name: "fault_stall_max", Unit: Nanoseconds, Better: Lower, Help: "the longest time after a fault in which nobody got a lock",
			value: timed(func(r Run) *Bound { return LongestStall(r.injections()) }),
		},
		{
			Name: "lost_wake_ups", Better: Lower, Whole: true, total: true, Help: "keys that stayed free after a fault although somebody waited",
			value: count(func(s Injection) int64 { return s.LostWakeUps }),
		},
	}
}

// injections returns the injections of all faults.
func (r Run) injections() []Injection {
	var all []Injection
	for _, f := range r.Faults {
		all = append(all, f.Injections...)
	}
	return all
}

// recovery returns the rest of the window as a lower bound if there was no recovery.
func (s Injection) recovery(window int64) *Bound {
	if s.RecoveryNS == nil {
		return &Bound{NS: max(0, window-s.AtNS), AtLeast: true}
	}
	return &Bound{NS: *s.RecoveryNS}
}

// LongestStall returns the longest time after one of the injections in which no client got a
// lock; nil if none is known.
func LongestStall(injections []Injection) *Bound {
	return longest(injections, func(s Injection) *Bound { return s.Stall })
}

func longest(injections []Injection, of func(Injection) *Bound) *Bound {
	var all []*Bound
	for _, s := range injections {
		all = append(all, of(s))
	}
	return Longest(all...)
}
