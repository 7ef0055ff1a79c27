package render

import (
	"fmt"
	"strings"
)

// item writes a heading's or a note's line. One without a word of its own
// continues the line before.
func (p *page) item(label, text string) {
	if label == "" {
		text = "  " + markdownText(text)
	} else {
		text = fmt.Sprintf("- **%s** %s", markdownText(label), markdownText(text))
	}
	p.WriteString(text + "\n")
}

// markdownText keeps what Markdown would take for its own.
func markdownText(text string) string {
	return strings.NewReplacer("\\", `\\`, "|", `\|`, "\n", " ", "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "#", `\#`).Replace(text)
}
