package results

import (
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes the tables of WriteTable for a pull request: the same
// groups and columns, the heading and the notes as lists.
func WriteMarkdown(w io.Writer, r *Report) error {
	page := &page{list: true}
	fmt.Fprintf(page, "### lockbench\n\n")
	page.heading(r)
	all := summarise(r)
	if len(all) > 0 {
		for _, g := range groups(r, all) {
			page.markdownGroup(g, all)
		}
	}
	page.notes(r, all)
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("write Markdown: %w", err)
	}
	return nil
}

func (p *page) markdownGroup(g group, all []summary) {
	header, rule := []string{"**" + markdownText(g.title) + "**"}, []string{"---"}
	for _, c := range g.columns {
		// A word that the narrow table breaks is whole here.
		header = append(header, markdownText(strings.ReplaceAll(strings.ReplaceAll(c.title, "-\n", ""), "\n", " ")))
		if c.left {
			rule = append(rule, "---")
		} else {
			rule = append(rule, "---:")
		}
	}
	p.WriteByte('\n')
	p.markdownRow(header)
	p.markdownRow(rule)
	for _, s := range all {
		name := s.title()
		if s.tainted() {
			name += " !"
		}
		row := []string{markdownText(name)}
		for _, c := range g.columns {
			cell := markdownText(strings.Join(strings.Fields(c.cell(s)), " "))
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
