package claims

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
)

// WriteMarkdown writes the document as a page: an overview, then each claim with its figures and commands.
func WriteMarkdown(w io.Writer, d *Document) error {
	p := &layout.Page{Markdown: true}
	fmt.Fprintf(p, "# %s\n\n", p.Text(cmp.Or(d.Title, "What is said of Redis locks, put to the test")))
	fmt.Fprintf(p, "Written by `lockbench claims`; docs/METRICS.md says what the figures mean.\n\n")
	writeHead(p, d.Head)
	for _, text := range d.method() {
		p.Remark("", text)
	}
	fmt.Fprintf(p, "\n%s\n\n| # | claim | verdict |\n| ---: | --- | --- |\n", d.tally())
	for _, c := range d.Claims {
		fmt.Fprintf(p, "| [%s](#claim-%s) | %s | %s |\n", c.Name, c.Name, p.Text(c.Says), c.Verdict)
	}
	for _, c := range d.Claims {
		fmt.Fprintf(p, "\n<a id=\"claim-%s\"></a>\n\n## %s. %s\n\n**%s**\n", c.Name, c.Name, p.Text(c.Says), c.Verdict)
		if c.About != "" {
			p.Remark("", c.About)
		}
		for _, note := range c.notes() {
			p.Remark("", note)
		}
		writeFigures(p, c.Figures)
		fmt.Fprintln(p)
		for _, run := range c.Runs {
			p.Command(run.Command)
		}
		for _, run := range c.Runs {
			writeShown(p, run)
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

// writeHead writes which program made the page, when, and on what.
func writeHead(p *layout.Page, h document.Head) {
	fmt.Fprintf(p, "- %s %s, %s\n- Machine: %s\n- Redis: %s\n",
		h.Tool.Name, h.Tool.Version, h.Started.UTC().Format("2006-01-02 15:04 MST"), p.Text(h.Environment.Describe()), p.Text(h.Redis.Describe()))
}

// texts escapes cells for the page.
func texts(p *layout.Page, cells []string) []string {
	for i := range cells {
		cells[i] = p.Text(cells[i])
	}
	return cells
}

// writeFigures writes a table of figures; it has a column for the best if any figure has one.
func writeFigures(p *layout.Page, all []FigureResult) {
	if len(all) == 0 {
		return
	}
	columns, head, rule := 4, "| figure | came to | is to be | |", "| --- | ---: | --- | --- |"
	if slices.ContainsFunc(all, func(f FigureResult) bool { return f.Best != nil }) {
		columns, head, rule = 5, head+" best (rounds) |", rule+" --- |"
	}
	fmt.Fprintf(p, "\n%s\n%s\n", head, rule)
	for _, f := range all {
		fmt.Fprintf(p, "| %s |\n", strings.Join(texts(p, f.cells()[:columns]), " | "))
	}
}

// writeShown writes a run's figures in addition to the expected ones.
func writeShown(p *layout.Page, run RunResult) {
	s := run.Shown
	if s == nil || len(s.Strategies) == 0 {
		return
	}
	fmt.Fprintf(p, "\n`%s`, medians of the rounds: %s", run.Name, words.Count(s.Runs, "run"))
	if s.LeftOut > 0 {
		fmt.Fprintf(p, ", %d left out because they could not be trusted", s.LeftOut)
	}
	if s.MachineBound > 0 {
		fmt.Fprintf(p, "; in %d the machine set the pace, not the lock", s.MachineBound)
	}
	fmt.Fprint(p, "\n\n|  |")
	for _, f := range s.Strategies[0].Figures {
		fmt.Fprintf(p, " %s |", p.Text(f.Metric))
	}
	fmt.Fprintf(p, "\n| --- |%s\n", strings.Repeat(" ---: |", len(s.Strategies[0].Figures)))
	for _, one := range s.Strategies {
		fmt.Fprintf(p, "| `%s` |", one.Name)
		for _, f := range one.Figures {
			fmt.Fprintf(p, " %s |", f.Value.Text(f.Unit))
		}
		fmt.Fprintln(p)
	}
}
