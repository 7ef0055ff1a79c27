package render

import (
	"strings"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/results"
)

// These widths are in columns of a terminal.
const (
	shortWidth = 80 // of the short page
	leastName  = 8  // smallest width of names: that of the heading "strategy"
	shortWords = 10 // largest width of a text in a cell of the short page
	wordsWidth = 20 // the same on the page with all tables
)

// page is a layout.Page on which table writes tables of strategies.
type page struct {
	layout.Page
	short bool // the figures on which most decisions depend, with no more digits than are known
	names int  // least width of the strategies' names, the same in every table
}

// table writes a table. If the columns need more than the width of a terminal, it writes several tables, one below the
// other.
func (p *page) table(t results.Table) {
	if len(t.Rows) == 0 {
		return
	}
	var widths []int
	for _, c := range t.Columns {
		widths = append(widths, p.columnWidth(c, t.Rows))
	}
	for _, part := range p.Parts(p.names, widths) {
		p.part(t.Title, t.Columns[part.From:part.To], t.Rows, p.names+p.Width()-part.Wide)
	}
}

// columnWidth returns the width of the widest line in the heading and the cells of a column.
func (p *page) columnWidth(c results.Column, all []results.Summary) int {
	texts := []string{c.Heading}
	for _, s := range all {
		texts = append(texts, p.text(c, s))
	}
	wide := 0
	for line := range strings.SplitSeq(strings.Join(texts, "\n"), "\n") {
		wide = max(wide, layout.TextWidth(line))
	}
	return wide
}

// part writes these columns of a table next to the names, which may be up to room terminal columns wide. A longer name
// gets a line of its own. "!" marks the name of a strategy with a run that cannot be trusted.
func (p *page) part(title string, columns []results.Column, all []results.Summary, room int) {
	rows, sides := [][]string{{p.title(title)}}, "l"
	for _, c := range columns {
		rows[0] = append(rows[0], p.heading(c))
		if c.Words {
			sides += "l"
		} else {
			sides += "r"
		}
	}
	for _, s := range all {
		name, mark := p.Text(s.Title()), ""
		if s.AnyInvalid() {
			mark = " !"
		}
		if layout.TextWidth(name+mark) > room && !p.Markdown {
			for _, line := range layout.Wrap(name+mark, p.Width(), "  ") {
				rows = append(rows, []string{line})
			}
			name, mark = "", ""
		}
		row := []string{name + p.Red(mark)}
		for _, c := range columns {
			row = append(row, p.verdict(p.text(c, s)))
		}
		rows = append(rows, row)
	}
	p.WriteByte('\n')
	if p.short && title != "" {
		p.WriteString(p.Bold(title) + "\n")
	}
	p.Grid(sides, rows)
}

// title returns the heading of the first column, which has the strategies' names.
func (p *page) title(title string) string {
	switch {
	case p.Markdown:
		return "**" + layout.Escape(title) + "**"
	case p.short:
		return p.Bold("\nstrategy")
	}
	return p.Bold("\n" + title + strings.Repeat(" ", p.names-layout.TextWidth(title)))
}

// heading returns a column's heading. In a terminal it has two lines, with units and percentiles
// in the second.
func (p *page) heading(c results.Column) string {
	switch {
	case p.Markdown:
		return layout.Escape(c.Flat())
	case strings.Contains(c.Heading, "\n"):
		return p.Bold(c.Heading)
	}
	return p.Bold("\n" + c.Heading)
}

// text returns the text of a strategy's cell. On the short page the figures have no mark for invalid runs, because the
// marked name and the claims show them.
func (p *page) text(c results.Column, s results.Summary) string {
	switch {
	case p.Markdown:
		return layout.Escape(strings.Join(strings.Fields(c.Text(s)), " "))
	case c.Words && p.short:
		return strings.Join(layout.Wrap(c.Text(s), shortWords, ""), "\n")
	case c.Words:
		return strings.Join(layout.Wrap(c.Text(s), wordsWidth, ""), "\n")
	case c.Cell == nil && p.short:
		return strings.TrimSuffix(s.Brief(c.Metric), "/s") // the heading has the unit
	}
	return c.Text(s)
}

// verdict colours a cell that contains a result of the audit. In Markdown it makes a broken claim bold.
func (p *page) verdict(cell string) string {
	switch {
	case p.Markdown && strings.HasPrefix(cell, "BROKEN"):
		return "**" + cell + "**"
	case strings.HasPrefix(cell, "BROKEN"), strings.HasPrefix(cell, "INVALID"):
		return p.Red(cell)
	case strings.Contains(cell, "unsafe"), cell == "no claim":
		return p.Yellow(cell)
	case cell == "held":
		return p.Green(cell)
	}
	return cell
}
