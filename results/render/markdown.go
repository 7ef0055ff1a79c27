package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// WriteMarkdown writes the tables of WriteTable for a pull request: the same
// groups and columns, the heading and the notes as lists.
func WriteMarkdown(w io.Writer, r *results.Report) error {
	page := &page{list: true}
	fmt.Fprintf(page, "### lockbench\n\n")
	page.heading(r)
	all := r.Summaries()
	if len(all) > 0 {
		for _, t := range tables(r, all) {
			page.markdownTable(t, all)
		}
	}
	page.notes(r, all)
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("write Markdown: %w", err)
	}
	return nil
}

func (p *page) markdownTable(t results.Table, all []results.Summary) {
	header, rule := []string{"**" + markdownText(t.Title) + "**"}, []string{"---"}
	for _, c := range t.Columns {
		header = append(header, markdownText(c.Flat())) // the words are whole here
		if c.Words {
			rule = append(rule, "---")
		} else {
			rule = append(rule, "---:")
		}
	}
	p.WriteByte('\n')
	p.markdownRow(header)
	p.markdownRow(rule)
	for _, s := range all {
		name := s.Title()
		if s.Tainted() {
			name += " !"
		}
		row := []string{markdownText(name)}
		for _, c := range t.Columns {
			cell := markdownText(strings.Join(strings.Fields(c.Text(s)), " "))
			if strings.HasPrefix(cell, "BROKEN") {
				cell = "**" + cell + "**"
			}
			row = append(row, cell)
		}
		p.markdownRow(row)
	}
}

func (p *page) markdownRow(cells []string) { fmt.Fprintf(p, "| %s |\n", strings.Join(cells, " | ")) }

// item writes a heading's or a note's line. One without a word of its own
// continues the line before.
func (p *page) item(label, text string) {
	if label == "" {
		text = "  " + markdownText(text)
	} else {
		text = fmt.Sprintf("- **%s** %s", markdownText(label), markdownText(text))
	}
	p.WriteString(text + "\n")
}

// markdownText keeps what Markdown would take for its own.
func markdownText(text string) string {
	return strings.NewReplacer("\\", `\\`, "|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "#", `\#`).Replace(text)
}
