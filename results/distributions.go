package results

import (
	"fmt"
	"slices"
	"strings"
)

// durations is a distribution with its name in thresholds.
type durations struct {
	name string
	of   func(Run) Distribution
}

// distributions returns the distributions whose percentiles are metrics: "wait" for wait_p99.
func distributions() (all []durations) {
	for _, m := range Metrics() {
		if m.of == nil {
			continue
		}
		name := m.Name[:strings.LastIndex(m.Name, "_p")]
		if !slices.ContainsFunc(all, func(d durations) bool { return d.name == name }) {
			all = append(all, durations{name, m.of})
		}
	}
	slices.SortFunc(all, func(a, b durations) int { return strings.Compare(a.name, b.name) })
	return all
}

func waits(r Run) Distribution          { return r.Waiting.PerAcquisition }
func waitsPerClient(r Run) Distribution { return r.Waiting.PerClient }
func handoffs(r Run) Distribution       { return r.Speed.Handoff }
func releases(r Run) Distribution       { return r.Speed.Release }
func holds(r Run) Distribution          { return r.Speed.Hold }
func lateness(r Run) Distribution       { return r.Waiting.Lateness }

// TooFew names the durations of which a run had too few for a 99th percentile, which would
// be their maximum: "12 handoffs".
func (s Summary) TooFew() []string {
	var few []string
	for _, m := range Metrics() {
		if m.noun == "" {
			continue
		}
		for _, run := range s.Used {
			if d := m.of(run); d.samples() > 0 && !d.enough(m.percentile) {
				few = append(few, fmt.Sprintf("%d %s", d.samples(), m.noun))
				break
			}
		}
	}
	return few
}
