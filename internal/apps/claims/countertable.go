package claims

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/olekukonko/tablewriter/tw"
)

// howToRead explains the table of counter-cases.
const howToRead = "Each figure of a claim is measured twice: as the claim has it, and with a counter-case, with which it is to come out on the other side of its limit. " +
	"A figure that comes out on the same side would say the same of every lock, and nothing of the claim."

// counterColumns is the table's header.
var counterColumns = []string{"claim", "figure", "limit", "without", "counter-case", "with", "came out"}

// cells returns a case as a row of the table.
func (c CounterCase) cells() []string {
	out := "as it must"
	if !c.AsItMust {
		out = "did not"
	}
	return []string{
		c.Claim, c.Without.What, c.Without.wanted(), c.Without.cameTo() + " " + string(c.Without.Outcome),
		c.With.What, c.With.cameTo() + " " + string(c.With.Outcome), out,
	}
}

// tally counts the cases.
func (d *CounterDocument) tally() string {
	text := fmt.Sprintf("%s, %d did not come out as they must", words.Count(len(d.Cases), "counter-case"), len(d.Failed()))
	if d.Interrupted {
		text += "; interrupted: cases are missing"
	}
	return text
}

// notes returns why claims are inconclusive, each reason once.
func (d *CounterDocument) notes() []string {
	var all []string
	for _, c := range d.Cases {
		for _, why := range c.Why {
			if note := "claim " + c.Claim + ": " + why; !slices.Contains(all, note) {
				all = append(all, note)
			}
		}
	}
	return all
}

// WriteCounterTable writes the document for people, a block for each figure.
func WriteCounterTable(w io.Writer, d *CounterDocument, color bool) error {
	p := &layout.Page{Paint: layout.Paint(color)}
	fmt.Fprintln(p, d.Setup())
	fmt.Fprintln(p, strings.Join(layout.Wrap(howToRead, layout.Width, ""), "\n"))
	for _, c := range d.Cases {
		cells := c.cells()
		out := p.Green(cells[6])
		if !c.AsItMust {
			out = p.Red(cells[6])
		}
		fmt.Fprintf(p, "\n%s  %s  %s (%s)\n", p.Bold(cells[0]), out, cells[1], cells[2])
		p.Columns([][]string{{"without", cells[3]}, {"with " + cells[4], cells[5]}})
	}
	fmt.Fprintln(p)
	for _, note := range d.notes() {
		p.Remark("! ", note)
	}
	fmt.Fprintf(p, "%s\n", d.tally())
	return p.Save(w, "counter-cases")
}

// WriteCounterMarkdown writes the document as a page with one table.
func WriteCounterMarkdown(w io.Writer, d *CounterDocument) error {
	p := &layout.Page{Markdown: true}
	fmt.Fprintf(p, "# The counter-cases of the claims\n\nWritten by `lockbench claims --counter`.\n\n")
	writeHead(p, d.Head)
	fmt.Fprintf(p, "\n%s\n\n%s\n\n", howToRead, d.tally())
	rows := [][]string{counterColumns}
	for _, c := range d.Cases {
		rows = append(rows, texts(p, c.cells()))
	}
	left := tw.AlignLeft
	if err := p.Grid([]tw.Align{tw.AlignRight, left, left, left, left, left, left}, rows); err != nil {
		return fmt.Errorf("write counter-cases: %w", err)
	}
	for _, note := range d.notes() {
		p.Remark("", note)
	}
	return p.Save(w, "counter-cases")
}
