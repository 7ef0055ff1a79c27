package advise

import (
	"cmp"
	"slices"
	"strings"

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

// Unknown is what cannot be compared; notApart is a ratio whose interval holds 1, or of
// too few rounds. What is slightly better or worse is so for certain, and by too little to
// count. None of them keeps anybody from being chosen.
const (
	unknown relation = iota
	notApart
	better
	slightlyBetter
	slightlyWorse
	worse
)

// relations are all of them as a sentence about a contender says them, the others after.
var relations = []struct {
	relation relation
	title    string
}{
	{better, "better than"}, {slightlyBetter, "slightly better than"}, {notApart, "not told apart from"},
	{slightlyWorse, "slightly worse than"}, {worse, "worse than"}, {unknown, "not to be compared with"},
}

// compare says how a stands to b. The ratio is how many times better it is: of what a
// has, where more is better, and of what b has where less is.
func (c criterion) compare(a, b contender) (relation, *results.Ratio) {
	r := c.advantage(a, b)
	if r == nil {
		return unknown, nil
	}
	return c.relate(r), r
}

// relate says what a ratio tells, by its own interval: the one of the ratio the other way
// round need not be its inverse, for it takes the narrowest of those that hold the median.
func (c criterion) relate(r *results.Ratio) relation {
	switch enough := r.Interval || r.Rounds >= c.rounds; {
	case enough && r.Low > 1 && !r.AtMost && r.Median >= matters:
		return better
	case enough && r.Low > 1 && !r.AtMost:
		return slightlyBetter
	case enough && r.High < 1 && !r.AtLeast && r.Median <= 1/matters:
		return worse
	case enough && r.High < 1 && !r.AtLeast:
		return slightlyWorse
	}
	return notApart
}

func (c criterion) advantage(a, b contender) *results.Ratio {
	if c.lower {
		return b.Against(a.Summary, c.metric())
	}
	return a.Against(b.Summary, c.metric())
}

// choose is the one contender to take: criterion by criterion those stay that no other is
// better than, and of those left the one that asks for least. It also tells who was left at
// the end; the field is not empty.
func choose(criteria []criterion, field []contender) (contender, []contender) {
	for _, c := range criteria {
		stay := slices.DeleteFunc(slices.Clone(field), func(x contender) bool {
			return slices.ContainsFunc(field, func(other contender) bool {
				r, _ := c.compare(other, x)
				return r == better
			})
		})
		if len(stay) > 0 { // else each has another before it
			field = stay
		}
	}
	return slices.MinFunc(field, simpler), field
}

// simpler orders by what a lock asks for, fewer nodes and connections first, then as the
// short list has them. The locks of this module that no other library has stand last: who
// writes the advice does not win a tie.
func simpler(a, b contender) int {
	return cmp.Or(
		cmp.Compare(a.info.Nodes, b.info.Nodes),
		compareBool(own(a.info.Name), own(b.info.Name)),
		cmp.Compare(a.info.Connections.PerWaiter, b.info.Connections.PerWaiter),
		cmp.Compare(a.info.Connections.PerInstance, b.info.Connections.PerInstance),
		cmp.Compare(listed(a.Name), listed(b.Name)),
		cmp.Compare(a.order, b.order),
	)
}

// own says whether a lock is one that only this module has, by its strategy's name.
func own(name string) bool {
	return slices.Contains([]string{"handoff", "cohort"}, name[strings.LastIndex(name, ":")+1:])
}

// compareBool puts false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// without is the field but for one of it.
func without(field []contender, name string) []contender {
	return slices.DeleteFunc(slices.Clone(field), func(c contender) bool { return c.Name == name })
}
