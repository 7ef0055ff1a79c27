package layout

import (
	"regexp"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// Width is the default width of a page on a terminal, in columns.
const Width = 120

// TextWidth returns how many columns of a terminal a line occupies. Colour codes occupy none.
func TextWidth(line string) int {
	return displaywidth.Options{ControlSequences: true}.String(line)
}

// pieces matches the parts of a text between which a line may break.
var pieces = regexp.MustCompile(`[^ ,]*[ ,]|[^ ,]+`)

// Wrap breaks text into lines of at most width columns, after spaces and commas. It
// breaks a word only if it is longer than a line. It indents the lines after the first.
func Wrap(text string, width int, indent string) []string {
	var lines []string
	line, used, empty := "", 0, true
	flush := func() {
		lines = append(lines, strings.TrimRight(line, " "))
		line, used, empty = indent, TextWidth(indent), true
	}
	for _, word := range pieces.FindAllString(strings.Join(strings.Fields(text), " "), -1) {
		size := TextWidth(strings.TrimRight(word, " "))
		if !empty && used+size > width {
			flush()
		}
		for _, r := range word {
			size := TextWidth(string(r))
			if used+size > width && r != ' ' {
				flush()
			}
			line, used, empty = line+string(r), used+size, false
		}
	}
	return append(lines, strings.TrimRight(line, " "))
}

// hanging wraps a text to the page's width. It puts a mark before the first line and an indent before the others.
func (p *Page) hanging(mark, text, indent string) string {
	return "  " + strings.Join(Wrap(mark+text, p.textWidth()-2, indent), "\n  ")
}

// Escape escapes the characters that Markdown interprets. It also prevents sites that show Markdown from turning
// addresses, @mentions and #references into links. It inserts a zero-width space after @ and #, because only a
// character between the sign and the name prevents such a link.
func Escape(text string) string { return escapes.Replace(text) }

var escapes = strings.NewReplacer("\\", `\\`, "|", `\|`, "\n", " ", "<", "&lt;", "&", "&amp;",
	"*", `\*`, "_", `\_`, "`", "\\`",
	"[", `\[`, "]", `\]`, "!", `\!`, "://", `\://`, "www.", `www\.`, "@", "\\@\u200b", "#", "\\#\u200b")

// Code returns text as a code span of Markdown. It replaces characters that would end the span or the cell of a table.
func Code(text string) string {
	return "`" + strings.NewReplacer("`", "'", "|", `\|`, "\n", " ").Replace(text) + "`"
}

// Paint selects whether its methods add colour codes to a text (true) or return the text unchanged (false).
type Paint bool

// Bold marks text as a heading.
func (p Paint) Bold(s string) string { return p.with("\x1b[1m", s) }

// Red marks text as a fault.
func (p Paint) Red(s string) string { return p.with("\x1b[1;31m", s) }

// Green marks text as good.
func (p Paint) Green(s string) string { return p.with("\x1b[32m", s) }

// Yellow marks text as a warning, between good and faulty.
func (p Paint) Yellow(s string) string { return p.with("\x1b[33m", s) }

// off is the escape sequence that ends a colour.
const off = "\x1b[0m"

// with adds the colour code to each line separately, as the cells of a table require.
func (p Paint) with(code, s string) string {
	if !p {
		return s
	}
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = code + line + off
		}
	}
	return strings.Join(lines, "\n")
}
