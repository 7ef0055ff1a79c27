package results

// Metric is a figure of a run under the one name by which exports, thresholds
// and comparisons know it.
type Metric struct {
	Name   string // wait_p99
	Unit   Unit
	Better Better
	Help   string // one line

	value func(Run) *Figure
	// caution is what a verdict on the metric adds to its figure of these runs; nil is
	// nothing.
	caution func([]Run) string
	// total says that the runs of a strategy add up, because what was broken once
	// is broken; the others are medians.
	total bool
}

// Figure is a metric's value in its unit.
type Figure struct {
	Value   float64 `json:"value"`
	AtLeast bool    `json:"at_least,omitempty"` // a lower bound: some of what it counts had not ended
	// Digits are the significant ones, where they are fewer than three because much was
	// subtracted; 0 else.
	Digits int `json:"digits,omitempty"`
}

// Unit is what a metric is counted in.
type Unit string

// The units of metrics.
const (
	Nanoseconds Unit = "ns"
	PerSecond   Unit = "1/s"
	Percent     Unit = "percent"
	Bytes       Unit = "bytes"
	Number      Unit = "" // a count, or a ratio
)

// Better is the direction in which a metric improves.
type Better int

// The directions. Neither tells about a run without being good or bad.
const (
	Neither Better = iota
	Lower
	Higher
)

// Of is the metric in a run; nil where it could not be had.
func (m Metric) Of(r Run) *Figure { return m.value(r) }

// over is the metric of a strategy: the median of its valid runs, or the sum of
// all of them.
func (m Metric) over(s summary) *Figure {
	if m.total {
		var sum *Figure
		for _, run := range s.runs {
			if f := m.value(run); f != nil {
				if sum == nil {
					sum = &Figure{}
				}
				sum.Value += f.Value
			}
		}
		return sum
	}
	return s.figure(m.value)
}

// values are the metric's values in the runs that its median is made of, and
// whether all of them are exact.
func (m Metric) values(s summary) (values []float64, exact bool) {
	exact = true
	for _, run := range s.used {
		if f := m.value(run); f != nil {
			values = append(values, f.Value)
			exact = exact && !f.AtLeast
		}
	}
	return values, exact
}

func plainly(value func(Run) *float64) func(Run) *Figure {
	return func(r Run) *Figure {
		v := value(r)
		if v == nil {
			return nil
		}
		return &Figure{Value: *v}
	}
}

func timed(value func(Run) *Bound) func(Run) *Figure {
	return func(r Run) *Figure {
		b := value(r)
		if b == nil {
			return nil
		}
		return &Figure{Value: float64(b.NS), AtLeast: b.AtLeast}
	}
}
