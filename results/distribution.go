package results

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Distribution is a set of durations in nanoseconds.
type Distribution struct {
	Count    int64    `json:"count" add:"sum"`              // durations that were seen to end
	Censored int64    `json:"censored,omitempty" add:"sum"` // durations of which only a lower bound is known
	MeanNS   *float64 `json:"mean_ns"`                      // of those that were seen to end
	P50      *Bound   `json:"p50"`
	P90      *Bound   `json:"p90"`
	P95      *Bound   `json:"p95"`
	P99      *Bound   `json:"p99"`
	P999     *Bound   `json:"p999"`
	Max      *Bound   `json:"max" add:"max"` // exact, including the censored ones
	// Histogram holds the durations that were seen to end. CensoredHistogram holds what was seen of
	// the censored ones. EnteredHistogram holds the ages, at the opening of the window, of those
	// that were under way then. See Survival.
	Histogram         Histogram `json:"hdr,omitempty" add:"sum"`
	CensoredHistogram Histogram `json:"censored_hdr,omitempty" add:"sum"`
	EnteredHistogram  Histogram `json:"entered_hdr,omitempty" add:"sum"`
	Rest              *Rest     `json:"rest,omitempty" add:"known"` // of Waiting.PerClient only
	// durations above the histogram's range; they count as its largest value
	Overflow int64 `json:"overflow,omitempty" add:"sum"`
}

// Rest is the weight of durations that began after the window. It is put on durations of the
// same client that were seen.
type Rest struct {
	Histogram         Histogram `json:"hdr,omitempty" add:"sum"`
	CensoredHistogram Histogram `json:"censored_hdr,omitempty" add:"sum"`
}

// Observations are durations in nanoseconds.
type Observations struct {
	Ended    Histogram // seen to their end
	Censored Histogram // the part that was seen of the others
	// Entered holds the ages that durations had when their observation began, if that was not
	// 0. Each of these durations is also in Ended or Censored.
	Entered Histogram
}

// Describe computes the percentiles of durations and keeps their histograms. longest is
// exact; nil means that there are no durations. The caller sets Count, Censored, MeanNS and
// Overflow if a histogram's counts are not numbers of durations.
func Describe(o Observations, longest *Bound) Distribution {
	d := Distribution{
		Count: o.Ended.TotalCount(), Censored: o.Censored.TotalCount(), Max: longest,
		Histogram: o.Ended, CensoredHistogram: o.Censored, EnteredHistogram: o.Entered,
	}
	d.figures()
	return d
}

// DescribeBetween is Describe for a set in which some weight belongs to durations that were
// not observed. Without rest the percentiles are too low, with it too high. See
// Waiting.PerClient.
func DescribeBetween(o, rest Observations, longest *Bound) Distribution {
	d := Describe(o, longest)
	d.Rest = &Rest{rest.Ended, rest.Censored}
	d.figures()
	return d
}

// figures computes the percentiles.
func (d *Distribution) figures() {
	s := d.Survival()
	d.P50, d.P90, d.P95 = s.Quantile(0.50), s.Quantile(0.90), s.Quantile(0.95)
	d.P99, d.P999 = s.Quantile(0.99), s.Quantile(0.999)
}

// Survival returns the estimate from the histograms, for any percentile. Without histograms it
// knows nothing.
func (d Distribution) Survival() Survival {
	o := Observations{d.Histogram, d.CensoredHistogram, d.EnteredHistogram}
	s := Estimate(o, d.Max)
	if d.Rest != nil {
		o.Ended, o.Censored = o.Ended.Plus(d.Rest.Histogram), o.Censored.Plus(d.Rest.CensoredHistogram)
		s.high = new(Estimate(o, d.Max).curve)
	}
	return s
}

// Sum adds up the durations of several recordings. Histograms add up without loss, so its
// percentiles are those of a single recording.
func Sum(parts ...Distribution) Distribution {
	var all Distribution
	for _, part := range parts {
		all.add(part)
	}
	all.figures()
	return all
}

// add adds the durations of another recording; the percentiles are those from before.
func (d *Distribution) add(other Distribution) {
	sum := 0.0
	for _, part := range []Distribution{*d, other} {
		if part.MeanNS != nil {
			sum += *part.MeanNS * float64(part.Count)
		}
	}
	addFields(d, other)
	if d.MeanNS = nil; d.Count > 0 && sum > 0 {
		d.MeanNS = new(sum / float64(d.Count))
	}
}

// Bound is a duration, or with AtLeast a lower bound of a duration.
type Bound struct {
	NS      int64 `json:"ns"`
	AtLeast bool  `json:"at_least,omitempty"`
}

// compare orders by length; of two equal lengths a lower bound is the longer one.
func (b Bound) compare(other Bound) int {
	switch {
	case b.NS != other.NS || b.AtLeast == other.AtLeast:
		return cmp.Compare(b.NS, other.NS)
	case b.AtLeast:
		return 1
	}
	return -1
}

// Longest returns the longest bound, as a lower bound if one of that length is; nil if none
// is known.
func Longest(all ...*Bound) *Bound {
	var longest *Bound
	for _, b := range all {
		if b != nil && (longest == nil || b.compare(*longest) > 0) {
			longest = b
		}
	}
	return longest
}

