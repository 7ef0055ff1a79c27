package compare

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Metric is a metric in a comparison.
type Metric = results.Metric

// DefaultMetric is the default primary metric.
const DefaultMetric = "acq_per_s"

// Metrics returns the metrics that can be compared, in the order of tables.
func Metrics() []Metric { return results.ComparedMetrics() }

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

// Measurable returns a value for use in ratios: at least the metric's resolution.
func Measurable(m Metric, v float64) float64 { return max(v, m.Compared.Resolution) }
