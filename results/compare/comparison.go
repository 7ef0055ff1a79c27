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

// Schema names the version of the JSON document that WriteJSON writes.
const Schema = "lockbench/comparison/4"

// Metric is results.Metric: a figure of a run, such as acq_per_s.
type Metric = results.Metric

// DefaultMetric is the default of --metric, which selects the primary metric.
const DefaultMetric = "acq_per_s"

// Metrics returns the metrics that can be compared, in the order in which tables list them.
func Metrics() []Metric { return results.ComparedMetrics() }

// ParseMetric returns the metric of that name. Its error for an unknown name lists all metrics.
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

// Each of these verdicts can apply to one metric of a strategy, to a strategy, or to the whole comparison.
const (
	Better    results.Verdict = "better"
	Worse     results.Verdict = "worse"
	NoneFound results.Verdict = "none found" // no change counts; one of the threshold's size would have been found
	Undecided results.Verdict = "undecided"  // too few or too noisy sessions, not recorded in turns, or lower bounds
)

// These values of Comparison.Method name the statistical test with which two builds were compared.
const (
	MethodUnpaired = "unpaired" // medians and Mann–Whitney's U test
	MethodPaired   = "paired"   // Wilcoxon's signed-rank test on log ratios
)

// Rules define which differences count, and which metrics decide the verdict.
type Rules struct {
	Alpha          float64 `json:"alpha"`           // accepted probability of a false finding
	Threshold      float64 `json:"threshold"`       // smallest change that counts; 0.05 means 5 %
	CountThreshold float64 `json:"count_threshold"` // the same for counts per acquisition
	// Primary is the metric on which the verdict mainly depends: while it is undecided, the comparison can only be worse
	// or undecided. Its tests, one for each strategy, form a family; Holm's method limits the probability of a false
	// finding in a family to Alpha. The counts that decide on their own form a second family, and all other metrics form a
	// third.
	Primary string `json:"primary"`
	// AllMetrics makes the verdict depend on every metric. If it is false, the verdict depends only on the primary metric,
	// and on the commands and the round trips per acquisition.
	AllMetrics bool `json:"all_metrics"`
	// Strict makes a CI job fail unless the comparison would have detected a change as large as the threshold (see
	// Insensitive).
	Strict bool `json:"strict"`
}

// DefaultRules returns the rules that apply unless the user sets others.
func DefaultRules() Rules {
	return Rules{Alpha: 0.05, Threshold: 0.05, CountThreshold: 0.02, Primary: DefaultMetric}
}

// Least returns the metric's threshold as a share: 0.05 means 5 %. Changes up to the threshold do not count.
func (r Rules) Least(m Metric) float64 {
	if m.Compared.Count {
		return r.CountThreshold
	}
	return r.Threshold
}

// Comparison is the result of comparing two builds, as it is written to JSON.
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
	// Broken lists the claimed guarantees that a strategy broke in the head build.
	Broken      results.Remarks `json:"broken_claims,omitempty"`
	Notes       results.Remarks `json:"notes,omitempty"`
	Interrupted bool            `json:"interrupted,omitempty"` // fewer pairs than requested
}

// Build describes one of the two compared sides, base or head.
type Build struct {
	Name    string `json:"name"` // as requested: files, or the binary
	Version string `json:"version"`
	Reports int    `json:"reports"`
}

// Strategy holds the verdict on one strategy and, for each metric, the comparison of the two builds.
type Strategy struct {
	Name    string          `json:"name"`
	Alone   bool            `json:"alone,omitempty"` // the runs of one client, of which only counts are compared
	Verdict results.Verdict `json:"verdict"`         // by the metrics that count, see Rules.AllMetrics
	Results []Result        `json:"results"`
}

