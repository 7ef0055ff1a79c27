package results

import (
	"reflect"
	"slices"
	"strings"
)

// Metric is a row of Metrics: a figure of a run under its one name, with all that tables,
// exports, thresholds and comparisons need to know of it.
type Metric struct {
	Name     string // wait_p99
	Unit     Unit
	Better   Better
	Help     string    // one line
	Whole    bool      // it counts, so tables write it without decimals
	Compared *Compared // set by ComparedMetrics
	Bench    *Bench    // set by BenchMetrics

	is    kind
	path  string        // of the field in a Run, such as Speed.PerSecond; "": see value
	value func(Run) any // computes what is no field, see figure
}

// Compared says how comparisons treat a metric.
type Compared struct {
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
	Unit  string  // p99-wait-ns/op
	Scale float64 // factor from the metric's unit
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
	if m.path == "" {
		return figure(m.value(r))
	}
	field := at(r, m.path)
	if m.is&perAcq != 0 {
		count, _ := field.(*int64)
		field = r.Server.Window.PerAcquisition(count)
	}
	return figure(field)
}

// shown is Of for tables. It returns nil for a percentile from 99 on that would only be the
// maximum of too few durations.
func (m Metric) shown(r Run) *Figure {
	path, p := m.percentile()
	if d, ok := at(r, path).(Distribution); ok && p >= 99 && !d.enough(p) {
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

// percentiles are the fields of a Distribution with percentiles.
var percentiles = map[string]float64{"P50": 50, "P90": 90, "P95": 95, "P99": 99, "P999": 99.9}

// percentile returns the path of the distribution of which the metric is a percentile, and its percent;
// "" and 0 for another metric.
func (m Metric) percentile() (path string, percent float64) {
	dot := strings.LastIndex(m.path, ".")
	if percent = percentiles[m.path[dot+1:]]; percent == 0 {
		return "", 0
	}
	return m.path[:dot], percent
}

// InBench returns the metric of a run in the unit of Bench; false if it is not known or only
// a lower bound.
func (m Metric) InBench(r Run) (float64, bool) {
	f := m.exact(r)
	if f == nil {
		return 0, false
	}
	return f.Value * m.Bench.Scale, true
}

// at returns the field of a run with this path; nil if there is none, or a part on the way is not known.
func at(r Run, path string) any {
	v := reflect.ValueOf(r)
	for name := range strings.SplitSeq(path, ".") {
		if v = reflect.Indirect(v); v.IsValid() {
			v = v.FieldByName(name)
		}
	}
	if !v.IsValid() {
		return nil
	}
	return v.Interface()
}

// figure converts a number, or a pointer that is nil for an unknown one.
func figure(value any) *Figure {
	if b, ok := value.(*Bound); ok {
		return b.figure()
	}
	if f, ok := value.(*Figure); ok {
		return f
	}
	switch v := reflect.Indirect(reflect.ValueOf(value)); {
	case v.CanInt():
		return &Figure{Value: float64(v.Int())}
	case v.CanFloat():
		return &Figure{Value: v.Float()}
	}
	return nil
}

func (b *Bound) figure() *Figure {
	if b == nil {
		return nil
	}
	return &Figure{Value: float64(b.NS), AtLeast: b.AtLeast}
}

// FindMetric returns the metric of this name.
func FindMetric(name string) (Metric, bool) {
	at := slices.IndexFunc(rows, func(r row) bool { return r.name == name })
	if at < 0 {
		return Metric{}, false
	}
	return rows[at].metric(), true
}

// Metrics returns all metrics in the order of exports.
func Metrics() []Metric {
	var all []Metric
	for _, r := range rows {
		all = append(all, r.metric())
	}
	return all
}

// ComparedMetrics returns the metrics that comparisons use, in order.
func ComparedMetrics() []Metric {
	var all []Metric
	for _, c := range compared {
		m, _ := FindMetric(c.metric)
		m.Compared = &c.Compared
		all = append(all, m)
	}
	return all
}

// BenchMetrics returns the figures of a benchmark line after ns/op.
func BenchMetrics() []Metric {
	var all []Metric
	for _, b := range benched {
		m, _ := FindMetric(b.metric)
		m.Bench = &b.Bench
		all = append(all, m)
	}
	return all
}
