package advise

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// matters is how many times better a median has to be, beside an interval of the
// paired ratio that does not hold 1, for a difference to count.
const matters = 1.1

// contender is a strategy that was measured.
type contender struct {
	results.Summary
	info  strategies.Info
	order int // in which it was named
}

// criterion is a figure by which locks are told apart.
type criterion struct {
	name  string // of the metric
	what  string
	lower bool // is better
	// rounds are as many pairs as there are to be, where they are too few for an
	// interval: a difference counts in all of them or not at all.
	rounds int
}

// criteria are what counts, the most important first: what is served, what the
// unlucky wait, and what Redis pays.
func (q Question) criteria() []criterion {
	// The 90th percentile, for in windows as short as these the 99th has often not ended.
	waits := criterion{"wait_per_client_p90", "90th percentile of the waits, every client counting alike", true, q.Rounds}
	if q.Workload.Rate > 0 { // clients are slots there
		waits = criterion{"wait_p90", "90th percentile of the waits", true, q.Rounds}
	}
	return []criterion{
		{"served_per_s", "clients served a second", false, q.Rounds},
		waits,
		{"redis_cpu_per_acq", "server CPU per acquisition", true, q.Rounds},
	}
}

func (c criterion) metric() results.Metric {
	m, _ := results.FindMetric(c.name)
	return m
}

// relation is how one contender's figure compares with another's.
type relation int

// Equal is what cannot be told apart, unknown what cannot be compared; neither keeps
// anybody from being chosen.
const (
	unknown relation = iota
	equal
	better
	worse
)

// compare says how a stands to b. The ratio is how many times better it is: of what a
// has, where more is better, and of what b has where less is.
func (c criterion) compare(a, b contender) (relation, *results.Ratio) {
	r := c.advantage(a, b)
	if c.clear(r) {
		return better, r
	}
	if back := c.advantage(b, a); c.clear(back) {
		return worse, r
	}
	if r == nil {
		return unknown, nil
	}
	return equal, r
}

func (c criterion) advantage(a, b contender) *results.Ratio {
	if c.lower {
		return b.Against(a.Summary, c.metric())
	}
	return a.Against(b.Summary, c.metric())
}

// clear says whether a ratio is one that counts.
func (c criterion) clear(r *results.Ratio) bool {
	return r != nil && !r.AtMost && (r.Interval || r.Rounds >= c.rounds) && r.Low > 1 && r.Median >= matters
}

// best is the contender with the best figure; false if nobody's is known.
func (c criterion) best(field []contender) (contender, bool) {
	known := slices.DeleteFunc(slices.Clone(field), func(x contender) bool { return x.Figure(c.metric()) == nil })
	if len(known) == 0 {
		return contender{}, false
	}
	return slices.MinFunc(known, func(a, b contender) int {
		x, y := a.Figure(c.metric()), b.Figure(c.metric())
		if !c.lower {
			return cmp.Compare(y.Value, x.Value)
		}
		if x.AtLeast != y.AtLeast { // what is at least that long is not the shortest
			if y.AtLeast {
				return -1
			}
			return 1
		}
		return cmp.Compare(x.Value, y.Value)
	}), true
}

// choose is the one contender to take: criterion by criterion those stay that are
// equal to the best, and of those left the one that asks for least and claims most.
// It also tells who was left at the end; the field is not empty.
func choose(criteria []criterion, field []contender) (contender, []contender) {
	for _, c := range criteria {
		top, known := c.best(field)
		if !known {
			continue
		}
		field = slices.DeleteFunc(slices.Clone(field), func(x contender) bool {
			r, _ := c.compare(top, x)
			return r == better
		})
	}
	return slices.MinFunc(field, simpler), field
}

// simpler orders by what a lock asks for, fewer nodes and connections first, then by
// how much it claims, then as they were named.
func simpler(a, b contender) int {
	return cmp.Or(
		cmp.Compare(a.info.Nodes, b.info.Nodes),
		cmp.Compare(a.info.Connections.PerWaiter, b.info.Connections.PerWaiter),
		cmp.Compare(a.info.Connections.PerInstance, b.info.Connections.PerInstance),
		cmp.Compare(len(b.info.Claims.List()), len(a.info.Claims.List())),
		cmp.Compare(a.order, b.order),
	)
}

// without is the field but for one of it.
func without(field []contender, name string) []contender {
	return slices.DeleteFunc(slices.Clone(field), func(c contender) bool { return c.Name == name })
}
