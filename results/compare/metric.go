package compare

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// Metric is one that comparisons look at.
type Metric = results.Metric

// DefaultMetric is the primary metric unless another is named.
const DefaultMetric = "acq_per_s"

// Metrics are those that can be compared, in the order of tables.
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

// Measurable is a value as ratios take it.
func Measurable(m Metric, v float64) float64 { return max(v, m.Compared.Resolution) }