// Result compares one metric of one strategy between base and head.
type Result struct {
	Metric    string       `json:"metric"`
	Label     string       `json:"label"`
	Unit      results.Unit `json:"unit"`
	Higher    bool         `json:"higher_is_better"`
	Threshold float64      `json:"threshold"`
	Base      Sample       `json:"base"`
	Head      Sample       `json:"head"`

	// Delta is head ÷ base − 1, computed from the medians or, with pairs, by the Hodges–Lehmann estimate. If some values
	// are only lower bounds, Delta is the possible change that is nearest to 0. Low and High are the ends of Delta's
	// confidence interval at 1 − alpha. They are nil with fewer than 6 sessions per side, or fewer than 6 pairs. All three
	// are nil if a side has no values, or if lower bounds leave even the direction of the change open.
	Delta *float64 `json:"delta"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	// P is the probability that two equal builds differ at least as much as base and head, in either direction. Adjusted
	// is P after Holm's adjustment, and is compared with alpha.
	P        *float64 `json:"p"`
	Adjusted *float64 `json:"p_adjusted"`
	// Detectable is the smallest change for the worse that at least 80 % of sessions with the same scatter would have
	// reported. It is nil if values are only lower bounds, if the sides were not recorded in turns, or if no change could
	// have been reported.
	Detectable *float64 `json:"detectable"`
	// Sensitive reports whether a change for the worse as large as the threshold would have been significant in at least
	// 80 % of sessions with the same scatter.
	Sensitive bool            `json:"sensitive"`
	Verdict   results.Verdict `json:"verdict"`
	// Needed is the number of sessions per side, or of pairs, that a verdict on this metric needs. It is 0 unless there
	// were too few sessions or pairs, or their values scatter too much for a verdict. In the second case Needed is an
	// estimate.
	Needed   int             `json:"needed,omitempty"`
	Warnings results.Remarks `json:"warnings,omitempty"`
}

// Sample holds one side's values of a metric, one per session. If the sessions are paired, the values are in the order
// of the pairs. A session's value is the median of its rounds.
type Sample struct {
	N       int       `json:"n"`
	Median  *float64  `json:"median"`
	AtLeast bool      `json:"at_least,omitempty"` // the median is a lower bound
	Bounds  int       `json:"bounds,omitempty"`   // values that are lower bounds
	Values  []float64 `json:"values"`
}

func (c *Comparison) conclude() {
	var all []Result
	for i := range c.Strategies {
		s := &c.Strategies[i]
		s.Verdict = c.Rules.overall(s.Results, func(metric string) bool { return s.Alone || metric == c.Rules.Primary })
		all = append(all, s.Results...)
	}
	c.Verdict = c.Rules.overall(all, func(metric string) bool { return metric == c.Rules.Primary })
}

// counted lists the cost metrics that hardly depend on the machine. If one of them is worse, the comparison is worse,
// even if the times scatter too much for a verdict.
var counted = []string{"commands_per_acq", "round_trips_per_acq"}

// decides reports whether the metric decides on its own: it is in counted and is not the primary metric.
func (r Rules) decides(metric string) bool {
	return metric != r.Primary && slices.Contains(counted, metric)
}

// requiresVerdict reports whether the rules require a verdict on the metric: it is the primary metric, or AllMetrics is
// set. With Strict, a change for the worse as large as the threshold must have been detectable for such a metric.
func (r Rules) requiresVerdict(metric string) bool { return r.AllMetrics || metric == r.Primary }

// counts reports whether the overall verdict depends on the metric.
func (r Rules) counts(metric string) bool { return r.requiresVerdict(metric) || r.decides(metric) }

// overall combines results into one verdict. It is worse if any result that counts is worse. Otherwise it is undecided
// if the result of any needed metric is undecided, or if no needed metric has a result.
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

// Scattered reports whether the verdict is undecided only because the sessions scatter too much, so that more sessions
// would decide it.
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

// Insensitive lists what makes a strict job fail although no change was found: strategies that the head lacks,
// strategies without a result for the primary metric, and results that could have missed a change for the worse as
// large as the threshold. It states the smallest detectable change of each such result. It returns "" if nothing makes
// the job fail.
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
		case !c.Rules.requiresVerdict(r.Metric), r.Sensitive, r.Verdict == Worse, r.Verdict == Better:
		case r.Detectable == nil:
			all = append(all, fmt.Sprintf("%s %s (no change would have been detected)", name, r.Label))
		default:
			all = append(all, fmt.Sprintf("%s %s (smallest detectable change %s)", name, r.Label, percent(r.Detectable)))
		}
	}
	return few(all)
}

// Comparable reports whether base and head both have values of at least one metric.
func (c *Comparison) Comparable() bool {
	for _, r := range c.results() {
		if r.Base.N > 0 && r.Head.N > 0 {
			return true
		}
	}
	return false
}

// results yields every result of every strategy, together with the strategy's name.
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
