package main

import "math"

// target is something the comparison is meant to show.
type target struct {
	what     string
	scenario string
	ours     string // "" is the first of ours that the scenario has
	figure   figure
	rivals   func(string) bool // whom it is divided by, the best of each round; nil: it stands for itself

	limit    float64 // at least that, or at most where less is better; NaN: only reported
	byMedian bool    // the median meets it, not nearly every round
}

// report is the limit of a target without one.
var report = math.NaN()

const (
	faster  = "acquisitions/s ÷ best of all"
	cheaper = "Redis CPU per acquisition ÷ cheapest peer"
)

// targets are all that there are. A round's ratio is to the best rival of that round.
func targets() []target {
	var all []target
	add := func(scenario, what string, f figure, rivals func(string) bool, limit float64) {
		all = append(all, target{what: what, scenario: scenario, figure: f, rivals: rivals, limit: limit})
	}
	add("free-hold0", faster, speed, isRival, 1.2)
	add("free-hold1ms", faster, speed, isRival, report)
	add("shared-hold0", faster, speed, isRival, 1)
	add("shared-hold1ms", faster, speed, isRival, report)
	add("one-hold0", faster, speed, isRival, 1)
	add("one-hold1ms", faster, speed, isRival, report)
	for _, lone := range []string{"lone50", "lone500", "processes"} {
		add(lone+"-hold1ms", "gap ÷ the smaller of redislock's and redsync's", gap, isPolling, 1)
		add(lone+"-hold0", "p99 wait per client ÷ best peer", p99, isPeer, 1.0/10)
		add(lone+"-hold0", "turns, max − min per client", turns, nil, 2)
		add(lone+"-hold0", faster, speed, isRival, report)
	}
	for _, h := range holds {
		add("far-"+h.name, faster, speed, isRival, 1.2)
	}
	all = append(all, crowded()...)
	for _, name := range names() {
		add(name, cheaper, redisCPU, isPeer, 1.35)
	}
	return all
}

// crowded are the targets of many clients in a process, where cohort passes the lock on.
func crowded() []target {
	return []target{
		{"acquisitions/s ÷ best peer", "crowds-hold0", "", speed, isPeer, 1.2, true},
		{"acquisitions/s ÷ best peer", "crowds-hold1ms", "", speed, isPeer, 1.2, false},
		{"p99 wait per client ÷ best peer", "crowds-hold0", "", p99, isPeer, 1.0 / 5, false},
		{"p99 wait per client ÷ best peer", "crowds-hold1ms", "", p99, isPeer, 1.0 / 3, false},
		{"turns, max − min per client", "crowds-hold0", "", turns, nil, 2, false},
		{"turns, max − min per client", "crowds-hold1ms", "", turns, nil, 2, false},
		{"acquisitions/s ÷ best peer", "crowds-hold0", "cohort", speed, isPeer, 20, false},
		{"acquisitions/s ÷ best gated: peer", "crowds-hold0", "cohort", speed, isGated, report, false},
		{"acquisitions/s ÷ best gated: peer", "crowds-hold1ms", "cohort", speed, isGated, report, false},
		{"utilisation", "crowds-hold1ms", "cohort", utilisation, nil, 0.97, false},
		{cheaper, "crowds-hold0", "cohort", redisCPU, isPeer, 1.0 / 20, false},
		{cheaper, "crowds-hold1ms", "cohort", redisCPU, isPeer, 1.0 / 20, false},
	}
}

// of is the strategy that a target is about in what was measured; "" if there is none.
func (t target) of(m measured) string {
	if t.ours != "" {
		return t.ours
	}
	for _, name := range m.those(isOurs) {
		return name
	}
	return ""
}

// values are the target's, one a round; nil when it was not measured.
func (t target) values(m measured) (values []float64, best map[string]int) {
	if t.rivals != nil {
		return t.figure.against(m, t.of(m), m.those(t.rivals))
	}
	return t.figure.values(m, t.of(m)), nil
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
