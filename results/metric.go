package results

import "slices"

// Metric is a row of Metrics: a figure of a run under the one name by which all know it,
// and all that tables, exports, thresholds and comparisons have to know of it.
type Metric struct {
	Name   string // wait_p99
	Former string // the name that it once had, by which it is still found; "" if none
	Unit   Unit
	Better Better
	Help   string // one line
	// Whole says that it counts, so that tables write it without decimals.
	Whole bool
	// Rough says that it is known within a few percent, so that tables give two digits.
	Rough bool

	Columns  []Column  // of tables that show it
	Compared *Compared // how comparisons look at it; nil: they do not
	Tracked  int       // its place among those that are followed from report to report; 0: it has none
	Bench    *Bench    // its figure on a benchmark's line; nil: it has none

	// value is the metric in a run, or else it is this percentile of a distribution.
	value      func(Run) *Figure
	of         func(Run) Distribution
	percentile float64
	noun       string // of these durations, where tables have no percentile of too few: "waits"
	// caution is what a verdict on the metric adds to its figure of these runs; nil is
	// nothing.
	caution func([]Run) string
	// total says that the runs of a strategy add up, because what was broken once
	// is broken; the others are medians.
	total bool
}

// Compared is how two sets of reports are compared by a metric.
type Compared struct {
	Place int    // in the order of a comparison's lines
	Label string // in words: "wait p99"
	// Resolution is the least value that means anything; smaller ones, 0 among them,
	// count as this much, so that ratios exist.
	Resolution float64
	// Count says that the figure counts what a strategy does for one acquisition.
	// Such figures hardly depend on the machine, so a small change of them is a real
	// one, and they have a threshold of their own.
	Count bool
}

// Bench is a metric as Go's benchmarks report it.
type Bench struct {
	Place int     // in the order of a line
	Unit  string  // p99-wait-ns/op
	Scale float64 // from the metric's unit; 0 is 1
	Exact bool    // does not vary from run to run
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
func (m Metric) Of(r Run) *Figure {
	if m.of != nil {
		return m.of(r).percentile(m.percentile).figure()
	}
	return m.value(r)
}

// shown is the metric as tables show it: without a percentile so far out that of these
// durations it is no more than their maximum.
func (m Metric) shown(r Run) *Figure {
	if m.of != nil && m.percentile >= 99 && !m.of(r).enough(m.percentile) {
		return nil
	}
	return m.Of(r)
}

// exact is the metric in a run where it is not a lower bound.
func (m Metric) exact(r Run) *Figure {
	if f := m.Of(r); f != nil && !f.AtLeast {
		return f
	}
	return nil
}

// ranked are the metrics that have a place, in the order of these.
func ranked(place func(Metric) int) []Metric {
	all := slices.DeleteFunc(Metrics(), func(m Metric) bool { return place(m) == 0 })
	slices.SortStableFunc(all, func(a, b Metric) int { return place(a) - place(b) })
	return all
}

// TrackedMetrics are those that are worth a chart of their own, in its order.
func TrackedMetrics() []Metric { return ranked(func(m Metric) int { return m.Tracked }) }

// ComparedMetrics are those that comparisons look at, in their order.
func ComparedMetrics() []Metric {
	return ranked(func(m Metric) int {
		if m.Compared == nil {
			return 0
		}
		return m.Compared.Place
	})
}

// BenchMetrics are the figures of a benchmark line, after ns/op.
func BenchMetrics() []Metric {
	return ranked(func(m Metric) int {
		if m.Bench == nil {
			return 0
		}
		return m.Bench.Place
	})
}

// InBench is a metric of a run in its unit of Bench; false where it is not known, or only a
// lower bound.
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
