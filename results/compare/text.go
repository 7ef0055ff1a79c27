package compare

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lockbench/lockbench/internal/jsonio"
)

// WriteText writes the comparison for a terminal.
func WriteText(w io.Writer, c *Comparison, color bool) error {
	var b bytes.Buffer
	for _, line := range c.conditions() {
		fmt.Fprintf(&b, "%-11s%s\n", line[0], line[1])
	}
	for _, s := range c.Strategies {
		fmt.Fprintf(&b, "\n%s: %s\n", s.Name, s.Verdict)
		// Every row has the same cells. The verdict, which may have colours, follows the last one.
		columns := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(columns, "\t"+strings.Join(c.header(), "\t")+"\t")
		for _, r := range s.Results {
			fmt.Fprintln(columns, pad(r.Label)+"\t"+strings.Join(c.row(r), "\t")+"\t  "+paint(r.Verdict, color))
		}
		if err := columns.Flush(); err != nil {
			return fmt.Errorf("lay the comparison out: %w", err)
		}
	}
	fmt.Fprintf(&b, "\n%-11s%s\n", "verdict", c.Headline())
	for i, line := range c.remarks() {
		label := ""
		if i == 0 {
			label = "read"
		}
		fmt.Fprintf(&b, "%-11s%s\n", label, line)
	}
	return jsonio.WriteText(w, "comparison", b.Bytes())
}

// labelWidth is the width of the longest label.
const labelWidth = len("futile wake-ups per acq")

// pad aligns labels to the left in a table whose cells are aligned to the right.
func pad(label string) string { return fmt.Sprintf("%-*s", labelWidth, label) }

// header returns the columns after the metric.
func (c *Comparison) header() []string {
	if c.Method == MethodPaired {
		return []string{"base", "head", "change", c.confidence() + " interval", "p", "finds", "pairs"}
	}
	return []string{"base", "head", "change", c.confidence() + " interval", "p", "sessions"}
}

func (c *Comparison) row(r Result) []string {
	cells := []string{r.figure(r.Base), r.figure(r.Head), percent(r.Delta), r.interval(), r.p()}
	if c.Method == MethodPaired {
		cells = append(cells, percent(r.Detectable))
	}
	return append(cells, r.number(c.Method))
}

func paint(v Verdict, color bool) string {
	code := map[Verdict]string{Worse: "31;1", Better: "32;1", Undecided: "33"}[v]
	if !color || code == "" {
		return string(v)
	}
	return "\x1b[" + code + "m" + string(v) + "\x1b[0m"
}

// Glance writes one pair in a line: the primary metric of each strategy under both builds, without
// a verdict.
func Glance(base, head Side, rules Rules) string {
	primary := rules.ordered()[0]
	var parts []string
	for _, name := range base.titles() {
		r := newResult(primary, rules, base.sessions(primary, name), head.sessions(primary, name))
		if r == nil {
			parts = append(parts, name+" nothing that can be compared")
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %s against %s", name, r.figure(r.Base), r.figure(r.Head)))
	}
	return strings.Join(parts, " · ")
}
