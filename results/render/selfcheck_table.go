package render

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/lockbench/lockbench/results"
)

// WriteSelfcheckTable writes it for people: for each check its verdict, what a
// pass shows, and every figure beside what it must be.
func WriteSelfcheckTable(w io.Writer, s *results.Selfcheck, opts TableOptions) error {
	var text bytes.Buffer
	paint := paint(opts.Color)
	fmt.Fprintln(&text, conditions(s.Tool, s.Environment, s.Redis))
	for _, c := range s.Checks {
		fmt.Fprintf(&text, "\n%s  %s  %s (%.0f s)\n", paint.bold(c.Name), paint.checked(c.Verdict), c.Shows, c.Seconds)
		for _, why := range c.Why {
			fmt.Fprintln(&text, hanging("! ", why, "  "))
		}
		columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, m := range c.Measured {
			fmt.Fprintf(columns, "  %s\t%s\t%s\t%s\n", m.Name, measured(m), m.Wanted, failed(m))
		}
		if err := columns.Flush(); err != nil {
			return fmt.Errorf("draw selfcheck: %w", err)
		}
	}
	if s.Interrupted {
		fmt.Fprintln(&text, "\ninterrupted: checks are missing")
	}
	if err := writeTrimmed(w, text.String()); err != nil {
		return fmt.Errorf("write selfcheck: %w", err)
	}
	return nil
}

// failed points out what is not as wanted.
func failed(m results.Measure) string {
	switch m.Verdict {
	case results.Fail:
		return "FAIL"
	case results.Inconclusive:
		return "inconclusive"
	}
	return ""
}

// measured writes a value with its sign, whole numbers in full.
func measured(m results.Measure) string {
	if m.Value == nil {
		return results.NotKnown
	}
	x, sign := *m.Value, ""
	if x < 0 {
		sign, x = "−", -x
	}
	switch {
	case m.Unit != results.Number:
		return sign + m.Unit.Format(x)
	case x == math.Trunc(x):
		return sign + results.Whole(x)
	}
	return sign + results.Short(x)
}

// checked paints a verdict.
func (p paint) checked(v results.Finding) string {
	switch v {
	case results.Pass:
		return p.green(string(v))
	case results.Fail:
		return p.red(strings.ToUpper(string(v)))
	default:
		return p.yellow(string(v))
	}
}
