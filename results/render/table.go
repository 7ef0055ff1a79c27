package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	"github.com/lockbench/lockbench/results"
)

// Tables fit a terminal of tableWidth columns; a strategy's name takes at most
// nameWidth of them.
const (
	tableWidth = 120
	nameWidth  = 28
	wordsWidth = 20 // leaves room for the figures beside them
)

// TableOptions say how WriteTable writes.
type TableOptions struct {
	Color bool // with ANSI colours, for a terminal
}

// WriteTable writes the report for people: what was measured on what, then
// speed, waiting, fairness, cost and safety with a row for each strategy, then
// what a reader must know about the figures. No line is longer than 120
// columns.
func WriteTable(w io.Writer, r *results.Report, opts TableOptions) error {
	page := &page{paint: paint(opts.Color)}
	page.heading(r)
	all := r.Summaries()
	var drawn []results.Table
	if len(all) > 0 {
		drawn = tables(r, all)
	}
	for _, t := range drawn {
		page.names = max(page.names, twwidth.Width(t.Title))
	}
	for _, s := range all {
		for line := range strings.Lines(page.name(s)) {
			page.names = max(page.names, twwidth.Width(strings.TrimSuffix(line, "\n")))
		}
	}
	for _, t := range drawn {
		if err := page.table(t, all); err != nil {
			return fmt.Errorf("draw table %s: %w", t.Title, err)
		}
	}
	page.notes(r, all)
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// page is what has been written so far.
type page struct {
	bytes.Buffer
	paint paint
	names int  // columns of the strategies' names, the same in every table
	list  bool // of Markdown, see item
}

func (p *page) table(t results.Table, all []results.Summary) error {
	title := func(lines string) string {
		if !strings.Contains(lines, "\n") {
			lines = "\n" + lines // units and percentiles stand right above the figures
		}
		return p.paint.bold(lines)
	}
	header := []string{title(t.Title + strings.Repeat(" ", p.names-twwidth.Width(t.Title)))}
	align := []tw.Align{tw.AlignLeft}
	for _, c := range t.Columns {
		header = append(header, title(c.Heading))
		if c.Words {
			align = append(align, tw.AlignLeft)
		} else {
			align = append(align, tw.AlignRight)
		}
	}

	var drawn bytes.Buffer
	table := newTable(&drawn, align)
	table.Header(header)
	for _, s := range all {
		row := []string{p.name(s)}
		for _, c := range t.Columns {
			cell := c.Text(s)
			if c.Words {
				cell = strings.Join(wrap(cell, wordsWidth, ""), "\n")
			}
			row = append(row, p.paint.verdict(cell))
		}
		if err := table.Append(row); err != nil {
			return err
		}
	}
	if err := table.Render(); err != nil {
		return err
	}
	p.WriteByte('\n')
	for line := range strings.Lines(drawn.String()) {
		line = strings.TrimRight(line, " \n")
		if strings.HasPrefix(line, "──") {
			line = strings.TrimSuffix(line, "──") // below the last column's padding
		}
		p.WriteString(line + "\n")
	}
	return nil
}

func newTable(w io.Writer, align []tw.Align) *tablewriter.Table {
	cell := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Alignment:  tw.CellAlignment{PerColumn: align},
		Padding:    tw.CellPadding{Global: tw.Padding{Right: "  ", Overwrite: true}},
	}
	return tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbols(tw.StyleLight),
			Settings: tw.Settings{
				Separators: tw.SeparatorsNone,
				Lines:      tw.Lines{ShowTop: tw.Off, ShowBottom: tw.Off, ShowHeaderLine: tw.On, ShowFooterLine: tw.Off},
			},
		})),
		tablewriter.WithConfig(tablewriter.Config{
			Header:   cell,
			Row:      cell,
			Behavior: tw.Behavior{TrimSpace: tw.Off, TrimLine: tw.Off},
		}),
	)
}

// name is a strategy's name within its column, marked when a run of it cannot
// be trusted. It is wrapped, not cut: two variants may differ at their ends only.
func (p *page) name(s results.Summary) string {
	name := strings.Join(wrap(s.Title(), nameWidth-2, "  "), "\n")
	if s.Tainted() {
		return name + p.paint.red(" !")
	}
	return name
}
