package layout

import (
	"fmt"
	"strings"
)

// between are the blanks between two columns.
const between = "  "

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
	sizes := make([]int, len(columns))
	for _, row := range rows {
		if len(row) < len(columns) {
			continue
		}
		for i, cell := range row {
			for line := range strings.SplitSeq(cell, "\n") {
				sizes[i] = max(sizes[i], TextWidth(line))
			}
		}
	}
	for i, row := range rows {
		if len(row) < len(columns) {
			fmt.Fprintln(p, strings.Join(row, between))
			continue
		}
		p.row(columns, sizes, row)
		if i == 0 {
			wide := len(between) * (len(sizes) - 1)
			for _, size := range sizes {
				wide += size
			}
			fmt.Fprintln(p, strings.Repeat("─", wide))
		}
	}
}

// row writes a row of cells, in as many lines as its highest cell has.
func (p *Page) row(columns string, sizes []int, row []string) {
	cells, height := make([][]string, len(row)), 0
	for i, cell := range row {
		cells[i] = strings.Split(cell, "\n")
		height = max(height, len(cells[i]))
	}
	for at := range height {
		line := ""
		for i, cell := range cells {
			text := ""
			if at < len(cell) {
				text = cell[at]
			}
			blanks := strings.Repeat(" ", sizes[i]-TextWidth(text))
			if columns[i] == 'r' {
				line += blanks + text + between
			} else {
				line += text + blanks + between
			}
		}
		fmt.Fprintln(p, strings.TrimRight(line, " ")) // a blank at its end would wrap on a narrow terminal
	}
}
