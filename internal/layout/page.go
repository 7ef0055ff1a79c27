// Package layout lays a document out, for a terminal or as Markdown.
package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Page is what has been written so far of a document.
type Page struct {
	bytes.Buffer
	Markdown bool // else for a terminal
	Wide     int  // columns of a terminal that lines take at most; 0 is Width
	Paint         // not of Markdown
}

func (p *Page) wide() int { return cmp.Or(p.Wide, Width) }

// Text is a text as it stands in the page.
func (p *Page) Text(text string) string {
	if p.Markdown {
		return Escape(text)
	}
	return text
}

// labelWidth is the room for an entry's first word.
const labelWidth = 11

// Entry writes a line that starts with a word to find it by, wrapped below itself, or an
// item of a list; one without a word continues the entry before, and an empty text writes
// nothing. A word that begins with "!" stands out.
func (p *Page) Entry(label, text string) {
	switch {
	case text == "":
	case p.Markdown && label == "":
		fmt.Fprintf(p, "  %s\n", Escape(text))
	case p.Markdown:
		fmt.Fprintf(p, "- **%s** %s\n", Escape(label), Escape(text))
	default:
		for i, line := range Wrap(text, p.wide()-labelWidth, "") {
			word := strings.Repeat(" ", labelWidth)
			if i == 0 {
				word = fmt.Sprintf("%-*s", labelWidth, label)
			}
			if strings.HasPrefix(word, "!") {
				word = p.Red(word)
			}
			fmt.Fprintf(p, "%s%s\n", word, line)
		}
	}
}

// Section writes a heading with what stands beside it, which may be empty.
func (p *Page) Section(title, beside string) {
	if !p.Markdown {
		fmt.Fprintf(p, "\n%s\n", p.Bold(strings.TrimSpace(strings.ToUpper(title)+"  "+beside)))
		return
	}
	if beside != "" {
		title += ": " + beside
	}
	fmt.Fprintf(p, "\n## %s\n\n", Escape(title))
}

// Point writes one of several things to be said, about somebody or "".
func (p *Page) Point(about, text string) {
	switch {
	case p.Markdown && about != "":
		fmt.Fprintf(p, "- **%s**: %s\n", Escape(about), Escape(text))
	case p.Markdown:
		fmt.Fprintf(p, "- %s\n", Escape(text))
	default:
		if about != "" {
			text = about + ": " + text
		}
		fmt.Fprintln(p, p.hanging("· ", text, "  "))
	}
}

// Remark writes what is to be known of what stands above; on a terminal behind a mark or "".
func (p *Page) Remark(mark, text string) {
	if p.Markdown {
		fmt.Fprintf(p, "\n%s\n", Escape(text))
	} else {
		fmt.Fprintln(p, p.hanging(mark, text, strings.Repeat(" ", len(mark))))
	}
}

// Command writes a command line as a shell reads it: a line break stands behind a
// backslash, never within quotes or a comment, so that it can be pasted.
func (p *Page) Command(line string) {
	if p.Markdown {
		fmt.Fprintf(p, "    %s\n", line)
		return
	}
	fmt.Fprintln(p, "  "+strings.Join(broken(line, p.wide()-4), " \\\n      "))
}

// Columns writes rows of cells below each other for a terminal, without headings.
func (p *Page) Columns(rows [][]string) {
	columns := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(columns, "  %s\n", strings.Join(row, "\t"))
	}
	_ = columns.Flush() // to a buffer
}

// Grid draws rows of cells, as Text has made them, headings first.
func (p *Page) Grid(align []tw.Align, rows [][]string) error {
	if p.Markdown {
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
		line = trimmed(line)
		if strings.HasPrefix(line, "──") {
			line = strings.TrimSuffix(line, "──") // below the last column's padding
		}
		p.WriteString(line + "\n")
	}
	return nil
}

// trimmed is a line without the blanks at its end, which on a narrow terminal would take
// another one; where colours are in it the table ends them behind the blanks.
func trimmed(line string) string {
	line, coloured := strings.CutSuffix(strings.TrimRight(line, " \n"), off)
	if line = strings.TrimRight(line, " "); coloured && !strings.HasSuffix(line, off) {
		line += off
	}
	return line
}

// Save writes the page to w, without the blanks that columns leave at the ends of lines.
func (p *Page) Save(w io.Writer) error {
	lines := strings.Split(p.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
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
