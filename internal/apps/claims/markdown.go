package claims

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
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
		fmt.Fprintf(p, "| [%s](#%s) | %s | %s |\n", p.Text(c.Name), anchor(c.Name), p.Text(c.Says), c.Verdict)
	}
	for _, c := range d.Claims {
		fmt.Fprintf(p, "\n<a id=\"%s\"></a>\n\n## %s. %s\n\n**%s**\n",
			anchor(c.Name), p.Text(c.Name), p.Text(c.Says), c.Verdict)
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
			fmt.Fprintf(p, "- %s\n", layout.Code(test))
		}
	}
	return p.Save(w, "claims")
}

// anchor returns the place of a claim on the page.
func anchor(claim string) string {
	return "claim-" + strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '-'
	}, claim)
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
	fmt.Fprintf(p, "\n%s, medians of the rounds: %s", layout.Code(run.Name), words.Count(s.Runs, "run"))
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
		fmt.Fprintf(p, "| %s |", layout.Code(one.Name))
		for _, f := range one.Figures {
			fmt.Fprintf(p, " %s |", f.Value.Text(f.Unit))
		}
		fmt.Fprintln(p)
	}
}

// method explains how the figures of these claims were obtained and judged, in paragraphs.
func (d *Document) method() []string {
	var all []string
	if len(d.Libraries) > 0 {
		all = append(all, "Libraries: "+strings.Join(d.Libraries, ", ")+".")
	}
	if d.anyFigure(func(f FigureResult) bool { return f.Judged != "" }) {
		all = append(all, fmt.Sprintf("With its interval stands the median of the rounds. The interval has the true median in it with %s %% or more (order statistics): with 7 rounds it is from the smallest to the largest, "+
			"with 11 from the second-smallest to the second-largest, with 14 from the third. A limit is held if the interval's worse end keeps it, or where it says median, if that does; else it is missed. "+
			"Rounds that cannot be trusted are left out. What has no limit is reported.", results.Plain(confidence*100)))
	}
	if d.anyFigure(func(f FigureResult) bool { return f.Best != nil }) {
		all = append(all, "The strategies of a run take turns within a round, each round in an order of its own. A ratio to the best is to the best of the same round; behind it stands who that was, in how many rounds.")
	}
	return all
}

// anyFigure says whether such is true for a figure of the claims.
func (d *Document) anyFigure(such func(FigureResult) bool) bool {
	return slices.ContainsFunc(d.Claims, func(c Result) bool { return slices.ContainsFunc(c.Figures, such) })
}
