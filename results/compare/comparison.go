// Package compare says whether one build is better or worse than another, by
// reports of both: two sets of sessions (Unpaired), or runs taken in turns on one
// Redis (Paired). A difference counts only when it is significant and beyond a
// magnitude.
package compare

import (
	"slices"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Schema names the version of the JSON document.
const Schema = "lockbench/comparison/2"

// Verdict is what came out for one metric of one strategy, or for all of one.
type Verdict string

// The verdicts.
const (
	Better    Verdict = "better"
	Worse     Verdict = "worse"
	Same      Verdict = "same"      // as far as these runs can tell
	Undecided Verdict = "undecided" // too few sessions, or lower bounds that leave it open
)

// The ways to compare.
const (
	MethodUnpaired = "unpaired" // medians and Mann–Whitney's U test
	MethodPaired   = "paired"   // Wilcoxon's signed-rank test on log ratios
)

// Rules say what counts as a difference.
type Rules struct {
	Alpha          float64 `json:"alpha"`           // of false findings that are put up with
	Threshold      float64 `json:"threshold"`       // least change, 0.05 being 5 %
	CountThreshold float64 `json:"count_threshold"` // the same for counts per acquisition
	// Primary is the metric that is tested at the full Alpha; all the others share
	// another Alpha (Holm).
	Primary string `json:"primary"`
	// Strict has every metric count for the verdict, and not the primary one alone.
	Strict bool `json:"strict"`
}

// DefaultRules are those of a CI gate.
func DefaultRules() Rules {
	return Rules{Alpha: 0.05, Threshold: 0.05, CountThreshold: 0.02, Primary: DefaultMetric}
}

// Least is the change of a metric that one must be beyond to count.
func (r Rules) Least(m Metric) float64 {
	if m.Compared.Count {
		return r.CountThreshold
	}
	return r.Threshold
}

// Comparison is the outcome, plain data.
type Comparison struct {
	Schema     string         `json:"schema"`
	Method     string         `json:"method"`
	Base       Build          `json:"base"`
	Head       Build          `json:"head"`
	Rules      Rules          `json:"rules"`
	Workload   workloads.Spec `json:"workload"` // of the base
	Redis      string         `json:"redis"`    // version and source, of the base
	Machine    string         `json:"machine"`
	Strategies []Strategy     `json:"strategies"`
	Verdict    Verdict        `json:"verdict"`
	Different  []Difference   `json:"different,omitempty"` // in workload or environment, compared all the same
	LeftOut    []string       `json:"left_out,omitempty"`  // runs and strategies, with the reason
	// Broken names the guarantees that the head's strategies claim and broke.
	Broken      []string `json:"broken_claims,omitempty"`
	Notes       []string `json:"notes,omitempty"`
	Interrupted bool     `json:"interrupted,omitempty"` // fewer pairs than were asked for
}

// Build is one of the two sides.
type Build struct {
	Name    string `json:"name"` // as it was asked for: files, or the binary
	Version string `json:"version"`
	Reports int    `json:"reports"`
}

// Strategy is one strategy under both builds.
type Strategy struct {
	Name    string   `json:"name"`
	Verdict Verdict  `json:"verdict"` // by the metrics that count, see Rules.Strict
	Results []Result `json:"results"`
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

	// Delta is head ÷ base − 1. Without pairs it is that of the medians, with pairs
	// the Hodges–Lehmann estimate of theirs, with lower bounds the smallest change that
	// they leave possible. Low and High bound it at 1 − alpha; they are nil below 6
	// sessions a side, or 6 pairs. All are nil where lower bounds leave them open.
	Delta *float64 `json:"delta"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	// P is the probability of so large a difference, in either direction, between
	// equal builds. Adjusted is what is held against alpha: P by Holm.
	P        *float64 `json:"p"`
	Adjusted *float64 `json:"p_adjusted"`
	// Detectable is the change for the worse that these pairs would have shown with
	// a probability of 95 %; nil without pairs, with lower bounds among them, and when
	// no change could.
	Detectable *float64 `json:"detectable"`
	Verdict    Verdict  `json:"verdict"`
	// Needed is the number of sessions a side, or of pairs, from which this metric can be
	// decided, where there were fewer; else 0.
	Needed   int      `json:"needed,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Sample is a metric's value in every session of one side, with pairs in their order. A
// session's is the median of its rounds.
type Sample struct {
	N       int       `json:"n"`
	Median  *float64  `json:"median"`
	AtLeast bool      `json:"at_least,omitempty"` // the median is a lower bound
	Bounds  int       `json:"bounds,omitempty"`   // values that are lower bounds
	Values  []float64 `json:"values"`
}

// conclude fills the verdicts that follow from those of the results.
func (c *Comparison) conclude() {
	var all []Result
	for i := range c.Strategies {
		s := &c.Strategies[i]
		s.Verdict = c.Rules.overall(s.Results)
		all = append(all, s.Results...)
	}
	c.Verdict = c.Rules.overall(all)
}

// counts says whether a metric counts for the verdict.
func (r Rules) counts(metric string) bool { return r.Strict || metric == r.Primary }

// overall is worse if any result that counts is, else better if any is. It is same only if
// every result of the primary metric is, and there is one.
func (r Rules) overall(all []Result) Verdict {
	found, primary := map[Verdict]bool{}, map[Verdict]bool{}
	for _, result := range all {
		if r.counts(result.Metric) {
			found[result.Verdict] = true
		}
		if result.Metric == r.Primary {
			primary[result.Verdict] = true
		}
	}
	switch {
	case found[Worse]:
		return Worse
	case found[Better]:
		return Better
	case primary[Same] && !primary[Undecided]:
		return Same
	}
	return Undecided
}

// Comparable says whether any metric is known of both sides.
func (c *Comparison) Comparable() bool {
	for _, s := range c.Strategies {
		if slices.ContainsFunc(s.Results, func(r Result) bool { return r.Base.N > 0 && r.Head.N > 0 }) {
			return true
		}
	}
	return false
}
