package advise

import (
	"fmt"
	"io"

	"github.com/olekukonko/tablewriter/tw"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
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
	switch {
	case d.Choice != nil:
		p.Section("Choice", d.Choice.Name+": "+d.Choice.Summary)
		if d.Headline != nil {
			for _, line := range d.Headline.lines() {
				p.Point(line[0], line[1])
			}
		}
		points(p, d.Choice.Reasons)
	case d.Interrupted:
		p.Section("Choice", "none: it was interrupted")
	default:
		p.Section("Choice", "none: nothing that was measured may be recommended")
	}
	section(p, "Only if", d.Assumes)
	if d.RunnerUp != nil {
		p.Section("Runner-up", d.RunnerUp.Name+": "+d.RunnerUp.Summary)
		points(p, d.RunnerUp.Reasons)
	}
	section(p, "Before a lock", d.Before)
	section(p, "Caution", d.Cautions)
	if err := d.measured(p); err != nil {
		return fmt.Errorf("draw advice: %w", err)
	}
	if out := d.notChosen(); len(out) > 0 {
		p.Section("Left out", "")
		for _, left := range out {
			p.Point(left.Strategy, left.Why)
		}
	}
	if len(d.Commands) > 0 {
		p.Section("Again", "")
	}
	for _, command := range d.Commands {
		p.Command(command)
	}
	return p.Save(w, "advice")
}

func section(p *layout.Page, title string, all []Sentence) {
	if len(all) > 0 {
		p.Section(title, "")
	}
	points(p, all)
}

func points(p *layout.Page, all []Sentence) {
	for _, s := range all {
		p.Point("", s.Text)
	}
}

// measured draws the strategies' figures, and explains the ratios.
func (d *Document) measured(p *layout.Page) error {
	if len(d.Measured) == 0 {
		return nil
	}
	rows, align := [][]string{{"measured", "claims"}}, []tw.Align{tw.AlignLeft, tw.AlignLeft}
	for _, f := range d.Measured[0].Figures {
		rows[0], align = append(rows[0], p.Text(f.Metric)), append(align, tw.AlignRight)
	}
	for _, c := range d.Measured {
		row := []string{p.Text(c.Name), p.Text(c.Verdict)}
		for _, f := range c.Figures {
			row = append(row, p.Text(f.Value.Text(f.Unit)))
		}
		rows = append(rows, row)
	}
	if p.Markdown {
		p.Section("Measured", "")
	} else {
		p.WriteByte('\n')
	}
	if err := p.Grid(align, rows); err != nil {
		return err
	}
	how := "smallest–largest"
	if d.Rounds >= 6 {
		how = "95 % interval"
	}
	p.Remark("", fmt.Sprintf("Ratios say how many times as good it is, as the median (%s) over %s in pairs. By less than 1.1 times is slightly, and counts for nothing; not told apart are those whose interval holds 1, or with too few rounds.", how, words.Count(d.Rounds, "round")))
	return nil
}

// notChosen returns what was not chosen, measured or not, with the reason.
func (d *Document) notChosen() []results.LeftOut {
	var all []results.LeftOut
	for _, c := range d.Measured {
		if c.Out != "" {
			all = append(all, results.LeftOut{Strategy: c.Name, Why: c.Out})
		}
	}
	return append(all, d.LeftOut...)
}
