package claims

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/results"
)

// WriteTable writes it for people: each claim with its verdict, its figures beside what
// they were to be, and the commands that show them again.
func WriteTable(w io.Writer, d *Document, color bool) error {
	p := &layout.Page{Paint: layout.Paint(color)}
	fmt.Fprintln(p, results.Setup(d.Tool, d.Environment, d.Redis))
	for _, c := range d.Claims {
		says := strings.Join(layout.Wrap(c.Says, layout.Width-18, ""), "\n    ")
		fmt.Fprintf(p, "\n%s  %s  %s\n", p.Bold(c.Name), c.Verdict.painted(p.Paint), says)
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
	if err := p.Save(w); err != nil {
		return fmt.Errorf("write claims: %w", err)
	}
	return nil
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

// notes are what is to be said of the verdict.
func (c Result) notes() []string {
	if c.Qualified != "" {
		return append([]string{c.Qualified}, c.Why...)
	}
	return c.Why
}

// cells are what was expected of a figure and what became of it, as a row.
func (f FigureResult) cells() []string {
	return []string{f.What, f.cameTo(), f.wanted(), string(f.Outcome)}
}

// cameTo is the median of the rounds with their range, or their sum, and in how many
// it is not known.
func (f FigureResult) cameTo() string {
	var known []results.Figure
	for _, v := range f.Values {
		if v != nil {
			known = append(known, *v)
		}
	}
	if len(known) == 0 {
		return results.NotKnown
	}
	missing := ""
	if n := len(f.Values) - len(known); n > 0 {
		missing = fmt.Sprintf(", not known in %d of %d rounds", n, len(f.Values))
	}
	if f.Total {
		var sum results.Figure
		for _, v := range known {
			sum.Value, sum.AtLeast = sum.Value+v.Value, sum.AtLeast || v.AtLeast
		}
		return f.text(sum) + " in all" + missing
	}
	least, most := f.text(slices.MinFunc(known, byValue)), f.text(slices.MaxFunc(known, byValue))
	if least == most {
		return least + missing
	}
	return fmt.Sprintf("%s (%s … %s)%s", f.text(*results.MedianFigure(known)), least, most, missing)
}

func (f FigureResult) text(v results.Figure) string {
	text := f.Unit.Signed(v.Value)
	if v.AtLeast {
		return "≥ " + text
	}
	return text
}

func (f FigureResult) wanted() string {
	if f.Opposite == "" {
		return f.Is
	}
	return f.Is + ", not " + f.Opposite
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
