package render

import (
	"fmt"
	"io"

	"github.com/olekukonko/tablewriter/tw"

	"github.com/lockbench/lockbench/results"
)

// notChosen are what was not chosen and why, measured or not.
func notChosen(a *results.Advice) []results.LeftOut {
	var all []results.LeftOut
	for _, c := range a.Measured {
		if c.Out != "" {
			all = append(all, results.LeftOut{Strategy: c.Name, Why: c.Out})
		}
	}
	return append(all, a.LeftOut...)
}

// WriteAdviceTable writes it for people.
func WriteAdviceTable(w io.Writer, a *results.Advice, opts TableOptions) error {
	p := &page{paint: paint(opts.Color)}
	p.entry("lockbench", "%s", join(a.Tool.Version, a.Started.UTC().Format("2006-01-02 15:04 MST")))
	return p.advice(w, a)
}

// WriteAdviceMarkdown writes it as a page.
func WriteAdviceMarkdown(w io.Writer, a *results.Advice) error {
	p := &page{markdown: true}
	p.WriteString("# Which lock\n\n")
	return p.advice(w, a)
}

func (p *page) advice(w io.Writer, a *results.Advice) error {
	p.entry("for", "%s", a.For)
	p.entry("workload", "%s", a.Workload.Describe())
	p.entry("redis", "%s", a.Redis.Describe())
	p.entry("machine", "%s", a.Environment.Describe())
	switch {
	case a.Choice != nil:
		p.choice("Choice", a.Choice)
	case a.Interrupted:
		p.section("Choice", "none: it was interrupted")
	default:
		p.section("Choice", "none: nothing that was measured may be recommended")
	}
	if a.RunnerUp != nil {
		p.choice("Runner-up", a.RunnerUp)
	}
	p.sentences("Before a lock", a.Before)
	p.sentences("Caution", a.Cautions)
	if err := p.measured(a); err != nil {
		return fmt.Errorf("draw advice: %w", err)
	}
	if out := notChosen(a); len(out) > 0 {
		p.section("Left out", "")
		for _, left := range out {
			p.point(left.Strategy, left.Why)
		}
	}
	if len(a.Commands) > 0 {
		p.section("Again", "")
	}
	for _, command := range a.Commands {
		p.command(command)
	}
	if err := writeTrimmed(w, p.String()); err != nil {
		return fmt.Errorf("write advice: %w", err)
	}
	return nil
}

func (p *page) choice(title string, c *results.Choice) {
	p.section(title, c.Name+": "+c.Summary)
	for _, s := range c.Reasons {
		p.point("", s.Text)
	}
}

func (p *page) sentences(title string, all []results.Sentence) {
	if len(all) > 0 {
		p.section(title, "")
	}
	for _, s := range all {
		p.point("", s.Text)
	}
}

// measured draws the strategies' figures, and says how to read ratios.
func (p *page) measured(a *results.Advice) error {
	if len(a.Measured) == 0 {
		return nil
	}
	rows, align := [][]string{{"measured", "claims"}}, []tw.Align{tw.AlignLeft, tw.AlignLeft}
	for _, f := range a.Measured[0].Figures {
		rows[0], align = append(rows[0], p.text(f.Metric)), append(align, tw.AlignRight)
	}
	for _, c := range a.Measured {
		row := []string{p.text(c.Name), p.text(c.Verdict)}
		for _, f := range c.Figures {
			row = append(row, p.text(f.Value.Text(f.Unit)))
		}
		rows = append(rows, row)
	}
	how := "smallest–largest"
	if a.Rounds >= 6 {
		how = "95 % interval"
	}
	legend := fmt.Sprintf("Ratios say how many times as good it is, as the median (%s) over %s in pairs; equal is what is less than 1.1 times, whose interval holds 1, or what too few rounds tell.", how, plural(a.Rounds, "round"))
	if p.markdown {
		p.section("Measured", "")
		legend = "\n" + markdownText(legend)
	} else {
		p.WriteByte('\n')
		legend = hanging("", legend, "")
	}
	if err := p.grid(align, rows); err != nil {
		return err
	}
	fmt.Fprintln(p, legend)
	return nil
}
