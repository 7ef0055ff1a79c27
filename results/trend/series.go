package trend

import (
	"io"
	"math"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

// Series is one metric of one strategy over time, under the same conditions.
type Series struct {
	Strategy   string         `json:"strategy"`
	Conditions string         `json:"conditions"`
	About      string         `json:"about"`
	Metric     compare.Metric `json:"-"`
	MetricName string         `json:"metric"`
	Points     []Point        `json:"points"`
	Changes    []Change       `json:"changes"`
}

// Point is the figure of one report.
type Point struct {
	Time   time.Time `json:"time"`
	Commit string    `json:"commit"`
	Value  float64   `json:"value"`
}

// Change is a point at which a series changes.
type Change struct {
	At      int             `json:"at"`     // the index of the first point after it
	Commit  string          `json:"commit"` // of that point
	Before  float64         `json:"before"` // Before and After are medians up to the neighbouring changes
	After   float64         `json:"after"`
	Delta   float64         `json:"delta"`   // after ÷ before − 1
	Verdict compare.Verdict `json:"verdict"` // better or worse
}

// DefaultRules returns the rules for a history, which every new report tests again.
func DefaultRules() compare.Rules {
	rules := compare.DefaultRules()
	rules.Alpha = 0.01
	return rules
}

// Build sorts a history into series of these metrics, in the order of their first occurrence,
// and finds their changes. A change counts if at most a share alpha of the shuffled series
// has one as large, and it is beyond the rules' threshold. Each series keeps only its last
// points.
func Build(history []Entry, metrics []compare.Metric, last int, rules compare.Rules) []Series {
	type key struct{ strategy, conditions, metric string }
	index := map[key]int{}
	var all []Series
	entries := slices.Clone(history)
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.Time.Compare(b.Time) })
	for _, entry := range entries {
		for _, m := range metrics {
			value, known := entry.Metrics[m.Name]
			if !known {
				continue
			}
			k := key{entry.Strategy, entry.Conditions, m.Name}
			i, begun := index[k]
			if !begun {
				i = len(all)
				index[k] = i
				all = append(all, Series{Strategy: entry.Strategy, Conditions: entry.Conditions, About: entry.About, Metric: m, MetricName: m.Name})
			}
			all[i].Points = append(all[i].Points, Point{entry.Time, entry.Commit, value})
		}
	}
	for i := range all {
		s := &all[i]
		s.Points = s.Points[max(0, len(s.Points)-last):]
		s.findChanges(rules)
	}
	return all
}

// findChanges uses logarithms, so that equal ratios are equal distances.
func (s *Series) findChanges(rules compare.Rules) {
	var logs []float64
	for _, p := range s.Points {
		logs = append(logs, math.Log(compare.Measurable(s.Metric, p.Value)))
	}
	at := changePoints(logs, rules.Alpha)
	for {
		s.Changes = s.changes(at)
		least := -1
		for i, c := range s.Changes {
			if math.Abs(c.Delta) <= rules.Least(s.Metric) && (least < 0 || math.Abs(c.Delta) < math.Abs(s.Changes[least].Delta)) {
				least = i
			}
		}
		if least < 0 {
			return
		}
		// Without the smallest change the medians of its neighbours are different.
		at = slices.Delete(at, least, least+1)
	}
}

// changes returns the changes at these indices, with the medians up to their neighbours.
func (s *Series) changes(at []int) []Change {
	var values []float64
	for _, p := range s.Points {
		values = append(values, p.Value)
	}
	changes := []Change{}
	segments := cut(values, at)
	for i, first := range at {
		before, after := results.Median(segments[i]), results.Median(segments[i+1])
		c := Change{At: first, Commit: s.Points[first].Commit, Before: before, After: after, Verdict: compare.Worse}
		c.Delta = compare.Measurable(s.Metric, after)/compare.Measurable(s.Metric, before) - 1
		if (after > before) == (s.Metric.Better == results.Higher) {
			c.Verdict = compare.Better
		}
		changes = append(changes, c)
	}
	return changes
}

// WriteJSON writes every series with its points and changes.
func WriteJSON(w io.Writer, all []Series) error {
	if all == nil {
		all = []Series{}
	}
	return jsonio.Write(w, "trend", all)
}
