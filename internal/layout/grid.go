package layout

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Grid draws rows of cells, headings first. columns has a letter for each column: l for text, r for figures. A
// row with fewer cells is a line of its own. The cells must come from Text.
func (p *Page) Grid(columns string, rows [][]string) {
	if p.Markdown {
		rule := strings.NewReplacer("l", "| --- ", "r", "| ---: ").Replace(columns) + "|"
		for i, row := range rows {
			fmt.Fprintf(p, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				fmt.Fprintln(p, rule)
			}
		}
		return
	}
	var drawn bytes.Buffer
	table := newTable(&drawn, columns)
	table.Header(rows[0])
	for _, row := range rows[1:] {
		if len(row) == len(columns) {
			_ = table.Append(row) // of strings
		}
	}
	_ = table.Render() // to a buffer
	lines := strings.Split(drawn.String(), "\n")
	for i, row := range rows {
		if len(row) < len(columns) {
			fmt.Fprintln(p, strings.Join(row, "  "))
			continue
		}
		high := 1
		for _, cell := range row {
			high = max(high, 1+strings.Count(cell, "\n"))
		}
		if i == 0 {
			high++ // the rule below the headings
		}
		for _, line := range lines[:high] {
			fmt.Fprintln(p, trimmed(line))
		}
		lines = lines[high:]
	}
}

// trimmed removes the blanks at a line's end, which would wrap on a narrow terminal, and the end of the rule that
// is below the last column's padding. In a coloured cell the table ends the colour behind the blanks.
func trimmed(line string) string {
	line, coloured := strings.CutSuffix(strings.TrimRight(line, " "), off)
	if line = strings.TrimRight(line, " "); coloured && !strings.HasSuffix(line, off) {
		line += off
	}
	if strings.HasPrefix(line, "──") {
		line = strings.TrimSuffix(line, "──")
	}
	return line
}

func newTable(w io.Writer, columns string) *tablewriter.Table {
	sides := make([]tw.Align, len(columns))
	for i, side := range columns {
		sides[i] = map[rune]tw.Align{'l': tw.AlignLeft, 'r': tw.AlignRight}[side]
	}
	cell := tw.CellConfig{
		Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off},
		Alignment:  tw.CellAlignment{PerColumn: sides},
		Padding:    tw.CellPadding{Global: tw.Padding{Right: "  ", Overwrite: true}},
	}
	lines := tw.Lines{ShowTop: tw.Off, ShowBottom: tw.Off, ShowHeaderLine: tw.On, ShowFooterLine: tw.Off}
	return tablewriter.NewTable(w,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleLight),
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: lines},
		})),
		tablewriter.WithConfig(tablewriter.Config{
			Header:   cell,
			Row:      cell,
			Behavior: tw.Behavior{TrimSpace: tw.Off, TrimLine: tw.Off},
		}),
	)
}
