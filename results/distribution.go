package results

import "cmp"

// Distribution describes a set of durations in nanoseconds: their number, mean and percentiles, and the histograms from
// which these are computed.
type Distribution struct {
	Count    int64    `json:"count" add:"sum"`              // durations that were seen to end
	Censored int64    `json:"censored,omitempty" add:"sum"` // durations of which only a lower bound is known
	MeanNS   *float64 `json:"mean_ns"`                      // of those that were seen to end
	P50      *Bound   `json:"p50"`
	P90      *Bound   `json:"p90"`
	P95      *Bound   `json:"p95"`
	P99      *Bound   `json:"p99"`
	P999     *Bound   `json:"p999"`
	// Max is the longest duration. It is a lower bound if that duration was not seen to its end, or if any wait ended at
	// its timeout.
	Max *Bound `json:"max" add:"max"`
	// Histogram holds the durations that were seen to end. GaveUpHistogram holds the waits that ended at their timeout,
	// without a lease. CensoredHistogram holds the observed parts of all other durations that were not seen to end.
	// EnteredHistogram holds, for each duration in progress when the window opened, its age at that time. See Survival.
	Histogram         Histogram `json:"hdr,omitempty" add:"sum"`
	GaveUpHistogram   Histogram `json:"gave_up_hdr,omitempty" add:"sum"`
	CensoredHistogram Histogram `json:"censored_hdr,omitempty" add:"sum"`
	EnteredHistogram  Histogram `json:"entered_hdr,omitempty" add:"sum"`
	Rest              *Rest     `json:"rest,omitempty" add:"known"` // of Waiting.PerClient only
	// Overflow counts the durations above the histogram's range. The histogram contains them as its largest value.
	Overflow int64 `json:"overflow,omitempty" add:"sum"`
}

// Rest holds the weight of waits that were not observed because they would have begun after the window. It is added to
// an observed wait of the same client (see Waiting.PerClient).
type Rest struct {
	Histogram         Histogram `json:"hdr,omitempty" add:"sum"`
	GaveUpHistogram   Histogram `json:"gave_up_hdr,omitempty" add:"sum"`
	CensoredHistogram Histogram `json:"censored_hdr,omitempty" add:"sum"`
	// StarvedHistogram holds one wait for each client that had no acquisition and a single wait, which was still open when
	// the window closed. Each such wait has the weight of the whole window. The other histograms of Rest contain this
	// weight, too.
	StarvedHistogram Histogram `json:"starved_hdr,omitempty" add:"sum"`
}

// Observations are the durations, in nanoseconds, from which percentiles are estimated.
type Observations struct {
	Ended  Histogram // seen to their end
	GaveUp Histogram // waits that ended at their timeout: the lease would have come later, or never
	Open   Histogram // observed part of the durations that were not seen to end
	// Entered holds the age of each duration that was in progress when its observation began. The duration itself is in
	// Ended, GaveUp or Open.
	Entered Histogram
}

// Describe computes the percentiles of durations and keeps their histograms. longest is the exact maximum; nil means
// that there are no durations. If the counts in the histograms are weights, not numbers of durations, the caller must
// set Count, Censored, MeanNS and Overflow.
func Describe(o Observations, longest *Bound) Distribution {
	return DescribeBetween(o, nil, longest)
}

// DescribeBetween is like Describe, but adds rest, the weight of durations that were not observed. rest is nil if there
// are none. Without this weight the percentiles are too low, with it they are too high. So a percentile is known only
// if the estimates with and without it nearly agree. See Waiting.PerClient.
func DescribeBetween(o Observations, rest *Rest, longest *Bound) Distribution {
	d := Distribution{
		Count: o.Ended.TotalCount(), Censored: o.GaveUp.TotalCount() + o.Open.TotalCount(), Max: longest, Rest: rest,
		Histogram: o.Ended, GaveUpHistogram: o.GaveUp, CensoredHistogram: o.Open, EnteredHistogram: o.Entered,
	}
	d.figures()
	return d
}

// figures computes the percentiles from the histograms. If waits ended at their timeout, it marks Max as a lower bound.
func (d *Distribution) figures() {
	if d.Max != nil && len(d.GaveUpHistogram) > 0 {
		d.Max = &Bound{NS: d.Max.NS, AtLeast: true}
	}
	s := d.Survival()
	d.P50, d.P90, d.P95 = s.Quantile(0.50), s.Quantile(0.90), s.Quantile(0.95)
	d.P99, d.P999 = s.Quantile(0.99), s.Quantile(0.999)
}

// Survival returns the survival function estimated from the histograms, which yields any percentile. Without histograms
// all its quantiles are unknown.
func (d Distribution) Survival() Survival {
	return estimate(Observations{d.Histogram, d.GaveUpHistogram, d.CensoredHistogram, d.EnteredHistogram}, d.Rest, d.Max)
}

// Recorded reports whether the distribution has histograms. Without them its percentiles cannot be recomputed.
func (d Distribution) Recorded() bool {
	return len(d.Histogram)+len(d.GaveUpHistogram)+len(d.CensoredHistogram) > 0
}

// Sum adds up the durations of several recordings. Histograms add up without loss, so the percentiles of the sum equal
// those of a single recording of all durations.
func Sum(parts ...Distribution) Distribution {
	var all Distribution
	for _, part := range parts {
		all.add(part)
	}
	all.figures()
	return all
}

// add adds the durations of another recording; it does not update the percentiles.
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

// Bound is a duration in nanoseconds. If AtLeast is set, only this lower bound of the duration is known.
type Bound struct {
	NS      int64 `json:"ns"`
	AtLeast bool  `json:"at_least,omitempty"`
}

// compare orders bounds by length. A lower bound counts as longer than an exact duration of the same length.
func (b Bound) compare(other Bound) int {
	switch {
	case b.NS != other.NS || b.AtLeast == other.AtLeast:
		return cmp.Compare(b.NS, other.NS)
	case b.AtLeast:
		return 1
	}
	return -1
}

// Longest returns the longest of the bounds; nil if all are nil. A lower bound counts as longer than an exact duration
// of the same length.
func Longest(all ...*Bound) *Bound {
	var longest *Bound
	for _, b := range all {
		if b != nil && (longest == nil || b.compare(*longest) > 0) {
			longest = b
		}
	}
	return longest
}

// percentile returns the p-th percentile: the field of d that holds it or, without such a field, an estimate from the
// histograms; nil if it is not known.
func (d Distribution) percentile(p float64) *Bound {
	for name, percent := range percentiles {
		if percent == p {
			return at(d, name).(*Bound)
		}
	}
	return d.Survival().Quantile(p / 100)
}

// samples returns the number of all durations, whether they were seen to end or not.
func (d Distribution) samples() int64 { return d.Count + d.Censored }

// enough reports whether there are so many durations that the percentile is not simply their maximum: p99 needs 100
// durations, p99.9 needs 1000.
func (d Distribution) enough(percentile float64) bool {
	const rounding = 1e-9
	return float64(d.samples()) >= (1-rounding)/(1-percentile/100)
}

// distributions returns pointers to all distributions of a run, so that Compute can update their percentiles.
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
