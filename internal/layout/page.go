// Package layout formats a document, for a terminal or as Markdown.
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

	"github.com/lockbench/lockbench/internal/words"
)

// Page holds what has been written of a document.
type Page struct {
	bytes.Buffer
	Markdown bool // false means for a terminal
	Wide     int  // most columns of a line on a terminal; 0 means Width
	Paint         // false for Markdown
}

func (p *Page) wide() int { return cmp.Or(p.Wide, Width) }

// Text returns a text as the page needs it.
func (p *Page) Text(text string) string {
	if p.Markdown {
		return Escape(text)
	}
	return text
}

// labelWidth is the width of an entry's label.
const labelWidth = 11

// Entry writes a label and a text, which it wraps and indents, or an item of a list. Without
// a label it continues the entry before; for an empty text it writes nothing. A label that
// begins with "!" is red.
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

// Section writes a heading and the text beside it, which may be "".
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

// Point writes an item of a list. about names its subject, and may be "".
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

// Remark writes a note on the text above; on a terminal behind a mark, which may be "".
func (p *Page) Remark(mark, text string) {
	if p.Markdown {
		fmt.Fprintf(p, "\n%s\n", Escape(text))
	} else {
		fmt.Fprintln(p, p.hanging(mark, text, strings.Repeat(" ", len(mark))))
	}
}

// Command writes a command line that can be pasted into a shell. It breaks lines with a
// backslash, never within quotes or a comment.
func (p *Page) Command(line string) {
	if p.Markdown {
		fmt.Fprintf(p, "    %s\n", line)
		return
	}
	fmt.Fprintln(p, "  "+strings.Join(broken(line, p.wide()-4), " \\\n      "))
}

// Columns writes rows of cells in columns for a terminal, without headings.
func (p *Page) Columns(rows [][]string) {
	columns := tabwriter.NewWriter(p, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(columns, "  %s\n", strings.Join(row, "\t"))
	}
	_ = columns.Flush() // to a buffer
}

// Grid draws rows of cells, headings first. The cells must come from Text.
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

// trimmed removes the blanks at a line's end, which would wrap on a narrow terminal. In a
// coloured cell the table ends the colour behind the blanks.
func trimmed(line string) string {
	line, coloured := strings.CutSuffix(strings.TrimRight(line, " \n"), off)
	if line = strings.TrimRight(line, " "); coloured && !strings.HasSuffix(line, off) {
		line += off
	}
	return line
}

// Save writes the page to w, without blanks at the ends of lines; what names it in errors.
func (p *Page) Save(w io.Writer, what string) error {
	lines := strings.Split(p.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return words.Write(w, what, []byte(strings.Join(lines, "\n")))
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
				Lines: tw.Lines{
					ShowTop: tw.Off, ShowBottom: tw.Off, ShowHeaderLine: tw.On,
					ShowFooterLine: tw.Off,
				},
			},
		})),
		tablewriter.WithConfig(tablewriter.Config{
			Header:   cell,
			Row:      cell,
			Behavior: tw.Behavior{TrimSpace: tw.Off, TrimLine: tw.Off},
		}),
	)
}
