package compare

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Metric is a figure of a run that comparisons look at, and how.
type Metric struct {
	results.Metric
	Label string // in tables
	// Count says that the figure counts what a strategy does for one acquisition.
	// Such figures hardly depend on the machine, so a small change of them is a real
	// one, and they have a threshold of their own.
	Count bool
	// Resolution is the least value that means anything; smaller ones, 0 among them,
	// count as this much, so that ratios exist.
	Resolution float64
}

// DefaultMetric is the primary metric unless another is named.
const DefaultMetric = "acq_per_s"

// Metrics are those of results.Metrics that can be compared, in the order of
// tables.
func Metrics() []Metric {
	const nanosecond, count = 1, 0.01
	var all []Metric
	for _, m := range []Metric{
		{Label: "acquisitions", Resolution: 0.01, Metric: called(DefaultMetric)},
		{Label: "utilisation", Resolution: 0.1, Metric: called("utilisation")},
		{Label: "wait p50", Resolution: nanosecond, Metric: called("wait_p50")},
		{Label: "wait p99", Resolution: nanosecond, Metric: called("wait_p99")},
		{Label: "handoff p50", Resolution: nanosecond, Metric: called("handoff_p50")},
		{Label: "handoff p99", Resolution: nanosecond, Metric: called("handoff_p99")},
		{Label: "release p50", Resolution: nanosecond, Metric: called("release_p50")},
		{Label: "Redis CPU per acq", Resolution: nanosecond, Metric: called("redis_cpu_per_acq")},
		{Label: "Jain index", Resolution: 0.001, Metric: called("jain")},
		{Label: "starved clients", Resolution: 1, Metric: called("starved")},
		{Label: "commands per acq", Count: true, Resolution: count, Metric: called("commands_per_acq")},
		{Label: "round trips per acq", Count: true, Resolution: count, Metric: called("round_trips_per_acq")},
		{Label: "bytes in per acq", Count: true, Resolution: count, Metric: called("bytes_in_per_acq")},
		{Label: "bytes out per acq", Count: true, Resolution: count, Metric: called("bytes_out_per_acq")},
		{Label: "attempts per acq", Count: true, Resolution: count, Metric: called("attempts_per_acq")},
		{Label: "wake-ups per acq", Count: true, Resolution: count, Metric: called("wake_ups_per_acq")},
		{Label: "futile wake-ups per acq", Count: true, Resolution: count, Metric: called("futile_wake_ups_per_acq")},
	} {
		if m.Name != "" { // TestMetrics makes sure that all are known
			all = append(all, m)
		}
	}
	return all
}

func called(name string) results.Metric {
	m, _ := results.FindMetric(name)
	return m
}

// ParseMetric finds a metric by its name.
func ParseMetric(name string) (Metric, error) {
	var names []string
	for _, m := range Metrics() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Metric{}, fmt.Errorf("unknown metric %q (metrics: %s)", name, strings.Join(names, ", "))
}

// Higher says that more of it is better.
func (m Metric) Higher() bool { return m.Better == results.Higher }

// Measurable is the value as ratios take it.
func (m Metric) Measurable(v float64) float64 { return max(v, m.Resolution) }
