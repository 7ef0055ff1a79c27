package results

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// WriteSelfcheckTable writes it for people: for each check its verdict, what a
// pass shows, and every figure beside what it must be.
func WriteSelfcheckTable(w io.Writer, s *Selfcheck, opts TableOptions) error {
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
			fmt.Fprintf(columns, "  %s\t%s\t%s\t%s\n", m.Name, m.value(), m.Wanted, m.mark())
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

// mark points out what is not as wanted.
func (m Measure) mark() string {
	switch m.Verdict {
	case Fail:
		return "FAIL"
	case Inconclusive:
		return "inconclusive"
	}
	return ""
}

func (m Measure) value() string {
	return known(m.Value, func(x float64) string {
		sign := ""
		if x < 0 {
			sign, x = "−", -x
		}
		switch m.Unit {
		case Nanoseconds:
			return sign + nanoseconds(x)
		case PerSecond:
			return sign + number(x) + "/s"
		case Percent:
			return sign + percent(x)
		case Bytes:
			return sign + sized(x)
		}
		if x == math.Trunc(x) {
			return sign + count(int64(x))
		}
		return sign + number(x)
	})
}

// checked paints a verdict.
func (p paint) checked(v Finding) string {
	switch v {
	case Pass:
		return p.green(string(v))
	case Fail:
		return p.red(strings.ToUpper(string(v)))
	default:
		return p.yellow(string(v))
	}
}
