package advise

import (
	"fmt"
	"io"

	"github.com/olekukonko/tablewriter/tw"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
)

// WriteTable writes the document for people.
func WriteTable(w io.Writer, d *Document, color bool) error {
	p := &layout.Page{Paint: layout.Paint(color)}
	p.Entry("lockbench", words.Dotted(d.Tool.Version, d.Started.UTC().Format("2006-01-02 15:04 MST")))
	return d.write(w, p)
}

// WriteMarkdown writes the document as a page.
func WriteMarkdown(w io.Writer, d *Document) error {
	p := &layout.Page{Markdown: true}
	p.WriteString("# Which lock\n\n")
	return d.write(w, p)
}

func (d *Document) write(w io.Writer, p *layout.Page) error {
	p.Entry("for", string(d.For))
	p.Entry("workload", d.Workload.Describe())
	p.Entry("redis", d.Redis.Describe())
	p.Entry("machine", d.Environment.Describe())
	switch c := d.Choice; {
	case c != nil:
		p.Section("Choice", c.Name+": "+c.Summary)
		if c.Take != "" {
			p.Point("take", c.Take)
		}
		p.Point("right if", c.RightIf)
		if c.Library != nil {
			p.Point("best third-party library", c.Library.String()+", measured as "+c.Library.Strategy)
		}
	case d.Interrupted:
		p.Section("Choice", "none: it was interrupted")
	default:
		p.Section("Choice", "none: nothing that was measured may be recommended")
	}
	if err := d.ranking(p); err != nil {
		return fmt.Errorf("draw advice: %w", err)
	}
	if len(d.Notes) > 0 {
		p.Section("Notes", "")
	}
	for _, s := range d.Notes {
		p.Point("", s.Text)
	}
	if len(d.LeftOut) > 0 {
		p.Section("Left out", "")
	}
	for _, left := range d.LeftOut {
		p.Point(left.Strategy, left.Why)
	}
	if len(d.Commands) > 0 {
		p.Section("Again", "")
	}
	for _, command := range d.Commands {
		p.Command(command)
	}
	return p.Save(w, "advice")
}

// ranking draws the measured strategies in their order, and why the others come after the first.
func (d *Document) ranking(p *layout.Page) error {
	if len(d.Ranking) == 0 {
		return nil
	}
	rows, align := [][]string{{"ranking", "claims"}}, []tw.Align{tw.AlignLeft, tw.AlignLeft}
	for _, f := range d.Ranking[0].Figures {
		rows[0], align = append(rows[0], p.Text(f.Metric)), append(align, tw.AlignRight)
	}
	for _, c := range d.Ranking {
		row := []string{p.Text(c.Name), p.Text(c.Verdict)}
		for _, f := range c.Figures {
			row = append(row, p.Text(f.Value.Text(f.Unit)))
		}
		rows = append(rows, row)
	}
	if p.Markdown {
		p.Section("Ranking", "")
	} else {
		p.WriteByte('\n')
	}
	if err := p.Grid(align, rows); err != nil {
		return err
	}
	if p.Markdown {
		p.WriteByte('\n')
	}
	for _, c := range d.Ranking {
		if c.Why != "" {
			p.Point(c.Name, c.Why)
		}
	}
	how := "smallest–largest"
	if d.Rounds >= 6 {
		how = "95 % interval"
	}
	p.Remark("", fmt.Sprintf("Ratios are medians (%s) over %s in pairs; one counts from 1.1 times on, if its interval excludes 1.",
		how, words.Count(d.Rounds, "round")))
	return nil
}
