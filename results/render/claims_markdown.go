package render

import (
	"bytes"
	"fmt"
	"io"

	"github.com/lockbench/lockbench/results"
)

// WriteClaimsMarkdown writes it as a page: an overview, then each claim with its
// figures and commands.
func WriteClaimsMarkdown(w io.Writer, c *results.Claims) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "# What is said of Redis locks, put to the test\n\n")
	fmt.Fprintf(&text, "Written by `lockbench claims -o markdown=docs/CLAIMS.md` on %s: %s.\n", c.Started.UTC().Format("2006-01-02"), markdownText(conditions(c.Tool, c.Environment, c.Redis)))
	fmt.Fprintf(&text, "%s\n\n| # | claim | verdict |\n| ---: | --- | --- |\n", tally(c))
	for _, claim := range c.Claims {
		fmt.Fprintf(&text, "| [%s](#claim-%s) | %s | %s |\n", claim.Name, claim.Name, markdownText(claim.Says), claim.Verdict)
	}
	for _, claim := range c.Claims {
		fmt.Fprintf(&text, "\n<a id=\"claim-%s\"></a>\n\n## %s. %s\n\n**%s**\n", claim.Name, claim.Name, markdownText(claim.Says), claim.Verdict)
		for _, note := range claimNotes(claim) {
			fmt.Fprintf(&text, "\n%s\n", markdownText(note))
		}
		if len(claim.Figures) > 0 {
			fmt.Fprintf(&text, "\n| figure | came to | is to be | |\n| --- | ---: | --- | --- |\n")
		}
		for _, f := range claim.Figures {
			fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", markdownText(f.What), markdownText(cameTo(f)), markdownText(wanted(f)), f.Outcome)
		}
		fmt.Fprintln(&text)
		for _, run := range claim.Runs {
			fmt.Fprintf(&text, "    %s\n", run.Command)
		}
		for i, test := range claim.Tests {
			if i == 0 {
				fmt.Fprintf(&text, "\nTests that show it too:\n\n")
			}
			fmt.Fprintf(&text, "- `%s`\n", test)
		}
	}
	if _, err := w.Write(text.Bytes()); err != nil {
		return fmt.Errorf("write claims: %w", err)
	}
	return nil
}
