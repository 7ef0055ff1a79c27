package results

import (
	"iter"
	"slices"
	"strconv"
)

// Ratio is the ratio of two strategies' figures, over the rounds in which both are known.
type Ratio struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
	// Interval says that Low to High is the 95 % interval of the median, which needs six
	// rounds; otherwise they are the smallest and the largest ratio.
	Interval bool `json:"interval"`
	// AtLeast and AtMost say that Median, Low and High are lower or upper bounds, see Against.
	AtLeast bool `json:"at_least,omitempty"`
	AtMost  bool `json:"at_most,omitempty"`
}

// String writes the ratio and its interval: 2.31 (2.1–2.6), ≥ 12.0 (≥ 9.1).
func (r Ratio) String() string { return r.write(Significant) }

func (r Ratio) write(number func(float64) string) string {
	switch {
	case r.AtLeast:
		return "≥ " + number(r.Median) + " (≥ " + number(r.Low) + ")"
	case r.AtMost:
		return "≤ " + number(r.Median) + " (≤ " + number(r.High) + ")"
	}
	return number(r.Median) + " (" + number(r.Low) + "–" + number(r.High) + ")"
}

// Text is String with this many digits, marked "~" if they are fewer than three; 0 means
// three.
func (r Ratio) Text(digits int) string {
	if digits == 0 {
		return r.String()
	}
	return "~" + r.write(func(x float64) string {
		x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64)
		return strconv.FormatFloat(x, 'f', -1, 64)
	})
}

// Ratio compares a metric with another strategy's round by round; nil if in no round both
// are known exactly.
func (s Summary) Ratio(base Summary, m Metric) *Ratio {
	return ratio(s.Used, base.Used, m.exact)
}

// Against is Ratio for values that may be lower bounds, such as the waits of clients that
// starve: then the ratio is AtLeast or AtMost its value. It is nil if nothing is known, such
// as for two lower bounds.
func (s Summary) Against(base Summary, m Metric) *Ratio { return ratio(s.Used, base.Used, m.Of) }

func ratio(runs, base []Run, figure func(Run) *Figure) *Ratio {
	var all []float64
	var r Ratio
	for run, other := range pairs(runs, base) {
		v, of := figure(run), figure(other)
		if v == nil || of == nil || of.Value <= 0 {
			continue
		}
		all = append(all, v.Value/of.Value)
		r.AtLeast, r.AtMost = r.AtLeast || v.AtLeast, r.AtMost || of.AtLeast
	}
	if len(all) == 0 || r.AtLeast && r.AtMost {
		return nil
	}
	slices.Sort(all)
	r.Median, r.Rounds = Median(all), len(all)
	r.Low, r.High, r.Interval = interval(all, usual)
	return &r
}

// pairs yields the runs of two strategies in the same round. They ran one after the other,
// so a disturbance of the machine affected both.
func pairs(runs, base []Run) iter.Seq2[Run, Run] {
	return func(yield func(Run, Run) bool) {
		for _, run := range runs {
			at := slices.IndexFunc(base, func(other Run) bool { return other.Round == run.Round })
			if at >= 0 && !yield(run, base[at]) {
				return
			}
		}
	}
}
