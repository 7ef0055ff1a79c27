package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
)

// labelWidth is the room for a heading's or a note's first word.
const labelWidth = 11

// entry writes a line that starts with a word to find it by, wrapped below
// itself; nothing when there is nothing to say. A word that begins with "!" stands out.
func (p *page) entry(label, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if text == "" {
		return
	}
	if p.markdown {
		p.item(label, text)
		return
	}
	lines := wrap(text, tableWidth-labelWidth, "")
	for i, line := range lines {
		word := strings.Repeat(" ", labelWidth)
		if i == 0 {
			word = fmt.Sprintf("%-*s", labelWidth, label)
		}
		if strings.HasPrefix(word, "!") {
			word = p.paint.red(word)
		}
		fmt.Fprintf(p, "%s%s\n", word, line)
	}
}

// heading says what was measured, on what, and what that could do at best.
func (p *page) heading(r *results.Report) {
	parts := []string{r.Tool.Version, plural(r.Rounds, "run") + " of each strategy"}
	if len(r.Parts) == 0 && r.Workload.Seed != 0 { // generators have one each
		parts = append(parts, fmt.Sprintf("seed %d", r.Workload.Seed))
	}
	if !r.Started.IsZero() {
		parts = append(parts, r.Started.UTC().Format("2006-01-02 15:04 MST"))
	}
	p.entry("lockbench", "%s", join(parts...))
	for _, line := range r.Conditions() {
		p.entry(line[0], "%s", line[1])
	}
}

// join puts a dot between what is not empty.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " · ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
