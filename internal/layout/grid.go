package layout

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Grid draws rows of cells, headings first. columns has one letter per column: l for text, r for figures. On a
// terminal, a row with fewer cells than columns is drawn as a plain line. The cells must come from Text.
func (p *Page) Grid(columns string, rows [][]string) {
	if p.HTML {
		p.htmlTable(rows)
		return
	}
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
			_ = table.Append(row) // cannot fail for strings
		}
	}
	_ = table.Render() // cannot fail for a buffer
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

// htmlTable draws rows of cells, headings first, in the markup that the report's style expects.
func (p *Page) htmlTable(rows [][]string) {
	p.within("", "")
	fmt.Fprint(p, "<div class=\"scroll\" tabindex=\"0\">\n<table>\n<thead><tr>")
	for _, heading := range rows[0] {
		fmt.Fprintf(p, "<th scope=\"col\">%s</th>", html.EscapeString(heading))
	}
	fmt.Fprint(p, "</tr></thead>\n<tbody>\n")
	for _, row := range rows[1:] {
		for i, cell := range row {
			if i == 0 {
				fmt.Fprintf(p, "<tr><th scope=\"row\">%s</th>", html.EscapeString(cell))
			} else {
				fmt.Fprintf(p, "<td data-head=\"%s\">%s</td>", html.EscapeString(rows[0][i]), html.EscapeString(cell))
			}
		}
		fmt.Fprint(p, "</tr>\n")
	}
	fmt.Fprint(p, "</tbody>\n</table>\n</div>\n")
}

// between is the number of spaces between two columns on a terminal.
const between = 2

// Part is a range of a table's columns that fits the page. The range includes From but not To. Wide is the width of the
// part's table on a terminal, in columns.
type Part struct{ From, To, Wide int }

// Parts divides columns of these widths into parts, one per table, that fit the page. taken is the width of the columns
// that every table repeats. A part has at least one column, even if that column does not fit.
func (p *Page) Parts(taken int, widths []int) (parts []Part) {
	for i, wide := range widths {
		wide += between
		if last := len(parts) - 1; i > 0 && (p.flows() || parts[last].Wide+wide <= p.Width()) {
			parts[last].To, parts[last].Wide = i+1, parts[last].Wide+wide
		} else {
			parts = append(parts, Part{i, i + 1, taken + wide})
		}
	}
	return parts
}

// Table draws one grid or, if the columns do not fit the page, several grids one after another. first is the number of
// columns that each grid repeats on its left. These columns take at most half of the width.
func (p *Page) Table(first int, columns string, rows [][]string) {
	if !p.flows() {
		rows = wrapped(rows, first, p.textWidth()/2)
	}
	widths := widthsOf(rows)
	taken := between * (first - 1)
	for _, wide := range widths[:first] {
		taken += wide
	}
	for i, part := range p.Parts(taken, widths[first:]) {
		from, to := first+part.From, first+part.To
		var chosen [][]string
		for _, row := range rows {
			chosen = append(chosen, slices.Concat(row[:first], row[from:to]))
		}
		if i > 0 {
			p.WriteByte('\n')
		}
		p.Grid(columns[:first]+columns[from:to], chosen)
	}
}

// Columns writes rows of cells after an indent, without headings. If they are wider than the page, the cells of the
// widest columns wrap. A row whose number of cells differs from the previous row's begins a new table with its own
// widths. A single cell is a command, so it is not wrapped.
func (p *Page) Columns(indent string, rows [][]string) {
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && len(rows[n]) == len(rows[0]) {
			n++
		}
		alike := rows[:n]
		if len(rows[0]) > 1 {
			alike = wrapped(alike, len(rows[0]), p.Width()-len(indent))
		}
		widths := widthsOf(alike)
		for _, row := range alike {
			p.cells(indent, row, widths)
		}
		rows = rows[n:]
	}
}

// cells writes a row with each cell padded to the width of its column. A cell may have several lines.
func (p *Page) cells(indent string, row []string, widths []int) {
	high := 1
	for _, cell := range row {
		high = max(high, 1+strings.Count(cell, "\n"))
	}
	for at := range high {
		line := indent
		for i, cell := range row {
			text := ""
			if lines := strings.Split(cell, "\n"); at < len(lines) {
				text = lines[at]
			}
			line += text + strings.Repeat(" ", widths[i]-TextWidth(text)+between)
		}
		fmt.Fprintln(p, strings.TrimRight(line, " "))
	}
}

// widthsOf returns, for each column, the width of its widest line.
func widthsOf(rows [][]string) []int {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			for line := range strings.SplitSeq(cell, "\n") {
				widths[i] = max(widths[i], TextWidth(line))
			}
		}
	}
	return widths
}

// leastCell is the smallest width to which cells are wrapped.
const leastCell = 8

// wrapped wraps the cells of the leftmost columns until these columns fit into room. first is the number of these
// columns. The widest columns shrink first. Coloured cells, which are short, and cells with several lines stay
// unchanged.
func wrapped(rows [][]string, first, room int) [][]string {
	widths := widthsOf(rows)[:first]
	total := func(most int) int {
		sum := between * (first - 1)
		for _, wide := range widths {
			sum += min(wide, most)
		}
		return sum
	}
	most := room
	for most > leastCell && total(most) > room {
		most--
	}
	var all [][]string
	for _, row := range rows {
		row = slices.Clone(row)
		for i := range first {
			if TextWidth(row[i]) > most && !strings.ContainsAny(row[i], "\x1b\n") {
				row[i] = strings.Join(Wrap(row[i], most, ""), "\n")
			}
		}
		all = append(all, row)
	}
	return all
}

// trimmed removes the spaces at the end of a line, which would wrap on a narrow terminal. If a colour ends after these
// spaces, trimmed ends it before them. It also shortens the rule below the headings by the padding of the last column.
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
