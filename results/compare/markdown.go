package compare

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/internal/layout"
)

// WriteMarkdown writes the comparison as a comment on a pull request: the verdict and the changes
// are visible, the rest is folded.
func WriteMarkdown(w io.Writer, c *Comparison) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "### lockbench: %s\n\n", layout.Escape(c.Headline()))
	for _, broken := range c.Broken {
		fmt.Fprintf(&b, "**A claimed guarantee did not hold:** %s\n\n", layout.Escape(broken))
	}
	changed := func(r Result) bool { return r.Verdict == Worse || r.Verdict == Better }
	c.table(&b, func(r Result) bool { return changed(r) || r.Metric == c.Rules.Primary })
	fmt.Fprint(&b, "<details><summary>All metrics, and how they were compared</summary>\n\n")
	c.table(&b, func(Result) bool { return true })
	for _, line := range c.conditions() {
		fmt.Fprintf(&b, "- %s: %s\n", line[0], layout.Escape(line[1]))
	}
	for _, line := range c.remarks() {
		fmt.Fprintf(&b, "- %s\n", layout.Escape(line))
	}
	fmt.Fprint(&b, "\n</details>\n")
	return jsonio.WriteText(w, "comparison", b.Bytes())
}

// table writes the wanted results.
func (c *Comparison) table(b *bytes.Buffer, wanted func(Result) bool) {
	header := append(append([]string{"strategy", "metric"}, c.header()...), "verdict")
	rule := slices.Repeat([]string{"---:"}, len(header))
	rule[0], rule[1], rule[len(rule)-1] = "---", "---", "---"
	fmt.Fprintf(b, "| %s |\n|%s|\n", strings.Join(header, " | "), strings.Join(rule, "|"))
	for _, s := range c.Strategies {
		for _, r := range s.Results {
			if !wanted(r) {
				continue
			}
			verdict := string(r.Verdict)
			if r.Verdict == Worse || r.Verdict == Better {
				verdict = "**" + verdict + "**"
			}
			cells := append([]string{s.Name, r.Label}, c.row(r)...)
			for i := range cells {
				cells[i] = layout.Escape(cells[i])
			}
			fmt.Fprintf(b, "| %s | %s |\n", strings.Join(cells, " | "), verdict)
		}
	}
	b.WriteString("\n")
}
