// Package compare decides whether one build is better or worse than another, from reports of both: two sets of sessions
// (Unpaired), or runs taken in turns on one Redis (Paired). A difference counts only if it is significant and larger
// than a threshold.
package compare

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Schema is the version of the JSON document.
const Schema = "lockbench/comparison/4"

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

// The verdicts on one metric of one strategy, on one strategy, or on all.
const (
	Better    results.Verdict = "better"
	Worse     results.Verdict = "worse"
	NoneFound results.Verdict = "none found" // no change counts; one of the threshold's size would have been found
	Undecided results.Verdict = "undecided"  // too few or too noisy sessions, not recorded in turns, or lower bounds
)

// The ways to compare.
const (
	MethodUnpaired = "unpaired" // medians and Mann–Whitney's U test
	MethodPaired   = "paired"   // Wilcoxon's signed-rank test on log ratios
)

// Rules define which differences count.
type Rules struct {
	Alpha          float64 `json:"alpha"`           // accepted probability of a false finding
	Threshold      float64 `json:"threshold"`       // smallest change that counts; 0.05 means 5 %
	CountThreshold float64 `json:"count_threshold"` // the same for counts per acquisition
	// Primary is the metric that is tested at the full Alpha. The counts that decide on their own share another
	// Alpha, and all other metrics a third one (Holm).
	Primary string `json:"primary"`
	// AllMetrics makes every metric count for the verdict, not only the primary one and the counts that decide.
	AllMetrics bool `json:"all_metrics"`
	// Strict accepts a comparison only if it would have detected a change as large as the threshold: see Insensitive.
	Strict bool `json:"strict"`
}

// DefaultRules returns the rules for a CI gate.
func DefaultRules() Rules {
	return Rules{Alpha: 0.05, Threshold: 0.05, CountThreshold: 0.02, Primary: DefaultMetric}
}

// Least returns the change of a metric above which it counts.
func (r Rules) Least(m Metric) float64 {
	if m.Compared.Count {
		return r.CountThreshold
	}
	return r.Threshold
}

// Comparison is the result as plain data.
type Comparison struct {
	Schema     string          `json:"schema"`
	Method     string          `json:"method"`
	Base       Build           `json:"base"`
	Head       Build           `json:"head"`
	Rules      Rules           `json:"rules"`
	Workload   workloads.Spec  `json:"workload"` // of the base
	Redis      string          `json:"redis"`    // version and source, of the base
	Machine    string          `json:"machine"`
	Strategies []Strategy      `json:"strategies"`
	Verdict    results.Verdict `json:"verdict"`
	Different  []Difference    `json:"different,omitempty"` // conditions; the reports are compared nevertheless
	LeftOut    results.Remarks `json:"left_out,omitempty"`  // runs and strategies, with the reason
	Missing    []string        `json:"missing,omitempty"`   // strategies of the base without a run of the head
	// Broken names the guarantees that the head's strategies claim and broke.
	Broken      results.Remarks `json:"broken_claims,omitempty"`
	Notes       results.Remarks `json:"notes,omitempty"`
	Interrupted bool            `json:"interrupted,omitempty"` // fewer pairs than requested
}

// Build is one of the two sides.
type Build struct {
	Name    string `json:"name"` // as requested: files, or the binary
	Version string `json:"version"`
	Reports int    `json:"reports"`
}

// Strategy is one strategy under both builds.
type Strategy struct {
	Name    string          `json:"name"`
	Alone   bool            `json:"alone,omitempty"` // the runs of one client, of which only counts are compared
	Verdict results.Verdict `json:"verdict"`         // by the metrics that count, see Rules.AllMetrics
	Results []Result        `json:"results"`
}

