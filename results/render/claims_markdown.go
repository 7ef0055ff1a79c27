package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// WriteClaimsMarkdown writes it as a page: an overview, then each claim with its
// figures and commands.
func WriteClaimsMarkdown(w io.Writer, c *results.Claims) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "# %s\n\n", markdownText(cmp.Or(c.Title, "What is said of Redis locks, put to the test")))
	fmt.Fprintf(&text, "Written by `lockbench claims`; docs/METRICS.md says what the figures mean.\n\n- %s %s, %s\n- Machine: %s\n- Redis: %s\n",
		c.Tool.Name, c.Tool.Version, c.Started.UTC().Format("2006-01-02 15:04 MST"), markdownText(c.Environment.Describe()), markdownText(c.Redis.Describe()))
	for _, how := range howJudged(c) {
		fmt.Fprintf(&text, "\n%s\n", markdownText(how))
	}
	fmt.Fprintf(&text, "\n%s\n\n| # | claim | verdict |\n| ---: | --- | --- |\n", tally(c))
	for _, claim := range c.Claims {
		fmt.Fprintf(&text, "| [%s](#claim-%s) | %s | %s |\n", claim.Name, claim.Name, markdownText(claim.Says), claim.Verdict)
	}
	for _, claim := range c.Claims {
		fmt.Fprintf(&text, "\n<a id=\"claim-%s\"></a>\n\n## %s. %s\n\n**%s**\n", claim.Name, claim.Name, markdownText(claim.Says), claim.Verdict)
		for _, note := range append([]string{claim.About}, claimNotes(claim)...) {
			if note == "" {
				continue
			}
			fmt.Fprintf(&text, "\n%s\n", markdownText(note))
		}
		writeFigures(&text, claim.Figures)
		fmt.Fprintln(&text)
		for _, run := range claim.Runs {
			fmt.Fprintf(&text, "    %s\n", run.Command)
		}
		for _, run := range claim.Runs {
			shownTable(&text, run)
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

// writeFigures writes a table of them, who was the best in a column of its own if that is
// known of any.
func writeFigures(w io.Writer, all []results.ClaimFigure) {
	if len(all) == 0 {
		return
	}
	best := slices.ContainsFunc(all, func(f results.ClaimFigure) bool { return f.Best != nil })
	head, rule := "| figure | came to | is to be | |", "| --- | ---: | --- | --- |"
	if best {
		head, rule = head+" best (rounds) |", rule+" --- |"
	}
	fmt.Fprintf(w, "\n%s\n%s\n", head, rule)
	for _, f := range all {
		fmt.Fprintf(w, "| %s | %s | %s | %s |", markdownText(f.What), markdownText(cameTo(f)), markdownText(wanted(f)), f.Outcome)
		if best {
			fmt.Fprintf(w, " %s |", markdownText(bestOf(f)))
		}
		fmt.Fprintln(w)
	}
}
