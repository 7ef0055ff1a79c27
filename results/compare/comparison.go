// Package compare says whether one build is better or worse than another, by
// reports of both: two sets of runs (Unpaired), or runs taken in turns on one
// Redis (Paired). A difference counts only when it is significant and beyond a
// magnitude.
package compare

import (
	"math"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads/spec"
)

// Schema names the version of the JSON document.
const Schema = "lockbench/comparison/1"

// Verdict is what came out for one metric of one strategy, or for all of one.
type Verdict string

// The verdicts.
const (
	Better    Verdict = "better"
	Worse     Verdict = "worse"
	Same      Verdict = "same" // as far as these runs can tell
	NotEnough Verdict = "not enough runs"
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
	// Primary is the metric that pairs are tested on at the full Alpha; all the
	// others share another Alpha (Holm). Without pairs it is only shown first.
	Primary string `json:"primary"`
}

// DefaultRules are those of a CI gate.
func DefaultRules() Rules {
	return Rules{Alpha: 0.05, Threshold: 0.05, CountThreshold: 0.02, Primary: DefaultMetric}
}

// threshold is the least change of a metric that counts.
func (r Rules) threshold(m Metric) float64 {
	if m.Count {
		return r.CountThreshold
	}
	return r.Threshold
}

// Comparison is the outcome, plain data.
type Comparison struct {
	Schema     string       `json:"schema"`
	Method     string       `json:"method"`
	Base       Build        `json:"base"`
	Head       Build        `json:"head"`
	Rules      Rules        `json:"rules"`
	Workload   spec.Spec    `json:"workload"` // of the base
	Redis      string       `json:"redis"`    // version and source, of the base
	Machine    string       `json:"machine"`
	Strategies []Strategy   `json:"strategies"`
	Verdict    Verdict      `json:"verdict"`
	Different  []Difference `json:"different,omitempty"` // in workload or environment, compared all the same
	LeftOut    []string     `json:"left_out,omitempty"`  // runs and strategies, with the reason
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
	Verdict Verdict  `json:"verdict"` // worse if any result is, else better if any is
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
	// the Hodges–Lehmann estimate of theirs. Low and High bound it at 1 − alpha;
	// they are nil below 6 runs a side, or 6 pairs.
	Delta *float64 `json:"delta"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	// P is the probability of so large a difference, in either direction, between
	// equal builds. Adjusted is what is held against alpha: P, or with pairs P by
	// Holm.
	P        *float64 `json:"p"`
	Adjusted *float64 `json:"p_adjusted"`
	// Detectable is the change for the worse that these pairs would have shown with
	// a probability of 95 %; nil without pairs, and when no change could.
	Detectable *float64 `json:"detectable"`
	Verdict    Verdict  `json:"verdict"`
	Warnings   []string `json:"warnings,omitempty"`
}

// Sample is a metric's value in every run of one side, with pairs in their order.
type Sample struct {
	N       int       `json:"n"`
	Median  *float64  `json:"median"`
	AtLeast bool      `json:"at_least,omitempty"` // some values are lower bounds
	Values  []float64 `json:"values"`
}

// conclude fills the verdicts that follow from those of the results.
func (c *Comparison) conclude() {
	var all []Verdict
	for i := range c.Strategies {
		s := &c.Strategies[i]
		var own []Verdict
		for _, r := range s.Results {
			own = append(own, r.Verdict)
		}
		s.Verdict = overall(own)
		all = append(all, s.Verdict)
	}
	c.Verdict = overall(all)
}

// overall is worse if any is, else better, else same; it is not enough runs only
// if nothing could be told.
func overall(verdicts []Verdict) Verdict {
	found := map[Verdict]bool{}
	for _, v := range verdicts {
		found[v] = true
	}
	for _, v := range []Verdict{Worse, Better, Same} {
		if found[v] {
			return v
		}
	}
	return NotEnough
}

// judge is the verdict on a change that could have been found.
func (r *Result) judge(alpha float64) Verdict {
	if *r.Adjusted > alpha || !beyond(*r.Delta, r.Threshold) {
		return Same
	}
	if (*r.Delta > 0) == r.Higher {
		return Better
	}
	return Worse
}

// beyond says whether a change is larger than the threshold, in either direction.
func beyond(delta, threshold float64) bool { return math.Abs(delta) > threshold }
