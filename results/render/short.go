package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
)

// Widths in the short table, in columns of a terminal.
const (
	shortWidth = 80
	leastName  = 8  // least width of names, which the heading "strategy" needs
	shortWords = 10 // most width of a text in a cell
	between    = 2  // blanks between columns
)

// WriteTable writes a short report for people: one table with a row per strategy and the figures
// on which most decisions depend, further tables for several runs, faults or bursts, and at
// most three findings. No line is longer than 80 columns.
// color adds ANSI colours, for a terminal.
func WriteTable(w io.Writer, r *results.Report, color bool) error {
	p := &page{Page: layout.Page{Paint: layout.Paint(color), Wide: shortWidth}}
	for _, line := range r.Gist() {
		p.Entry(line[0], line[1])
	}
	all := r.Summaries()
	if len(all) > 0 {
		tables := []results.Table{
			{Columns: results.Columns(results.ShortGroup, r)},
			{Title: string(results.RatioGroup), Columns: ratios(results.Columns(results.ShortRatioGroup, r), r, all)},
		}
		for _, t := range append(tables, r.Extras()...) {
			if err := p.short(t, all); err != nil {
				return fmt.Errorf("draw table %s: %w", t.Title, err)
			}
		}
	}
	p.answer(r, all)
	return words.Write(w, "table", p.Bytes())
}

// answer writes findings in words, and what a reader must know to trust the figures.
func (p *page) answer(r *results.Report, all []results.Summary) {
	figures := p.String()
	p.WriteByte('\n')
	var cautions []string
	for _, f := range findings.Of(all) {
		switch f.Sort {
		case findings.NotTrusted:
			p.Entry(f.Note, f.String())
		case findings.Caution:
			f.Text, _, _ = strings.Cut(f.Text, " (") // without the explanation
			if len(all) > 1 && len(f.Strategies) == len(all) {
				f.Strategies = []string{"all"}
			}
			cautions = append(cautions, f.String())
		}
	}
	for _, f := range findings.Brief(all) {
		p.Point("", f.String())
	}
	p.found(findings.OfReport(r))
	p.Entry("caution", strings.Join(cautions, "; "))
	if len(all) > 0 {
		p.Entry("read", method(r, false))
		p.Entry("", signs(figures))
		p.Entry("more", "-o tables for every figure, lockbench report for a page with pictures")
	}
}

// short draws a table in the width of the page. If its columns need more, it draws several
// tables, one below the other. A name that is longer than its column has its own line.
func (p *page) short(t results.Table, all []results.Summary) error {
	for columns := t.Columns; len(columns) > 0; {
		room, n := shortWidth-leastName, 0
		for n < len(columns) {
			wide := between + columnWidth(columns[n], all)
			if wide > room && n > 0 {
				break
			}
			room, n = room-wide, n+1
		}
		p.WriteByte('\n')
		if t.Title != "" {
			p.WriteString(p.Bold(t.Title) + "\n")
		}
		if err := p.block(columns[:n], all, room+leastName); err != nil {
			return err
		}
		columns = columns[n:]
	}
	return nil
}

// block draws columns behind names that are at most room wide.
func (p *page) block(columns []results.Shown, all []results.Summary, room int) error {
	rows, align := [][]string{{p.Bold("\nstrategy")}}, []tw.Align{tw.AlignLeft}
	for _, c := range columns {
		rows[0] = append(rows[0], p.column(c))
		side := tw.AlignRight
		if c.Words {
			side = tw.AlignLeft
		}
		align = append(align, side)
	}
	above := map[int][]string{} // lines to put above a row, by row
	for i, s := range all {
		name := p.shortName(s)
		if twwidth.Width(p.plainName(s)) > room {
			above[i], name = layout.Wrap(p.plainName(s), shortWidth, "  "), ""
		}
		row := []string{name}
		for _, c := range columns {
			row = append(row, p.verdict(shortCell(c, s)))
		}
		rows = append(rows, row)
	}
	drawn := page{Page: layout.Page{Paint: p.Paint}}
	if err := drawn.Grid(align, rows); err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(drawn.String()))
	head := height(rows[0]) + 1 // with the rule below
	p.WriteString(strings.Join(lines[:head], ""))
	for i := range all {
		for _, line := range above[i] {
			p.WriteString(line + "\n")
		}
		end := head + height(rows[i+1])
		p.WriteString(strings.Join(lines[head:end], ""))
		head = end
	}
	return nil
}

// height returns the number of lines of a row.
func height(row []string) int {
	lines := 1
	for _, cell := range row {
		lines = max(lines, 1+strings.Count(cell, "\n"))
	}
	return lines
}

// columnWidth returns the width of the heading and the cells.
func columnWidth(c results.Shown, all []results.Summary) int {
	texts := []string{c.Heading}
	for _, s := range all {
		texts = append(texts, shortCell(c, s))
	}
	wide := 0
	for line := range strings.SplitSeq(strings.Join(texts, "\n"), "\n") {
		wide = max(wide, twwidth.Width(line))
	}
	return wide
}

// shortCell has no mark for invalid runs: the name and the claims have one.
func shortCell(c results.Shown, s results.Summary) string {
	switch {
	case c.Cell == nil:
		return strings.TrimSuffix(s.Brief(c.Metric), "/s") // the heading has the unit
	case !c.Words:
		return c.Text(s)
	}
	return strings.Join(layout.Wrap(c.Text(s), shortWords, ""), "\n")
}

// shortName returns a strategy's name, with a mark if a run of it cannot be trusted.
func (p *page) shortName(s results.Summary) string {
	if s.AnyInvalid() {
		return s.Title() + p.Red(" !")
	}
	return s.Title()
}

// plainName is shortName without colours.
func (p *page) plainName(s results.Summary) string { return (&page{}).shortName(s) }
