package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// page is what has been written so far of a document, for a terminal or as Markdown.
type page struct {
	bytes.Buffer
	markdown bool
	paint    paint // not of Markdown
	names    int   // columns of the strategies' names, the same in every table
}

// text is a text as it stands in the page.
func (p *page) text(text string) string {
	if p.markdown {
		return markdownText(text)
	}
	return text
}

// section writes a heading with what stands beside it, which may be empty.
func (p *page) section(title, beside string) {
	if !p.markdown {
		fmt.Fprintf(p, "\n%s\n", p.paint.bold(strings.TrimSpace(strings.ToUpper(title)+"  "+beside)))
		return
	}
	if beside != "" {
		title += ": " + beside
	}
	fmt.Fprintf(p, "\n## %s\n\n", markdownText(title))
}

// point writes one of several things to be said, about somebody or "".
func (p *page) point(about, text string) {
	switch {
	case p.markdown && about != "":
		fmt.Fprintf(p, "- **%s**: %s\n", markdownText(about), markdownText(text))
	case p.markdown:
		fmt.Fprintf(p, "- %s\n", markdownText(text))
	default:
		if about != "" {
			text = about + ": " + text
		}
		fmt.Fprintln(p, hanging("· ", text, "  "))
	}
}

// command writes a command line.
func (p *page) command(line string) {
	if p.markdown {
		fmt.Fprintf(p, "    %s\n", line)
	} else {
		fmt.Fprintln(p, hanging("$ ", line, "    "))
	}
}

// grid draws rows of cells, as text has made them, headings first.
func (p *page) grid(align []tw.Align, rows [][]string) error {
	if p.markdown {
		rule := map[tw.Align]string{tw.AlignLeft: "---", tw.AlignRight: "---:"}
		under := make([]string, len(align))
		for i, side := range align {
			under[i] = rule[side]
		}
		for i, row := range rows {
			fmt.Fprintf(p, "| %s |\n", strings.Join(row, " | "))
			if i == 0 {
				fmt.Fprintf(p, "| %s |\n", strings.Join(under, " | "))
			}
		}
		return nil
	}
	var drawn bytes.Buffer
	table := newTable(&drawn, align)
	table.Header(rows[0])
	for _, row := range rows[1:] {
		if err := table.Append(row); err != nil {
			return err
		}
	}
	if err := table.Render(); err != nil {
		return err
	}
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
