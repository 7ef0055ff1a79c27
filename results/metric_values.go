package results

// Smaller differences than these mean nothing.
const (
	nanosecond = 1
	counting   = 0.01 // for counts per acquisition
)

// always wraps a value that every run has.
func always[N int64 | float64](value func(Run) N) func(Run) *Figure {
	return func(r Run) *Figure { return &Figure{Value: float64(value(r))} }
}

// maybe wraps a value that may be unknown.
func maybe[N int | int64 | float64](value func(Run) *N) func(Run) *Figure {
	return func(r Run) *Figure { return known(value(r)) }
}

// timed wraps a duration that may be a lower bound.
func timed(value func(Run) *Bound) func(Run) *Figure {
	return func(r Run) *Figure { return value(r).figure() }
}

func known[N int | int64 | float64](n *N) *Figure {
	if n == nil {
		return nil
	}
	return &Figure{Value: float64(*n)}
}

func (b *Bound) figure() *Figure {
	if b == nil {
		return nil
	}
	return &Figure{Value: float64(b.NS), AtLeast: b.AtLeast}
}

// perAcquisition divides a count of the servers by the acquisitions.
func perAcquisition(total func(*ServerDelta) *int64) func(Run) *Figure {
	return func(r Run) *Figure {
		if r.Server.Window == nil {
			return nil
		}
		return known(r.Server.Window.PerAcquisition(total(r.Server.Window)))
	}
}

// clientCPU returns the generator's CPU time per acquisition in nanoseconds; nil without
// acquisitions, if the system does not report it, or if the window was too short for the counters.
func clientCPU(r Run) *float64 {
	acquisitions := r.Speed.Acquisitions
	if window := r.Server.Window; window != nil {
		acquisitions = window.Acquisitions // between the same two instants
	} else if r.Server.Whole != nil {
		return nil
	}
	if acquisitions == 0 || r.Generator.CPUSeconds == 0 {
		return nil
	}
	return new(r.Generator.CPUSeconds * 1e9 / float64(acquisitions))
}

// inNanoseconds converts a figure of the servers' window from seconds.
func inNanoseconds(seconds func(*ServerDelta) *float64) func(Run) *Figure {
	return func(r Run) *Figure {
		s := seconds(r.Server.Window)
		if s == nil {
			return nil
		}
		return &Figure{Value: *s * 1e9}
	}
}

func peak(value func(*ServerPeak) *int64) func(Run) *Figure {
	return func(r Run) *Figure {
		if r.Server.Peak == nil {
			return nil
		}
		return known(value(r.Server.Peak))
	}
}

func ofHerd(value func(*Herd) *Figure) func(Run) *Figure {
	return func(r Run) *Figure {
		if r.Herd == nil {
			return nil
		}
		return value(r.Herd)
	}
}

func meanHold(r Run) *Figure { return known(r.Speed.Hold.MeanNS) }

// violations counts what no lock may do.
func (r Run) violations() int64 {
	return max(r.Safety.Overlaps+r.Safety.FencingRegression, int64(len(r.Safety.Broken)))
}

// errors counts the errors of Acquire and Release.
func (r Run) errors() int64 {
	var sum int64
	for _, e := range r.Errors {
		sum += e.Count
	}
	return sum
}

// redisCPU returns CPUPerAcquisition in nanoseconds.
func redisCPU(r Run) *Figure {
	cpu := r.Server.Window.CPUPerAcquisition()
	if cpu == nil {
		return nil
	}
	return &Figure{Value: *cpu * 1e9, Digits: r.Server.Window.digits()}
}
