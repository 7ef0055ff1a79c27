package results

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/pkg/twwidth"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Tables fit a terminal of tableWidth columns; a strategy's name takes at most
// nameWidth of them.
const (
	tableWidth = 120
	nameWidth  = 28
)

// TableOptions say how WriteTable writes.
type TableOptions struct {
	Color bool // with ANSI colours, for a terminal
}

// WriteTable writes the report for people: what was measured on what, then
// speed, waiting, fairness, cost and safety with a row for each strategy, then
// what a reader must know about the figures. No line is longer than 120
// columns.
func WriteTable(w io.Writer, r *Report, opts TableOptions) error {
	page := &page{paint: paint(opts.Color)}
	page.heading(r)
	all := summarise(r)
	tables := groups(r, all)
	if len(all) == 0 {
		tables = nil
	}
	for _, g := range tables {
		page.names = max(page.names, twwidth.Width(g.title))
	}
	for _, s := range all {
		for line := range strings.Lines(page.name(s)) {
			page.names = max(page.names, twwidth.Width(strings.TrimSuffix(line, "\n")))
		}
	}
	for _, g := range tables {
		if err := page.group(g, all); err != nil {
			return fmt.Errorf("draw table %s: %w", g.title, err)
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

// group is one of the tables.
type group struct {
	title   string
	columns []column
}

// column is one figure; its title may have two lines.
type column struct {
	title string
	left  bool // left-aligned, for words
	cell  func(summary) string
}

func (p *page) group(g group, all []summary) error {
	title := func(lines string) string {
		if !strings.Contains(lines, "\n") {
			lines = "\n" + lines // units and percentiles stand right above the figures
		}
		return p.paint.bold(lines)
	}
	header := []string{title(g.title + strings.Repeat(" ", p.names-twwidth.Width(g.title)))}
	align := []tw.Align{tw.AlignLeft}
	for _, c := range g.columns {
		header = append(header, title(c.title))
		if c.left {
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
		for _, c := range g.columns {
			row = append(row, p.paint.verdict(c.cell(s)))
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
func (p *page) name(s summary) string {
	name := strings.Join(wrap(s.title(), nameWidth-2, "  "), "\n")
	if s.tainted() {
		return name + p.paint.red(" !")
	}
	return name
}
