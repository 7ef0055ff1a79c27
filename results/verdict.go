package results

import "slices"

// Verdict is the result of one threshold for a strategy.
type Verdict struct {
	Threshold string  `json:"threshold"`
	Strategy  string  `json:"strategy"` // in a sweep with its point; "" if no measured strategy matched
	Value     *Figure `json:"value"`    // in Unit; nil if not known
	Unit      Unit    `json:"unit"`
	Passed    bool    `json:"passed"`
	Why       string  `json:"why,omitempty"` // why the result is unknown, which counts as not passed
	// Caution is a remark on the figure: waits that had not ended, or a percentile of too few
	// durations.
	Caution string `json:"caution,omitempty"`
}

// Judge tests a report against thresholds: each strategy, in a sweep at each point. It uses the
// median of the valid runs, and for safety counts the sum of all runs. An unknown figure
// does not pass.
func Judge(r *Report, thresholds []Threshold) []Verdict {
	var verdicts []Verdict
	measured := r.Summaries()
	for _, t := range thresholds {
		about := false
		for _, s := range measured {
			if t.Matches(s.Name) {
				about = true
				verdicts = append(verdicts, t.judge(s))
			}
		}
		for _, s := range r.Missing() {
			if t.Matches(s.Name) {
				about = true
				verdicts = append(verdicts, Verdict{Threshold: t.Expression, Strategy: s.Title(), Unit: t.metric.Unit, Why: "it was not measured"})
			}
		}
		if !about {
			verdicts = append(verdicts, Verdict{Threshold: t.Expression, Strategy: t.Strategy, Unit: t.metric.Unit, Why: "nothing that it is about was measured"})
		}
	}
	return verdicts
}

func (t Threshold) judge(s Summary) Verdict {
	v := Verdict{Threshold: t.Expression, Strategy: s.Title(), Unit: t.metric.Unit, Value: s.Figure(t.metric)}
	if t.metric.caution != nil {
		v.Caution = t.metric.caution(s.Used)
	}
	switch {
	case s.Invalid && !t.metric.total:
		v.Why = "no run of it can be trusted"
	case v.Value == nil:
		v.Why = "the figure is not known"
	default:
		known := false
		if v.Passed, known = t.limit.Keeps(*v.Value); !known {
			v.Why = "only a lower bound is known"
		}
	}
	return v
}

// Crossed returns the verdicts that are not passed.
func (r *Report) Crossed() []Verdict {
	return slices.DeleteFunc(slices.Clone(r.Thresholds), func(v Verdict) bool { return v.Passed })
}

// String writes the threshold, the strategy and the figure.
func (v Verdict) String() string {
	text := v.Threshold
	if v.Strategy != "" {
		text = v.Strategy + ": " + text
	}
	if v.Value != nil {
		figure := v.Value.Text(v.Unit)
		if v.Caution != "" {
			figure += "; " + v.Caution
		}
		text += " (" + figure + ")"
	}
	if v.Why != "" {
		text += ", " + v.Why
	}
	return text
}
