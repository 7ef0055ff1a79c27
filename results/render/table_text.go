package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"

	"github.com/lockbench/lockbench/results"
)

// wrap breaks text into lines of at most width columns, after spaces and
// commas, and within a word only when it is longer than a line. Lines after the
// first are indented.
func wrap(text string, width int, indent string) []string {
	var lines []string
	line, used, empty := "", 0, true
	flush := func() {
		lines = append(lines, strings.TrimRight(line, " "))
		line, used, empty = indent, twwidth.Width(indent), true
	}
	for word := range words(strings.Join(strings.Fields(text), " ")) {
		size := twwidth.Width(strings.TrimRight(word, " "))
		if !empty && used+size > width {
			flush()
		}
		for _, r := range word {
			size := twwidth.Width(string(r))
			if used+size > width && r != ' ' {
				flush()
			}
			line, used, empty = line+string(r), used+size, false
		}
	}
	return append(lines, strings.TrimRight(line, " "))
}

// words are the pieces between which a line may break.
func words(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for text != "" {
			end := strings.IndexAny(text, " ,") + 1
			if end == 0 {
				end = len(text)
			}
			if !yield(text[:end]) {
				return
			}
			text = text[end:]
		}
	}
}

// hanging is a text below a heading, as wide as a table: behind a mark, and indented
// from the second line on.
func hanging(mark, text, indent string) string {
	return "  " + strings.Join(wrap(mark+text, tableWidth-2, indent), "\n  ")
}

// writeTrimmed writes a text without the blanks that columns leave at the ends of
// lines.
func writeTrimmed(w io.Writer, text string) error {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
}

// conditions are what was measured with and on, in one line.
func conditions(t results.Tool, e results.Environment, r results.Redis) string {
	return fmt.Sprintf("%s %s  %s/%s, %d CPUs, Go %s  Redis %s (%s)",
		t.Name, t.Version, e.OS, e.Arch, e.CPUs, strings.TrimPrefix(e.Go, "go"), r.Version, r.Source)
}

// paint colours words, or leaves them as they are.
type paint bool

func (p paint) bold(s string) string   { return p.with("\x1b[1m", s) }
func (p paint) red(s string) string    { return p.with("\x1b[1;31m", s) }
func (p paint) green(s string) string  { return p.with("\x1b[32m", s) }
func (p paint) yellow(s string) string { return p.with("\x1b[33m", s) }

// with paints line by line, for a table's cells.
func (p paint) with(code, s string) string {
	if !p {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = code + line + "\x1b[0m"
		}
	}
	return strings.Join(lines, "\n")
}

// verdict paints a cell that says how the audit went.
func (p paint) verdict(cell string) string {
	switch {
	case strings.HasPrefix(cell, "BROKEN"), strings.HasPrefix(cell, "INVALID"):
		return p.red(cell)
	case strings.Contains(cell, "unsafe"), cell == "no claim":
		return p.yellow(cell)
	case cell == "held":
		return p.green(cell)
	default:
		return cell
	}
}
