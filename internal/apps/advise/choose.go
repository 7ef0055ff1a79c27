package advise

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// matters is the least ratio of medians at which a difference counts; the interval of the paired ratio
// must also exclude 1.
const matters = 1.1

// contender is a measured strategy.
type contender struct {
	results.Summary
	info  strategies.Info
	order int // in which the strategies were named
}

// criterion is a figure that compares locks.
type criterion struct {
	name  string // of the metric
	what  string
	lower bool // is better
	// rounds is the planned number of pairs. If it is too small for an interval, a difference must
	// occur in all of them to count.
	rounds int
}

// criteria returns what counts, the most important first: clients served, long waits, and the cost for
// Redis.
func (q Question) criteria() []criterion {
	// Not the 99th percentile: in such short windows it is often only a lower bound.
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

// relation says how one contender's figure compares with another's.
type relation int

// unknown means that the figures cannot be compared. notApart means that the ratio's interval contains 1,
// or that there are too few rounds. Slightly better or worse is certain, but too little to count.
// None of these prevents a choice.
const (
	unknown relation = iota
	notApart
	better
	slightlyBetter
	slightlyWorse
	worse
)

// relations are all relations with the words for a sentence, in its order.
var relations = []struct {
	relation relation
	title    string
}{
	{better, "better than"}, {slightlyBetter, "slightly better than"}, {notApart, "not told apart from"},
	{slightlyWorse, "slightly worse than"}, {worse, "worse than"}, {unknown, "not to be compared with"},
}

// compare compares a with b. The ratio says how many times better a is: a ÷ b if more is better, else
// b ÷ a.
func (c criterion) compare(a, b contender) (relation, *results.Ratio) {
	r := c.advantage(a, b)
	if r == nil {
		return unknown, nil
	}
	return c.relate(r), r
}

// relate interprets a ratio by its own interval. The interval of the inverse ratio may be different,
// because each is the narrowest one that contains the median.
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

// choose returns the contender to take. For each criterion it removes those that another one beats; of the
// rest it takes the one that needs the least. It also returns that rest. field must not be empty.
func choose(criteria []criterion, field []contender) (contender, []contender) {
	for _, c := range criteria {
		stay := slices.DeleteFunc(slices.Clone(field), func(x contender) bool {
			return slices.ContainsFunc(field, func(other contender) bool {
				r, _ := c.compare(other, x)
				return r == better
			})
		})
		if len(stay) > 0 { // otherwise each is beaten by another
			field = stay
		}
	}
	return slices.MinFunc(field, simpler), field
}

// simpler orders by what a lock needs, fewer nodes and connections first, and then by the short list. The
// locks that only this module has come last, so that the author of the advice does not win a tie.
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

// own says whether the strategy is one of the two that lockbench invented.
func own(name string) bool {
	return slices.Contains([]string{"handoff", "cohort"}, name[strings.LastIndex(name, ":")+1:])
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// without returns the field without one contender.
func without(field []contender, name string) []contender {
	return slices.DeleteFunc(slices.Clone(field), func(c contender) bool { return c.Name == name })
}
