package render

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter/tw"

	"github.com/lockbench/lockbench/results"
)

// section is a part of the advice: a heading, what stands beside it, and its
// sentences.
type section struct {
	title, beside string
	sentences     []results.Sentence
}

// adviceSections are the advice in the order in which it is read.
func adviceSections(a *results.Advice) []section {
	var all []section
	switch {
	case a.Choice != nil:
		all = append(all, section{"Choice", a.Choice.Name + ": " + a.Choice.Summary, a.Choice.Reasons})
	case a.Interrupted:
		all = append(all, section{"Choice", "none: it was interrupted", nil})
	default:
		all = append(all, section{"Choice", "none: nothing that was measured may be recommended", nil})
	}
	if a.RunnerUp != nil {
		all = append(all, section{"Runner-up", a.RunnerUp.Name + ": " + a.RunnerUp.Summary, a.RunnerUp.Reasons})
	}
	if len(a.Before) > 0 {
		all = append(all, section{"Before a lock", "", a.Before})
	}
	if len(a.Cautions) > 0 {
		all = append(all, section{"Caution", "", a.Cautions})
	}
	return all
}

// adviceLegend says how to read ratios.
func adviceLegend(a *results.Advice) string {
	how := "smallest–largest"
	if a.Rounds >= 6 {
		how = "95 % interval"
	}
	return fmt.Sprintf("Ratios say how many times as good it is, as the median (%s) over %s in pairs; equal is what is less than 1.1 times, whose interval holds 1, or what too few rounds tell.", how, plural(a.Rounds, "round"))
}

// adviceHead are the lines that say what was asked and measured.
func adviceHead(a *results.Advice) [][2]string {
	return [][2]string{
		{"for", string(a.For)},
		{"workload", a.Workload.Describe()},
		{"redis", a.Redis.Describe()},
		{"machine", a.Environment.Describe()},
	}
}

// adviceRows are the measured strategies' figures, headings first.
func adviceRows(a *results.Advice) [][]string {
	if len(a.Measured) == 0 {
		return nil
	}
	head := []string{"measured", "claims"}
	for _, f := range a.Measured[0].Figures {
		head = append(head, f.Metric)
	}
	rows := [][]string{head}
	for _, c := range a.Measured {
		row := []string{c.Name, c.Verdict}
		for _, f := range c.Figures {
			row = append(row, f.Value.Text(f.Unit))
		}
		rows = append(rows, row)
	}
	return rows
}

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
	page := &page{paint: paint(opts.Color)}
	page.entry("lockbench", "%s", join(a.Tool.Version, a.Started.UTC().Format("2006-01-02 15:04 MST")))
	for _, line := range adviceHead(a) {
		page.entry(line[0], "%s", line[1])
	}
	for _, s := range adviceSections(a) {
		fmt.Fprintf(page, "\n%s\n", page.paint.bold(strings.TrimSpace(strings.ToUpper(s.title)+"  "+s.beside)))
		for _, sentence := range s.sentences {
			fmt.Fprintln(page, hanging("· ", sentence.Text, "  "))
		}
	}
	if err := page.adviceTable(adviceRows(a)); err != nil {
		return fmt.Errorf("draw advice: %w", err)
	}
	if len(a.Measured) > 0 {
		fmt.Fprintln(page, hanging("", adviceLegend(a), ""))
	}
	if out := notChosen(a); len(out) > 0 {
		fmt.Fprintf(page, "\n%s\n", page.paint.bold("LEFT OUT"))
		for _, left := range out {
			fmt.Fprintln(page, hanging("· ", left.Strategy+": "+left.Why, "  "))
		}
	}
	if len(a.Commands) > 0 {
		fmt.Fprintf(page, "\n%s\n", page.paint.bold("AGAIN"))
	}
	for _, command := range a.Commands {
		fmt.Fprintln(page, hanging("$ ", command, "    "))
	}
	if err := writeTrimmed(w, page.String()); err != nil {
		return fmt.Errorf("write advice: %w", err)
	}
	return nil
}

// adviceTable draws rows whose figures stand on the right.
func (p *page) adviceTable(rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	var drawn bytes.Buffer
	align := []tw.Align{tw.AlignLeft, tw.AlignLeft}
	for range rows[0][2:] {
		align = append(align, tw.AlignRight)
	}
	table := newTable(&drawn, align)
	table.Header(rows[0])
	for _, row := range rows[1:] {
		if err := table.Append(row); err != nil {
			return err
		}
	}
	if err := table.Render(); err != nil {
		return err
	}
	p.WriteByte('\n')
	p.Write(drawn.Bytes())
	return nil
}

// WriteAdviceMarkdown writes it as a page.
func WriteAdviceMarkdown(w io.Writer, a *results.Advice) error {
	page := &page{list: true}
	fmt.Fprintf(page, "# Which lock\n\n")
	for _, line := range adviceHead(a) {
		page.entry(line[0], "%s", line[1])
	}
	for _, s := range adviceSections(a) {
		title := s.title
		if s.beside != "" {
			title += ": " + s.beside
		}
		fmt.Fprintf(page, "\n## %s\n\n", markdownText(title))
		for _, sentence := range s.sentences {
			fmt.Fprintf(page, "- %s\n", markdownText(sentence.Text))
		}
	}
	if rows := adviceRows(a); len(rows) > 0 {
		fmt.Fprintf(page, "\n## Measured\n\n")
		rule := []string{"---", "---"}
		for i, row := range rows {
			for j := range row {
				row[j] = markdownText(row[j])
			}
			page.markdownRow(row)
			if i == 0 {
				for range len(row) - len(rule) {
					rule = append(rule, "---:")
				}
				page.markdownRow(rule)
			}
		}
		fmt.Fprintf(page, "\n%s\n", markdownText(adviceLegend(a)))
	}
	if out := notChosen(a); len(out) > 0 {
		fmt.Fprintf(page, "\n## Left out\n\n")
		for _, left := range out {
			fmt.Fprintf(page, "- **%s**: %s\n", markdownText(left.Strategy), markdownText(left.Why))
		}
	}
	if len(a.Commands) > 0 {
		fmt.Fprintf(page, "\n## Again\n\n")
	}
	for _, command := range a.Commands {
		fmt.Fprintf(page, "    %s\n", command)
	}
	if _, err := w.Write(page.Bytes()); err != nil {
		return fmt.Errorf("write advice: %w", err)
	}
	return nil
}
