package claims

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/results"
)

// WriteMarkdown writes it as a page: an overview, then each claim with its figures and
// commands.
func WriteMarkdown(w io.Writer, d *Document) error {
	p := &layout.Page{Markdown: true}
	fmt.Fprintf(p, "# What is said of Redis locks, put to the test\n\n")
	fmt.Fprintf(p, "Written by `lockbench claims -o markdown=docs/CLAIMS.md` on %s: %s.\n", d.Started.UTC().Format("2006-01-02"), p.Text(results.Setup(d.Tool, d.Environment, d.Redis)))
	fmt.Fprintf(p, "%s\n\n| # | claim | verdict |\n| ---: | --- | --- |\n", d.tally())
	for _, c := range d.Claims {
		fmt.Fprintf(p, "| [%s](#claim-%s) | %s | %s |\n", c.Name, c.Name, p.Text(c.Says), c.Verdict)
	}
	for _, c := range d.Claims {
		fmt.Fprintf(p, "\n<a id=\"claim-%s\"></a>\n\n## %s. %s\n\n**%s**\n", c.Name, c.Name, p.Text(c.Says), c.Verdict)
		for _, note := range c.notes() {
			p.Remark("", note)
		}
		if len(c.Figures) > 0 {
			fmt.Fprintf(p, "\n| figure | came to | is to be | |\n| --- | ---: | --- | --- |\n")
		}
		for _, f := range c.Figures {
			cells := f.cells()
			for i := range cells {
				cells[i] = p.Text(cells[i])
			}
			fmt.Fprintf(p, "| %s |\n", strings.Join(cells, " | "))
		}
		fmt.Fprintln(p)
		for _, run := range c.Runs {
			p.Command(run.Command)
		}
		for i, test := range c.Tests {
			if i == 0 {
				fmt.Fprintf(p, "\nTests that show it too:\n\n")
			}
			fmt.Fprintf(p, "- `%s`\n", test)
		}
	}
	if err := p.Save(w); err != nil {
		return fmt.Errorf("write claims: %w", err)
	}
	return nil
}
