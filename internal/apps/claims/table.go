package claims

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// WriteTable writes the document for people: each claim with its verdict, its figures with their limits, and
// the commands to repeat it.
func WriteTable(w io.Writer, d *Document, color bool) error {
	p := &layout.Page{Paint: layout.Paint(color)}
	fmt.Fprintln(p, d.Setup())
	for _, text := range d.method() {
		fmt.Fprintln(p, strings.Join(layout.Wrap(text, layout.Width, ""), "\n"))
	}
	for _, c := range d.Claims {
		says := strings.Join(layout.Wrap(c.Says, layout.Width-18, ""), "\n    ")
		fmt.Fprintf(p, "\n%s  %s  %s\n", p.Bold(c.Name), c.Verdict.painted(p.Paint), says)
		if c.About != "" {
			p.Remark("", c.About)
		}
		for _, note := range c.notes() {
			p.Remark("! ", note)
		}
		var rows [][]string
		for _, f := range c.Figures {
			rows = append(rows, f.cells())
		}
		p.Columns(rows)
		for _, run := range c.Runs {
			p.Command(run.Command)
		}
		for _, test := range c.Tests {
			fmt.Fprintf(p, "  test %s\n", test)
		}
	}
	fmt.Fprintf(p, "\n%s\n", d.tally())
	return p.Save(w, "claims")
}

// tally counts the verdicts.
func (d *Document) tally() string {
	var parts []string
	for _, v := range []Verdict{Confirmed, Qualified, Refuted, Inconclusive} {
		n := 0
		for _, claim := range d.Claims {
			if claim.Verdict == v {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	text := strings.Join(parts, ", ")
	if d.Interrupted {
		text = strings.TrimPrefix(text+"; interrupted: claims are missing", "; ")
	}
	return text
}

// notes returns the remarks on the verdict.
func (c Result) notes() []string {
	if c.Qualified != "" {
		return append([]string{c.Qualified}, c.Why...)
	}
	return c.Why
}

// cells returns a figure's row: the expectation, the result and the best.
func (f FigureResult) cells() []string {
	var best []string
	for _, one := range f.winners() {
		best = append(best, fmt.Sprintf("%s (%d)", one.name, one.rounds))
	}
	return []string{f.What, f.cameTo(), f.wanted(), string(f.Outcome), strings.Join(best, ", ")}
}

// cameTo writes the median of the rounds with their range, or their sum, and the number of unknown rounds.
func (f FigureResult) cameTo() string {
	if f.Judged != "" {
		return f.within()
	}
	all := known(f.Values)
	if len(all) == 0 {
		return results.NotKnown
	}
	missing := ""
	if n := len(f.Values) - len(all); n > 0 {
		missing = fmt.Sprintf(", not known in %d of %d rounds", n, len(f.Values))
	}
	if f.Total {
		var sum results.Figure
		for _, v := range all {
			sum.Value, sum.AtLeast = sum.Value+v.Value, sum.AtLeast || v.AtLeast
		}
		return f.text(sum) + " in all" + missing
	}
	least, most := f.text(slices.MinFunc(all, byValue)), f.text(slices.MaxFunc(all, byValue))
	if least == most {
		return least + missing
	}
	return fmt.Sprintf("%s (%s … %s)%s", f.text(*results.MedianFigure(all)), least, most, missing)
}

// within writes the median with its interval, and the number of rounds.
func (f FigureResult) within() string {
	i := f.Interval
	if i == nil {
		return results.NotKnown
	}
	rounds := words.Count(i.Rounds, "round")
	if i.Rounds < len(f.Values) {
		rounds = fmt.Sprintf("%d of %d rounds", i.Rounds, len(f.Values))
	}
	if i.Confidence == 0 {
		rounds += ", too few for an interval"
	}
	return fmt.Sprintf("%s (%s … %s), %s", f.text(i.Median), f.text(i.Low), f.text(i.High), rounds)
}

func (f FigureResult) text(v results.Figure) string {
	text := f.Unit.Signed(v.Value)
	if v.AtLeast {
		return "≥ " + text
	}
	return text
}

func (f FigureResult) wanted() string {
	switch {
	case f.Is == "":
		return results.NotKnown
	case f.Judged == byMedian:
		return "median " + f.Is
	case f.Opposite != "":
		return f.Is + ", not " + f.Opposite
	}
	return f.Is
}

func byValue(a, b results.Figure) int { return cmp.Compare(a.Value, b.Value) }

func (v Verdict) painted(p layout.Paint) string {
	switch v {
	case Confirmed:
		return p.Green(string(v))
	case Refuted:
		return p.Red(string(v))
	default:
		return p.Yellow(string(v))
	}
}
