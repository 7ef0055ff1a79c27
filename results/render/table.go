package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// Most widths of a strategy's name and of a text, in columns of a terminal.
const (
	nameWidth  = 28
	wordsWidth = 20 // leaves room for the figures beside them
)

// page is a layout.Page of tables.
type page struct {
	layout.Page
	names int // width of the strategies' names, the same in every table
}

// WriteTables writes the full report for people: the conditions, then speed, waiting, fairness,
// cost and safety with a row per strategy, then what a reader must know about the figures. No
// line is longer than 120 columns. color adds ANSI colours, for a terminal.
func WriteTables(w io.Writer, r *results.Report, color bool) error {
	return (&page{Page: layout.Page{Paint: layout.Paint(color)}}).report(w, r)
}

// WriteMarkdown writes the tables of WriteTables for a pull request: the same groups and
// columns, with the heading and the notes as lists.
func WriteMarkdown(w io.Writer, r *results.Report) error {
	p := &page{Page: layout.Page{Markdown: true}}
	p.WriteString("### lockbench\n\n")
	return p.report(w, r)
}

func (p *page) report(w io.Writer, r *results.Report) error {
	p.heading(r)
	all := r.Summaries()
	var drawn []results.Table
	if len(all) > 0 {
		drawn = tables(r, all)
	}
	for _, t := range drawn {
		p.names = max(p.names, twwidth.Width(t.Title))
	}
	for _, s := range all {
		for line := range strings.Lines(p.name(s)) {
			p.names = max(p.names, twwidth.Width(strings.TrimSuffix(line, "\n")))
		}
	}
	for _, t := range drawn {
		if err := p.table(t, all); err != nil {
			return fmt.Errorf("draw table %s: %w", t.Title, err)
		}
	}
	p.notes(r, all)
	return words.Write(w, "table", p.Bytes())
}

func (p *page) table(t results.Table, all []results.Summary) error {
	rows, align := [][]string{{p.title(t.Title)}}, []tw.Align{tw.AlignLeft}
	for _, c := range t.Columns {
		rows[0] = append(rows[0], p.column(c))
		if c.Words {
			align = append(align, tw.AlignLeft)
		} else {
			align = append(align, tw.AlignRight)
		}
	}
	for _, s := range all {
		row := []string{p.name(s)}
		for _, c := range t.Columns {
			row = append(row, p.cell(c, c.Text(s)))
		}
		rows = append(rows, row)
	}
	p.WriteByte('\n')
	return p.Grid(align, rows)
}

// title returns a table's title, above the strategies' names.
func (p *page) title(title string) string {
	if p.Markdown {
		return "**" + layout.Escape(title) + "**"
	}
	return p.Bold("\n" + title + strings.Repeat(" ", p.names-twwidth.Width(title)))
}

// column returns a column's heading. In a terminal it has two lines, with units and percentiles
// in the second.
func (p *page) column(c results.Shown) string {
	switch {
	case p.Markdown:
		return layout.Escape(c.Flat())
	case strings.Contains(c.Heading, "\n"):
		return p.Bold(c.Heading)
	}
	return p.Bold("\n" + c.Heading)
}

func (p *page) cell(c results.Shown, text string) string {
	switch {
	case p.Markdown:
		text = layout.Escape(strings.Join(strings.Fields(text), " "))
		if strings.HasPrefix(text, "BROKEN") {
			text = "**" + text + "**"
		}
		return text
	case c.Words:
		text = strings.Join(layout.Wrap(text, wordsWidth, ""), "\n")
	}
	return p.verdict(text)
}

// name returns a strategy's name, with a mark if a run of it cannot be trusted. It wraps a long
// name and does not cut it: variants may differ only at the end.
func (p *page) name(s results.Summary) string {
	name := s.Title()
	if !p.Markdown {
		name = strings.Join(layout.Wrap(name, nameWidth-2, "  "), "\n")
	}
	if s.AnyInvalid() {
		return p.Text(name) + p.Red(" !")
	}
	return p.Text(name)
}

// verdict colours a cell with the result of the audit.
func (p *page) verdict(cell string) string {
	switch {
	case strings.HasPrefix(cell, "BROKEN"), strings.HasPrefix(cell, "INVALID"):
		return p.Red(cell)
	case strings.Contains(cell, "unsafe"), cell == "no claim":
		return p.Yellow(cell)
	case cell == "held":
		return p.Green(cell)
	default:
		return cell
	}
}
