// Package render writes reports: as tables, and in formats that other tools read.
package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
)

// WriteTable writes a short report for people: a table with a row per strategy and the figures on which most decisions
// depend, further tables if there are several runs, faults or bursts, and usually at most three findings. No line is
// longer than 80 columns, or than wide if that is less. color adds ANSI colours, for a terminal.
func WriteTable(w io.Writer, r *results.Report, wide int, color bool) error {
	p := &page{
		Page:  layout.Page{Paint: layout.Paint(color), Wide: min(wide, shortWidth)},
		short: true, names: leastName,
	}
	for _, line := range r.Gist() {
		p.Entry(line[0], line[1])
	}
	all := r.Summaries()
	tables := []results.Table{
		{Columns: results.Columns(results.ShortGroup, r), Rows: all},
		{Title: string(results.RatioGroup), Columns: results.Columns(results.ShortRatioGroup, r), Rows: all},
		results.TableOf(results.MixedGroup, r),
		results.TableOf(results.HerdGroup, r),
	}
	for _, t := range append(tables, r.FaultTables()...) {
		p.table(t)
	}
	p.findings(r, all)
	return words.Write(w, "table", p.Bytes())
}

// WriteTables writes the full report for people: the conditions, then speed, waiting, fairness, cost and safety with a
// row per strategy, then the findings and explanations that a reader needs. No line is longer than wide. color adds
// ANSI colours, for a terminal.
func WriteTables(w io.Writer, r *results.Report, wide int, color bool) error {
	return (&page{Page: layout.Page{Paint: layout.Paint(color), Wide: wide}}).report(w, r)
}

// WriteMarkdown writes the tables of WriteTables for a pull request: the same groups and
// columns, with the heading and the notes as lists.
func WriteMarkdown(w io.Writer, r *results.Report) error {
	p := &page{Page: layout.Page{Markdown: true}}
	p.WriteString("### lockbench\n\n")
	return p.report(w, r)
}

func (p *page) report(w io.Writer, r *results.Report) error {
	p.conditions(r)
	all := r.Summaries()
	var tables []results.Table
	for _, g := range results.Groups() {
		tables = append(tables, results.TableOf(g, r))
	}
	tables = append(tables, r.FaultTables()...)
	for _, t := range tables {
		p.names = max(p.names, layout.TextWidth(t.Title))
	}
	for _, t := range tables {
		p.table(t)
	}
	figures := p.String()
	p.WriteByte('\n')
	p.found(findings.Of(all))
	p.legend(r, all, figures)
	p.found(findings.OfReport(r))
	return words.Write(w, "table", p.Bytes())
}

// conditions writes the version, the number of runs, the seed, the start time, and the conditions of the measurement.
func (p *page) conditions(r *results.Report) {
	parts := []string{r.Tool.Version, words.Count(r.Rounds, "run") + " of each strategy"}
	if len(r.Generators) == 0 && r.Workload.Seed != 0 { // each generator has its own seed
		parts = append(parts, fmt.Sprintf("seed %d", r.Workload.Seed))
	}
	if !r.Started.IsZero() {
		parts = append(parts, r.Started.UTC().Format("2006-01-02 15:04 MST"))
	}
	p.Entry("lockbench", words.Dotted(parts...))
	for _, line := range r.Conditions() {
		p.Entry(line[0], line[1])
	}
}

// findings writes the findings to read first, and everything that casts doubt on the figures.
func (p *page) findings(r *results.Report, all []results.Summary) {
	figures := p.String()
	p.WriteByte('\n')
	var cautions []string
	for _, f := range findings.Of(all) {
		switch f.Sort {
		case findings.NotTrusted:
			p.Entry(f.Note, f.String())
		case findings.Caution:
			if len(all) > 1 && len(f.Strategies) == len(all) {
				f.Strategies = []string{"all"}
			}
			cautions = append(cautions, f.Short())
		}
	}
	for _, f := range findings.Brief(all) {
		p.Point("", f.String())
	}
	p.found(findings.OfReport(r))
	p.Entry("caution", strings.Join(cautions, "; "))
	p.legend(r, all, figures)
	if len(all) > 0 {
		p.Entry("more", "-o tables for every figure, lockbench report for a page with pictures")
	}
}

// found writes each finding whose Note is not empty, with the Note as its label.
func (p *page) found(all []findings.Finding) {
	for _, f := range all {
		if f.Note != "" {
			p.Entry(f.Note, f.String())
		}
	}
}

// legend writes how the figures were obtained, and explains the signs in them.
func (p *page) legend(r *results.Report, all []results.Summary, figures string) {
	if len(all) > 0 {
		p.Entry("read", p.method(r))
		p.Entry("", signs(figures, r))
	}
}

// method returns how waits were measured and how several runs were combined.
func (p *page) method(r *results.Report) string {
	again := "as soon as it has released"
	if !r.Workload.Think.IsZero() {
		again = "after its release and its think time"
	}
	how := "closed loop: each client acquires again " + again
	switch {
	case r.Workload.Rate > 0:
		how = "open loop: waits count from the intended start"
	case r.Workload.Burst > 0:
		how = "bursts: all clients wait for one release, then each acquires once"
	}
	if p.short && r.Rounds <= 1 {
		how += " · two digits, because one run shows no spread"
	}
	if p.short {
		how += " · cmds, CPU: server side"
	}
	if r.Rounds > 1 {
		how += " · medians of the valid runs, safety of all runs"
		switch intervals, others := r.Intervals(); {
		case intervals+others == 0: // no ratio
		case intervals == 0:
			how += " · ratios: median (smallest–largest) of the rounds; a 95 % interval needs 6"
		case others == 0:
			how += " · ratios: median of the rounds (its 95 % interval)"
		default:
			how += " · ratios: median of the rounds (its 95 % interval; with fewer than 6, smallest–largest and their number)"
		}
	}
	return how
}

// signs returns explanations of the signs, such as "≥", that occur in the text of the parameter figures.
func signs(figures string, r *results.Report) string {
	var explained []string
	if strings.Contains(figures, "≥") {
		unknown := "waits had not ended"
		if slices.ContainsFunc(r.Runs, func(run results.Run) bool { return run.Waiting.TimedOut > 0 }) {
			unknown = "waits timed out or had not ended"
		}
		explained = append(explained, "≥ lower bound: some "+unknown+", or too few support it")
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