// Result is one metric of one strategy.
type Result struct {
	Metric    string       `json:"metric"`
	Label     string       `json:"label"`
	Unit      results.Unit `json:"unit"`
	Higher    bool         `json:"higher_is_better"`
	Threshold float64      `json:"threshold"`
	Base      Sample       `json:"base"`
	Head      Sample       `json:"head"`

	// Delta is head ÷ base − 1: of the medians without pairs, by the Hodges–Lehmann estimate with
	// pairs. With lower bounds it is the smallest change that is possible. Low and High are its
	// interval at 1 − alpha; they are nil below 6 sessions per side, or 6 pairs. All are nil if
	// lower bounds leave them open.
	Delta *float64 `json:"delta"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	// P is the probability of a difference at least as large, in either direction, between equal
	// builds. Adjusted is P after Holm's adjustment, which is compared with alpha.
	P        *float64 `json:"p"`
	Adjusted *float64 `json:"p_adjusted"`
	// Detectable is the smallest change for the worse that at least 80 % of such sessions would have reported; nil with
	// lower bounds, if the sides were not recorded in turns, or if no change could have been reported.
	Detectable *float64 `json:"detectable"`
	// Sensitive reports whether a change for the worse as large as the threshold would have been significant in at least
	// 80 % of such sessions.
	Sensitive bool            `json:"sensitive"`
	Verdict   results.Verdict `json:"verdict"`
	// Needed is the number of sessions per side, or of pairs, that a verdict on this metric needs if there were too few.
	// It is an estimate if they scatter too much; else 0.
	Needed   int             `json:"needed,omitempty"`
	Warnings results.Remarks `json:"warnings,omitempty"`
}

// Sample is a metric's value in every session of one side; with pairs, in their order. A session's
// value is the median of its rounds.
type Sample struct {
	N       int       `json:"n"`
	Median  *float64  `json:"median"`
	AtLeast bool      `json:"at_least,omitempty"` // the median is a lower bound
	Bounds  int       `json:"bounds,omitempty"`   // values that are lower bounds
	Values  []float64 `json:"values"`
}

// conclude sets the verdicts of the strategies and of the comparison.
func (c *Comparison) conclude() {
	var all []Result
	for i := range c.Strategies {
		s := &c.Strategies[i]
		s.Verdict = c.Rules.overall(s.Results, func(metric string) bool { return s.Alone || metric == c.Rules.Primary })
		all = append(all, s.Results...)
	}
	c.Verdict = c.Rules.overall(all, func(metric string) bool { return metric == c.Rules.Primary })
}

// counted are the metrics of a strategy's cost that hardly scatter, so that they decide even if times scatter too much.
var counted = []string{"commands_per_acq", "round_trips_per_acq"}

// decides reports whether a metric is in counted and is not the primary one.
func (r Rules) decides(metric string) bool {
	return metric != r.Primary && slices.Contains(counted, metric)
}

// asked reports whether the rules name a metric. Strict demands that a change of these metrics would have been
// detected.
func (r Rules) asked(metric string) bool { return r.AllMetrics || metric == r.Primary }

// counts reports whether a change of a metric counts for the verdict.
func (r Rules) counts(metric string) bool { return r.asked(metric) || r.decides(metric) }

// overall is worse if any result that counts is worse. It is better, or "none found", only if there is a needed result
// and no needed result is undecided.
func (r Rules) overall(all []Result, needed func(metric string) bool) results.Verdict {
	found, judged := map[results.Verdict]bool{}, map[results.Verdict]bool{}
	for _, result := range all {
		if r.counts(result.Metric) {
			found[result.Verdict] = true
		}
		if needed(result.Metric) {
			judged[result.Verdict] = true
		}
	}
	switch {
	case found[Worse]:
		return Worse
	case judged[Undecided] || len(judged) == 0:
		return Undecided
	case found[Better]:
		return Better
	}
	return NoneFound
}

// Scattered reports whether the verdict is undecided only because the sessions scatter too much, so that more of them
// would decide.
func (c *Comparison) Scattered() bool {
	scattered := false
	for _, r := range c.results() {
		if r.Metric == c.Rules.Primary && r.Verdict == Undecided {
			if r.Detectable == nil {
				return false
			}
			scattered = true
		}
	}
	return scattered && c.Verdict == Undecided
}

// Insensitive lists the strategies that the head lacks, and the results that could have missed a change for the worse
// as large as the threshold, each with the smallest change that it would have detected; "" if there are none.
func (c *Comparison) Insensitive() string {
	var all []string
	for _, name := range c.Missing {
		all = append(all, name+" (the head has no run)")
	}
	for _, s := range c.Strategies {
		if !s.Alone && !slices.ContainsFunc(s.Results, func(r Result) bool { return r.Metric == c.Rules.Primary }) {
			all = append(all, fmt.Sprintf("%s %s (not measured)", s.Name, c.Rules.Primary))
		}
	}
	for name, r := range c.results() {
		switch {
		case !c.Rules.asked(r.Metric), r.Sensitive, r.Verdict == Worse, r.Verdict == Better:
		case r.Detectable == nil:
			all = append(all, fmt.Sprintf("%s %s (no change would have been detected)", name, r.Label))
		default:
			all = append(all, fmt.Sprintf("%s %s (only from %s on)", name, r.Label, percent(r.Detectable)))
		}
	}
	return few(all)
}

// Comparable reports whether both sides have any metric in common.
func (c *Comparison) Comparable() bool {
	for _, r := range c.results() {
		if r.Base.N > 0 && r.Head.N > 0 {
			return true
		}
	}
	return false
}

// results yields the results of all strategies with the strategy's name.
func (c *Comparison) results() iter.Seq2[string, Result] {
	return func(yield func(string, Result) bool) {
		for _, s := range c.Strategies {
			for _, r := range s.Results {
				if !yield(s.Name, r) {
					return
				}
			}
		}
	}
}

// WriteJSON writes the comparison as an indented JSON document, or nothing if it cannot be
// encoded.
func WriteJSON(w io.Writer, c *Comparison) error { return words.WriteJSON(w, "comparison", c) }
