package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lockbench/lockbench/results"
)

// WriteClaimsTable writes it for people: each claim with its verdict, its figures
// beside what they were to be, and the commands that show them again.
func WriteClaimsTable(w io.Writer, c *results.Claims, opts TableOptions) error {
	var text bytes.Buffer
	paint := paint(opts.Color)
	fmt.Fprintln(&text, conditions(c.Tool, c.Environment, c.Redis))
	for _, how := range howJudged(c) {
		fmt.Fprintln(&text, strings.Join(wrap(how, tableWidth, ""), "\n"))
	}
	for _, claim := range c.Claims {
		says := strings.Join(wrap(claim.Says, tableWidth-18, ""), "\n    ")
		fmt.Fprintf(&text, "\n%s  %s  %s\n", paint.bold(claim.Name), paint.claimed(claim.Verdict), says)
		if claim.About != "" {
			fmt.Fprintln(&text, hanging("", claim.About, ""))
		}
		for _, note := range claimNotes(claim) {
			fmt.Fprintln(&text, hanging("! ", note, "  "))
		}
		columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, f := range claim.Figures {
			fmt.Fprintf(columns, "  %s\t%s\t%s\t%s\t%s\n", f.What, cameTo(f), wanted(f), f.Outcome, bestOf(f))
		}
		if err := columns.Flush(); err != nil {
			return fmt.Errorf("draw claims: %w", err)
		}
		for _, run := range claim.Runs {
			fmt.Fprintln(&text, hanging("$ ", run.Command, "    "))
		}
		for _, test := range claim.Tests {
			fmt.Fprintf(&text, "  test %s\n", test)
		}
	}
	fmt.Fprintf(&text, "\n%s\n", tally(c))
	if err := writeTrimmed(w, text.String()); err != nil {
		return fmt.Errorf("write claims: %w", err)
	}
	return nil
}

// tally counts the verdicts.
func tally(c *results.Claims) string {
	var parts []string
	for _, v := range []results.ClaimVerdict{results.Confirmed, results.Qualified, results.Refuted, results.ClaimInconclusive} {
		n := 0
		for _, claim := range c.Claims {
			if claim.Verdict == v {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	text := strings.Join(parts, ", ")
	if c.Interrupted {
		text = strings.TrimPrefix(text+"; interrupted: claims are missing", "; ")
	}
	return text
}

// claimNotes are what is to be said of the verdict.
func claimNotes(c results.Claim) []string {
	if c.Qualified != "" {
		return append([]string{c.Qualified}, c.Why...)
	}
	return c.Why
}

// cameTo is the median of the rounds with their range, or their sum, and in how many
// it is not known.
func cameTo(f results.ClaimFigure) string {
	if f.Judged != "" {
		return within(f)
	}
	var known []results.Figure
	for _, v := range f.Values {
		if v != nil {
			known = append(known, *v)
		}
	}
	if len(known) == 0 {
		return results.NotKnown
	}
	missing := ""
	if n := len(f.Values) - len(known); n > 0 {
		missing = fmt.Sprintf(", not known in %d of %d rounds", n, len(f.Values))
	}
	if f.Total {
		var sum results.Figure
		for _, v := range known {
			sum.Value, sum.AtLeast = sum.Value+v.Value, sum.AtLeast || v.AtLeast
		}
		return writeClaimed(f, sum) + " in all" + missing
	}
	least, most := writeClaimed(f, slices.MinFunc(known, byValue)), writeClaimed(f, slices.MaxFunc(known, byValue))
	if least == most {
		return least + missing
	}
	return fmt.Sprintf("%s (%s … %s)%s", writeClaimed(f, *results.MedianFigure(known)), least, most, missing)
}

func writeClaimed(f results.ClaimFigure, v results.Figure) string {
	text := measured(results.Measure{Value: &v.Value, Unit: f.Unit})
	if v.AtLeast {
		return "≥ " + text
	}
	return text
}

func wanted(f results.ClaimFigure) string {
	switch {
	case f.Is == "":
		return results.NotKnown
	case f.Judged == "median":
		return "median " + f.Is
	case f.Opposite != "":
		return f.Is + ", not " + f.Opposite
	}
	return f.Is
}

func byValue(a, b results.Figure) int { return cmp.Compare(a.Value, b.Value) }

// claimed paints a verdict.
func (p paint) claimed(v results.ClaimVerdict) string {
	switch v {
	case results.Confirmed:
		return p.green(string(v))
	case results.Refuted:
		return p.red(string(v))
	default:
		return p.yellow(string(v))
	}
}
