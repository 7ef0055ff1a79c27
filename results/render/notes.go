package render

import (
	"strings"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
)

// notes writes what a reader must know about the tables.
func (p *page) notes(r *results.Report, all []results.Summary) {
	figures := p.String()
	p.WriteByte('\n')
	p.found(findings.Of(all))
	if len(all) > 0 {
		p.Entry("read", method(r, true))
		p.Entry("", signs(figures))
	}
	p.found(findings.OfReport(r))
}

func (p *page) found(all []findings.Finding) {
	for _, f := range all {
		if f.Note != "" {
			p.Entry(f.Note, f.String())
		}
	}
}

// method says how the figures were obtained, for all tables or for the short one.
func method(r *results.Report, whole bool) string {
	again := "as soon as it has released"
	if !r.Workload.Think.IsZero() {
		again = "once it has released and thought"
	}
	how := "closed loop: each client acquires again " + again
	if r.Workload.Rate > 0 {
		how = "open loop: waits count from the intended start"
	}
	if !whole && r.Rounds <= 1 {
		how += " · two digits: one run does not tell the spread"
	}
	if !whole {
		how += " · cmds, CPU: the server's"
	}
	if whole && r.Rounds <= 1 && r.Steady() {
		how += " · ± of the run's own seconds (batch means), not of another run"
	}
	if r.Rounds > 1 {
		how += " · medians of the valid runs, safety of all"
		if r.Rounds < 6 {
			how += " · ratios: median (smallest–largest) of the rounds; 95 % intervals take 6"
		} else {
			how += " · ratios: median of the rounds (its 95 % interval)"
		}
	}
	return how
}

// signs explains the signs that occur in the figures.
func signs(figures string) string {
	var explained []string
	if strings.Contains(figures, "≥") {
		explained = append(explained, "≥ at least: some had not ended, or too few waits decide")
	}
	if strings.Contains(figures, "~") {
		explained = append(explained, "~ rough: over a third was subtracted for idle connections")
	}
	if strings.Contains(figures, results.NotKnown+" ") || strings.Contains(figures, results.NotKnown+"\n") {
		explained = append(explained, results.NotKnown+" not known")
	}
	if strings.Contains(figures, "!") {
		explained = append(explained, "! see INVALID")
	}
	return strings.Join(explained, " · ")
}
