package layout

import (
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// Width is how many columns of a terminal a page takes.
const Width = 120

// Wrap breaks text into lines of at most width columns, after spaces and
// commas, and within a word only when it is longer than a line. Lines after the
// first are indented.
func Wrap(text string, width int, indent string) []string {
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
	return "  " + strings.Join(Wrap(mark+text, Width-2, indent), "\n  ")
}

// Escape keeps what Markdown would take for its own.
func Escape(text string) string {
	return strings.NewReplacer("\\", `\\`, "|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "#", `\#`).Replace(text)
}
