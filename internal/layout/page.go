// Package layout formats a document: for a terminal, as Markdown or as the body of an HTML page.
package layout

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
)

// Page holds what has been written of a document.
type Page struct {
	bytes.Buffer
	Markdown bool // neither Markdown nor HTML means for a terminal
	HTML     bool
	Wide     int // columns of the terminal; 0 means Width
	Paint        // false for Markdown and HTML

	list string // the HTML list that the last element belongs to; "" is none
}

// flows reports whether the reader's program breaks the lines.
func (p *Page) flows() bool { return p.Markdown || p.HTML }

// within closes the HTML list before, and begins this one.
func (p *Page) within(list, attributes string) {
	if list == p.list {
		return
	}
	if p.list != "" {
		fmt.Fprintf(p, "</%s>\n", p.list)
	}
	if list != "" {
		fmt.Fprintf(p, "<%s%s>\n", list, attributes)
	}
	p.list = list
}

// Width returns how many columns the terminal has, all of which a table may take.
func (p *Page) Width() int { return cmp.Or(p.Wide, Width) }

// textWidth returns the most columns of a line of text: a longer one is hard to read.
func (p *Page) textWidth() int { return min(p.Width(), Width) }

// Text returns a text as the page needs it.
func (p *Page) Text(text string) string {
	if p.Markdown {
		return Escape(text)
	}
	return text
}

// labelWidth is the width of an entry's label.
const labelWidth = 11

// Entry writes a label and a text, which it wraps and indents, or an item of a list. Without
// a label it continues the entry before; for an empty text it writes nothing. A label that
// begins with "!" is red.
func (p *Page) Entry(label, text string) {
	switch {
	case text == "":
	case p.HTML:
		p.within("dl", "")
		if alarm := strings.TrimLeft(label, "! "); alarm != label {
			fmt.Fprintf(p, "<dt class=\"alarm\">%s</dt>", html.EscapeString(alarm))
		} else if label != "" {
			fmt.Fprintf(p, "<dt>%s</dt>", html.EscapeString(label))
		}
		fmt.Fprintf(p, "<dd>%s</dd>\n", html.EscapeString(text))
	case p.Markdown && label == "":
		fmt.Fprintf(p, "  %s\n", Escape(text))
	case p.Markdown:
		fmt.Fprintf(p, "- **%s** %s\n", Escape(label), Escape(text))
	default:
		for i, line := range Wrap(text, p.textWidth()-labelWidth, "") {
			word := strings.Repeat(" ", labelWidth)
			if i == 0 {
				word = fmt.Sprintf("%-*s", labelWidth, label)
			}
			if strings.HasPrefix(word, "!") {
				word = p.Red(word)
			}
			fmt.Fprintf(p, "%s%s\n", word, line)
		}
	}
}

// Section writes a heading and the text beside it, which may be "".
func (p *Page) Section(title, beside string) {
	if !p.flows() {
		fmt.Fprintf(p, "\n%s\n", p.Bold(strings.TrimSpace(strings.ToUpper(title)+"  "+beside)))
		return
	}
	if beside != "" {
		title += ": " + beside
	}
	if p.HTML {
		p.within("", "")
		fmt.Fprintf(p, "<h2>%s</h2>\n", html.EscapeString(title))
		return
	}
	fmt.Fprintf(p, "\n## %s\n\n", Escape(title))
}

// Point writes an item of a list. about names its subject, and may be "".
func (p *Page) Point(about, text string) { p.point(about, text, false) }

// Fault is Point for what is wrong: the subject is red.
func (p *Page) Fault(about, text string) { p.point(about, text, true) }

func (p *Page) point(about, text string, fault bool) {
	switch {
	case p.HTML:
		p.within("ul", ` class="findings"`)
		sort := ""
		if fault {
			sort = ` data-sort="unsafe"`
		}
		fmt.Fprintf(p, "<li%s><b>%s</b><div><p>%s</p></div></li>\n", sort, html.EscapeString(about),
			html.EscapeString(text))
	case p.Markdown && about != "":
		fmt.Fprintf(p, "- **%s**: %s\n", Escape(about), Escape(text))
	case p.Markdown:
		fmt.Fprintf(p, "- %s\n", Escape(text))
	default:
		if about != "" {
			text = about + ": " + text
		}
		fmt.Fprintln(p, p.hanging("· ", text, "  "))
	}
}

// Remark writes a note on the text above; on a terminal behind a mark, which may be "".
func (p *Page) Remark(mark, text string) {
	switch {
	case p.HTML:
		p.within("", "")
		fmt.Fprintf(p, "<p class=\"note\">%s</p>\n", html.EscapeString(text))
	case p.Markdown:
		fmt.Fprintf(p, "\n%s\n", Escape(text))
	default:
		fmt.Fprintln(p, p.hanging(mark, text, strings.Repeat(" ", len(mark))))
	}
}

// Picture writes an element of an HTML page, and nothing on pages of other forms.
func (p *Page) Picture(element string) {
	if p.HTML {
		p.within("", "")
		p.WriteString(element)
	}
}

// Command writes a command line that can be pasted into a shell. On a terminal it goes on in the next line, after a
// backslash, before an option that does not fit.
func (p *Page) Command(line string) {
	if p.HTML {
		p.within("", "")
		fmt.Fprintf(p, "<pre><code>%s</code></pre>\n", html.EscapeString(line))
		return
	}
	if p.Markdown {
		fmt.Fprintln(p, "    "+line) // code
		return
	}
	shown, quoted := " ", false
	for i, part := range strings.Split(line, " --") {
		if i > 0 {
			part = "--" + part
		}
		if !quoted && i > 0 && TextWidth(shown+" "+part+` \`) > p.textWidth() {
			fmt.Fprintln(p, shown+` \`)
			shown = "   "
		}
		shown += " " + part
		quoted = quoted != (strings.Count(part, "'")%2 == 1)
	}
	fmt.Fprintln(p, shown)
}

// Save writes the page to w, without blanks at the ends of lines; what names it in errors.
func (p *Page) Save(w io.Writer, what string) error {
	p.within("", "")
	lines := strings.Split(p.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return words.Write(w, what, []byte(strings.Join(lines, "\n")))
}
