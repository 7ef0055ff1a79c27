package claims

import "github.com/lockbench/lockbench/internal/apps/document"

// shown returns the figures of a run that the claim shows; nil if it shows none, or the run has no report.
func (c Claim) shown(m *measured) *Shown {
	if len(c.Shows) == 0 || m == nil || m.report == nil {
		return nil
	}
	s := &Shown{Runs: len(m.report.Runs), Strategies: []ShownStrategy{}}
	for _, run := range m.report.Runs {
		if !run.Complete() {
			s.LeftOut++
		}
		if run.MachineBound() {
			s.MachineBound++
		}
	}
	for _, summary := range m.report.Summaries() {
		one := ShownStrategy{Name: summary.Title()}
		for _, metric := range c.Shows {
			f := document.Figure{Metric: metric.Name, Unit: metric.Unit}
			if !summary.Invalid {
				f.Value = summary.Figure(metric)
			}
			one.Figures = append(one.Figures, f)
		}
		s.Strategies = append(s.Strategies, one)
	}
	return s
}
