package layout

import (
	"strings"

	"github.com/olekukonko/tablewriter/pkg/twwidth"
)

// Width is the default width of a page on a terminal, in columns.
const Width = 120

// Wrap breaks text into lines of at most width columns, after spaces and commas. It
// breaks a word only if it is longer than a line. It indents the lines after the first.
func Wrap(text string, width int, indent string) []string {
	var lines []string
	line, used, empty := "", 0, true
	flush := func() {
		lines = append(lines, strings.TrimRight(line, " "))
		line, used, empty = indent, twwidth.Width(indent), true
	}
	for word := range breakable(strings.Join(strings.Fields(text), " ")) {
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

// broken breaks a command line between its words into lines of at most width columns, and 4
// fewer for the later ones, which are indented. A longer word has its own line.
func broken(line string, width int) []string {
	var lines []string
	now, room := "", width
	for _, word := range arguments(line) {
		switch {
		case now == "":
			now = word
		case twwidth.Width(now)+1+twwidth.Width(word) > room:
			lines, now, room = append(lines, now), word, width-4
		default:
			now += " " + word
		}
	}
	return append(lines, now)
}

// arguments returns a command line's words with their quotes. An option with its value is one
// word, and so is a comment.
func arguments(line string) []string {
	var all []string
	for _, word := range pieces(line) {
		if last := len(all) - 1; last >= 0 && strings.HasPrefix(all[last], "-") && !strings.Contains(all[last], " ") &&
			!strings.HasPrefix(word, "-") && !strings.HasPrefix(word, "#") {
			all[last] += " " + word
			continue
		}
		all = append(all, word)
	}
	return all
}

// pieces returns a command line's words with their quotes; a comment is one word.
func pieces(line string) []string {
	var all []string
	quoted, escaped, from := false, false, 0
	for i, r := range line {
		switch {
		case escaped:
			escaped = false
		case r == '\\' && !quoted:
			escaped = true
		case r == '\'':
			quoted = !quoted
		case r == '#' && !quoted && i > 0 && line[i-1] == ' ':
			return append(all, strings.TrimSpace(line[i:]))
		case r == ' ' && !quoted:
			if i > from {
				all = append(all, line[from:i])
			}
			from = i + 1
		}
	}
	if from < len(line) {
		all = append(all, line[from:])
	}
	return all
}

// breakable yields the pieces between which a line may break.
func breakable(text string) func(func(string) bool) {
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

// hanging wraps a text below a heading to the page's width. It puts a mark before the first
// line and an indent before the others.
func (p *Page) hanging(mark, text, indent string) string {
	return "  " + strings.Join(Wrap(mark+text, p.wide()-2, indent), "\n  ")
}

// Escape escapes the characters that Markdown interprets, and those of which sites that show it make links
// by themselves: addresses, @mentions and #references. Only a character between the sign and the
// name prevents the latter two; this one has no width.
func Escape(text string) string { return escapes.Replace(text) }

var escapes = strings.NewReplacer("\\", `\\`, "|", `\|`, "\n", " ", "<", "&lt;", "&", "&amp;",
	"*", `\*`, "_", `\_`, "`", "\\`",
	"[", `\[`, "]", `\]`, "!", `\!`, "://", `\://`, "www.", `www\.`, "@", "\\@\u200b", "#", "\\#\u200b")

// Code returns text as Markdown's code.
func Code(text string) string {
	return "`" + strings.NewReplacer("`", "'", "|", `\|`, "\n", " ").Replace(text) + "`"
}
