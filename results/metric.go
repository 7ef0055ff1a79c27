package results

import "slices"

// Metric is a row of Metrics: a figure of a run under its one name, with all that tables,
// exports, thresholds and comparisons need to know of it.
type Metric struct {
	Name   string // wait_p99
	Unit   Unit
	Better Better
	Help   string // one line
	// Whole says that the metric counts, so tables write it without decimals.
	Whole bool
	// Rough says that the metric is known within a few percent, so tables write two digits.
	Rough bool

	Columns  []Column  // the tables' columns that show it
	Compared *Compared // for comparisons; nil: they leave it out
	Bench    *Bench    // for benchmark lines; nil: they leave it out

	// value returns the metric of a run; if it is nil, the metric is a percentile of a distribution.
	value      func(Run) *Figure
	of         func(Run) Distribution
	percentile float64
	noun       string // the durations' name, if tables leave out a percentile of too few: "waits"
	// caution returns a remark that a verdict adds to the figure of these runs; nil means none.
	caution func([]Run) string
	// total says that a strategy's figure is the sum of its runs, because one violation is
	// enough; other figures are medians.
	total bool
	// everyRun says that a strategy's figure is known only if all its runs have one: a run without
	// one is unlike the others.
	everyRun bool
}

// Compared says how comparisons treat a metric.
type Compared struct {
	Place int    // the order of the lines
	Label string // in words: "wait p99"
	// Resolution is the smallest meaningful value. Smaller values, and 0, count as this value, so
	// that ratios exist.
	Resolution float64
	// Count says that the figure counts what a strategy does per acquisition. Such figures hardly
	// depend on the machine, so small changes are real, and a separate threshold applies.
	Count bool
}

// Bench is a metric in the format of Go's benchmarks.
type Bench struct {
	Place int     // the order in a line
	Unit  string  // p99-wait-ns/op
	Scale float64 // factor from the metric's unit; 0 means 1
	Exact bool    // it does not vary between runs
}

// Figure is a metric's value in its unit.
type Figure struct {
	Value   float64 `json:"value"`
	AtLeast bool    `json:"at_least,omitempty"` // a lower bound: some of the durations had not ended
	// Digits is the number of significant digits if it is below three because a large part was
	// subtracted; otherwise 0.
	Digits int `json:"digits,omitempty"`
}

// Unit is the unit of a metric.
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

// The directions. Neither means that the metric is neither good nor bad.
const (
	Neither Better = iota
	Lower
	Higher
)

// Of returns the metric of a run; nil if it is not known.
func (m Metric) Of(r Run) *Figure {
	if m.of != nil {
		return m.of(r).percentile(m.percentile).figure()
	}
	return m.value(r)
}

// shown is Of for tables. It returns nil for a percentile from 99 on that would only be the
// maximum of too few durations.
func (m Metric) shown(r Run) *Figure {
	if m.of != nil && m.percentile >= 99 && !m.of(r).enough(m.percentile) {
		return nil
	}
	return m.Of(r)
}

// exact returns the metric of a run; nil if it is a lower bound or not known.
func (m Metric) exact(r Run) *Figure {
	if f := m.Of(r); f != nil && !f.AtLeast {
		return f
	}
	return nil
}

// ranked returns the metrics with a place other than 0, in that order.
func ranked(place func(Metric) int) []Metric {
	all := slices.DeleteFunc(Metrics(), func(m Metric) bool { return place(m) == 0 })
	slices.SortStableFunc(all, func(a, b Metric) int { return place(a) - place(b) })
	return all
}

// ComparedMetrics returns the metrics that comparisons use, in order.
func ComparedMetrics() []Metric {
	return ranked(func(m Metric) int {
		if m.Compared == nil {
			return 0
		}
		return m.Compared.Place
	})
}

// BenchMetrics returns the figures of a benchmark line after ns/op.
func BenchMetrics() []Metric {
	return ranked(func(m Metric) int {
		if m.Bench == nil {
			return 0
		}
		return m.Bench.Place
	})
}

// InBench returns the metric of a run in the unit of Bench; false if it is not known or only
// a lower bound.
func (m Metric) InBench(r Run) (float64, bool) {
	f := m.exact(r)
	if f == nil {
		return 0, false
	}
	if m.Bench.Scale != 0 {
		return f.Value * m.Bench.Scale, true
	}
	return f.Value, true
}
