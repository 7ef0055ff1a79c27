package main

import "math"

// target is something the comparison is meant to show.
type target struct {
	what     string
	scenario string
	ours     string
	figure   figure
	rivals   []string // whom it is divided by, the best of each round; nil: it stands for itself
	base     string   // or the scenario that the same strategy is divided by

	limit    float64 // at least that, or at most where less is better; NaN: only reported
	byMedian bool    // the median meets it, not nearly every round
}

// report is the limit of a target without one.
var report = math.NaN()

// targets are all that there are. A round's ratio is to the best peer of that round.
func targets() []target {
	all, gates := peers[:], behindGates(peers[:])
	return []target{
		{"acquisitions/s ÷ best peer", "hold0", "handoff", speed, all, "", 1.2, true},
		{"acquisitions/s ÷ best peer", "hold1ms", "handoff", speed, all, "", 1.2, false},
		{"p99 wait per client ÷ best peer", "hold0", "handoff", p99, all, "", 1.0 / 5, false},
		{"p99 wait per client ÷ best peer", "hold1ms", "handoff", p99, all, "", 1.0 / 3, false},
		{"turns, max − min per client", "hold0", "handoff", turns, nil, "", 2, false},
		{"turns, max − min per client", "hold1ms", "handoff", turns, nil, "", 2, false},
		{"Redis CPU per acquisition ÷ cheapest peer", "hold0", "handoff", redisCPU, all, "", 1.0, true},
		{"Redis CPU per acquisition ÷ cheapest peer", "hold1ms", "handoff", redisCPU, all, "", 0.5, false},
		{"gap between holds ÷ best peer", "hold1ms", "handoff", gap, all, "", report, false},
		{"gap between holds ÷ best peer", "hold1ms", unlingering, gap, all, "", report, false},
		{"gap between holds ÷ best peer", "hold1ms", "cohort", gap, all, "", report, false},
		{"acquisitions/s ÷ best peer", "hold0", unlingering, speed, all, "", report, false},
		{"acquisitions/s ÷ best peer", "hold1ms", unlingering, speed, all, "", report, false},
		{"Redis CPU per acquisition ÷ cheapest peer", "hold0", unlingering, redisCPU, all, "", report, false},
		{"Redis CPU per acquisition ÷ cheapest peer", "hold1ms", unlingering, redisCPU, all, "", report, false},
		{"acquisitions/s ÷ best peer", "hold0", "cohort", speed, all, "", 20, false},
		{"acquisitions/s ÷ best gated: peer", "hold0", "cohort", speed, gates, "", report, false},
		{"acquisitions/s ÷ best peer", "hold1ms", "cohort", speed, all, "", report, false},
		{"acquisitions/s ÷ best gated: peer", "hold1ms", "cohort", speed, gates, "", report, false},
		{"utilisation", "hold1ms", "cohort", utilisation, nil, "", 0.97, false},
		{"Redis CPU per acquisition ÷ cheapest peer", "hold0", "cohort", redisCPU, all, "", 1.0 / 20, false},
		{"Redis CPU per acquisition ÷ cheapest peer", "hold1ms", "cohort", redisCPU, all, "", 1.0 / 20, false},
		// Alone both are the same lock: what the machine makes of that.
		{"acquisitions/s ÷ handoff, the same lock", "alone", unlingering, speed, []string{"handoff"}, "", report, false},
		{"acquisitions/s ÷ handoff", "alone", "cohort", speed, []string{"handoff"}, "", 0.9, false},
		{"Redis CPU per acquisition, 5,000 clients ÷ 50", "many", "handoff", redisCPU, nil, "few", 1.15, false},
		{"commands per acquisition, 5,000 clients ÷ 50", "many", "handoff", commands, nil, "few", 1.15, false},
	}
}

// values are the target's, one a round; nil when it was not measured.
func (t target) values(all map[string]measured) (values []float64, best map[string]int) {
	m, ok := all[t.scenario]
	if !ok {
		return nil, nil
	}
	switch {
	case t.base != "":
		return t.figure.between(m, all[t.base], t.ours), nil
	case t.rivals != nil:
		return t.figure.against(m, t.ours, t.rivals)
	}
	return t.figure.values(m, t.ours), nil
}

// verdict says whether the target is met: by the median, or else by the rank-th worst
// of the rounds, which the true median is better than with 99 %.
func (t target) verdict(i interval) string {
	decisive := i.low
	if t.figure.better < 0 {
		decisive = i.high
	}
	if t.byMedian {
		decisive = i.median
	}
	missed := decisive/t.limit - 1
	if t.figure.better > 0 {
		missed = 1 - decisive/t.limit
	}
	switch {
	case math.IsNaN(t.limit):
		return "reported"
	case i.rank == 0:
		return "too few rounds"
	case missed <= 0:
		return "met"
	case math.IsInf(decisive, 0):
		return "**missed**: unbounded"
	}
	return "**missed** by " + percent(missed)
}
