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

// Page collects the text of a document. Its methods write in the format that the fields select.
type Page struct {
	bytes.Buffer
	Markdown bool // without Markdown and HTML, the page is for a terminal
	HTML     bool
	Wide     int // columns of the terminal; 0 means Width
	Paint        // false for Markdown and HTML

	list string // the open HTML list; "" if there is none
}

// flows reports whether the program that displays the page wraps the lines, so that Page need not.
func (p *Page) flows() bool { return p.Markdown || p.HTML }

// within closes the open HTML list and opens the given list, unless that list is already open. list is the name of the
// element, such as ul. If list is "", within only closes.
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

// Width returns the number of columns of the terminal. A table may use all of them.
func (p *Page) Width() int { return cmp.Or(p.Wide, Width) }

// textWidth returns the largest width of a line of text. It is at most Width, even on a wider terminal, because longer
// lines are hard to read.
func (p *Page) textWidth() int { return min(p.Width(), Width) }

// Text returns a text in the form that the page's format requires. For Markdown, it escapes special characters.
func (p *Page) Text(text string) string {
	if p.Markdown {
		return Escape(text)
	}
	return text
}

// labelWidth is the width of an entry's label, in columns.
const labelWidth = 11

// Entry writes a label and a text. On a terminal it wraps and indents the text; elsewhere it writes both as an item of
// a list. An empty label continues the previous entry. An empty text writes nothing. A label that begins with "!" is
// red.
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

// Section writes a heading. The subtitle follows on the same line, unless it is "".
func (p *Page) Section(title, subtitle string) {
	if !p.flows() {
		fmt.Fprintf(p, "\n%s\n", p.Bold(strings.TrimSpace(strings.ToUpper(title)+"  "+subtitle)))
		return
	}
	if subtitle != "" {
		title += ": " + subtitle
	}
	if p.HTML {
		p.within("", "")
		fmt.Fprintf(p, "<h2>%s</h2>\n", html.EscapeString(title))
		return
	}
	fmt.Fprintf(p, "\n## %s\n\n", Escape(title))
}

// Point writes an item of a list. about is the item's subject, which precedes the text; it may be "".
func (p *Page) Point(about, text string) { p.point(about, text, false) }

// Fault writes an item of a list about an error. It differs from Point only in that the subject is red.
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

// Remark writes a note on the text above. On a terminal it begins with mark, which may be "".
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

// Picture writes an element of an HTML page. On other pages it writes nothing.
func (p *Page) Picture(element string) {
	if p.HTML {
		p.within("", "")
		p.WriteString(element)
	}
}

// Command writes a command line that can be pasted into a shell. On a terminal it breaks the line, with a backslash,
// before an option that does not fit.
func (p *Page) Command(line string) {
	if p.HTML {
		p.within("", "")
		fmt.Fprintf(p, "<pre><code>%s</code></pre>\n", html.EscapeString(line))
		return
	}
	if p.Markdown {
		fmt.Fprintln(p, "    "+line) // four spaces mark code
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

// Save writes the page to w, without blanks at the ends of lines. The parameter what names the page in errors.
func (p *Page) Save(w io.Writer, what string) error {
	p.within("", "")
	lines := strings.Split(p.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return words.Write(w, what, []byte(strings.Join(lines, "\n")))
}