// percentile returns nil if the percentile is not in the report and there are no histograms.
func (d Distribution) percentile(p float64) *Bound {
	for name, percent := range percentiles {
		if percent == p {
			return at(d, name).(*Bound)
		}
	}
	return d.Survival().Quantile(p / 100)
}

// samples is the number of durations, seen to their end or not.
func (d Distribution) samples() int64 { return d.Count + d.Censored }

// enough says whether a percentile of the distribution is more than its maximum, which takes one
// observation beyond it: p99 needs 100, p99.9 needs 1000.
func (d Distribution) enough(percentile float64) bool {
	const rounding = 1e-9
	return float64(d.samples()) >= (1-rounding)/(1-percentile/100)
}

// distributions returns all distributions of a run.
func (r *Run) distributions() []*Distribution {
	s, w := &r.Speed, &r.Waiting
	all := []*Distribution{&s.Handoff, &s.Hold, &s.Release, &w.PerAcquisition, &w.PerClient, &w.Service, &w.Lateness}
	if r.Herd != nil {
		all = append(all, &r.Herd.FirstHandoff, &r.Herd.Drain)
	}
	for i := range r.Parts {
		all = append(all, &r.Parts[i].Waits)
	}
	return all
}

// Survival is an estimate of the share of durations longer than t. It may consist of two
// estimates, one too low and one too high (see Waiting.PerClient): then a quantile is known
// only if they agree.
type Survival struct {
	curve
	high *curve // nil if there is only one
}

// agreement is the largest ratio of two estimates of a quantile at which their geometric mean
// is used.
const agreement = 1.05

// Quantile returns the smallest duration that a share q of the durations, from 0 to 1, does
// not exceed. It is a lower bound if the quantile is beyond the observed range, or two
// estimates disagree; nil without observations.
func (s Survival) Quantile(q float64) *Bound {
	low := s.curve.quantile(q)
	if s.high == nil {
		return low
	}
	high := s.high.quantile(q)
	switch {
	case low == nil || high == nil:
		return low
	case low.AtLeast || high.AtLeast || float64(high.NS) > agreement*float64(low.NS):
		return &Bound{NS: low.NS, AtLeast: true}
	}
	return &Bound{NS: int64(math.Sqrt(float64(low.NS) * float64(high.NS)))}
}

// curve is the product-limit estimate of Kaplan and Meier, from durations seen to their end
// and durations of which only a lower bound is known (E. L. Kaplan, P. Meier, Nonparametric
// Estimation from Incomplete Observations, J. Am. Stat. Assoc. 53, 1958):
//
//	S(t) = Π over ended durations u ≤ t of (1 − ended(u) ÷ atRisk(u))
//
// A duration that was under way when the observation began is at risk only from the age that
// it had then: an earlier end could not have been seen (delayed entry; J. P. Klein, M. L.
// Moeschberger, Survival Analysis, 2nd edition 2003, 4.6). If all durations at risk end
// although longer ones entered later, the estimate would stay at 0; then one more counts as
// at risk. At equal durations, entries come before ends, and ends before censored ones.
// Without censored and entered durations it is the empirical distribution.
type curve struct {
	steps []step
	limit int64 // nothing is known beyond it, ns
}

type step struct {
	ns   int64
	left float64 // S just after ns
}

// newCurve takes the bins at their upper edges.
func newCurve(ended, censored, entered Histogram) curve {
	var c curve
	var all float64 // still to be seen: at risk, or still to enter
	var last int64  // end of those
	for _, bins := range []Histogram{ended, censored} {
		for _, b := range bins {
			all += float64(b.Count)
			last = max(last, b.To)
		}
	}
	var outside float64 // those of them that are still to enter
	for _, b := range entered {
		outside += float64(b.Count)
	}
	c.limit = last
	left := 1.0
	for _, e := range ended {
		for len(censored) > 0 && censored[0].To < e.To {
			all -= float64(censored[0].Count)
			censored = censored[1:]
		}
		for len(entered) > 0 && entered[0].To <= e.To {
			outside -= float64(entered[0].Count)
			entered = entered[1:]
		}
		n := float64(e.Count)
		atRisk := max(all-outside, n)
		if atRisk <= n && e.To < last { // a longer duration exists
			atRisk = n + 1
		}
		left *= 1 - n/atRisk
		all -= n
		c.steps = append(c.steps, step{e.To, left})
	}
	return c
}

func (c curve) quantile(q float64) *Bound {
	if c.limit == 0 && len(c.steps) == 0 {
		return nil
	}
	const rounding = 1e-9 // rounding errors of the products above
	i := sort.Search(len(c.steps), func(i int) bool { return c.steps[i].left <= 1-q+rounding })
	if i < len(c.steps) {
		return &Bound{NS: c.steps[i].ns}
	}
	return &Bound{NS: c.limit, AtLeast: true}
}

// Estimate returns the Survival of observations whose longest duration is known.
func Estimate(o Observations, longest *Bound) Survival {
	return Survival{curve: newCurve(upTo(o.Ended, longest), upTo(o.Censored, longest), upTo(o.Entered, longest))}
}

// upTo returns the bins with no edge above the longest duration, which is known exactly.
func upTo(h Histogram, longest *Bound) Histogram {
	if longest == nil {
		return h
	}
	h = slices.Clone(h)
	for i := range h {
		h[i].To = min(h[i].To, longest.NS)
	}
	return h
}
