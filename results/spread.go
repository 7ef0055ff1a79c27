package results

import (
	"slices"
	"strings"
)

// spreadColumns show between what the figures of several runs lie of which the other
// tables show the median alone; nil for one run.
func spreadColumns(r *Report, all []summary) []column {
	if r.Rounds < 2 {
		return nil
	}
	foreign := Metric{Unit: Percent, value: plainly(func(r Run) *float64 { return r.Generator.Foreign })}
	speed, _ := FindMetric("acq_per_s")
	handoff, _ := FindMetric("handoff_p50")
	perAcquisition, _ := FindMetric("redis_cpu_per_acq")
	ofCore, _ := FindMetric("redis_cpu")
	var columns []column
	for _, c := range []struct {
		title string
		Metric
	}{
		{"acq/s", speed}, {"handoff\np50", handoff}, {"Redis CPU\nper acq", perAcquisition}, {"Redis CPU\nof one core", ofCore}, {"foreign CPU\nof all", foreign},
	} {
		spread := func(s summary) string { return c.spread(s) }
		if slices.ContainsFunc(all, func(s summary) bool { return spread(s) != unknown }) {
			columns = append(columns, column{c.title, false, spread})
		}
	}
	return columns
}

// spread is the smallest and the largest of a metric's exactly known values.
func (m Metric) spread(s summary) string {
	var known []Figure
	for _, run := range s.used {
		if f := m.value(run); f != nil && !f.AtLeast {
			known = append(known, *f)
		}
	}
	if len(known) < 2 {
		return unknown
	}
	low, high := slices.MinFunc(known, byValue).in(m.Unit), slices.MaxFunc(known, byValue).in(m.Unit)
	if m.Unit == PerSecond { // as the title says
		low, high = strings.TrimSuffix(low, "/s"), strings.TrimSuffix(high, "/s")
	}
	if number, unit, found := strings.Cut(low, " "); found && strings.HasSuffix(high, " "+unit) {
		low = number // the unit is said once
	}
	return low + "–" + high + s.mark()
}
