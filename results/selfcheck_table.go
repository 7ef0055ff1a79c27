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
	fmt.Fprintf(&text, "%s %s  %s/%s, %d CPUs, Go %s  Redis %s (%s)\n",
		s.Tool.Name, s.Tool.Version, s.Environment.OS, s.Environment.Arch, s.Environment.CPUs,
		strings.TrimPrefix(s.Environment.Go, "go"), s.Redis.Version, s.Redis.Source)
	for _, c := range s.Checks {
		fmt.Fprintf(&text, "\n%s  %s  %s (%.0f s)\n", paint.bold(c.Name), paint.checked(c.Verdict), c.Shows, c.Seconds)
		for _, why := range c.Why {
			for i, line := range wrap(why, tableWidth-4, "") {
				fmt.Fprintf(&text, "  %s%s\n", [2]string{"! ", "  "}[min(i, 1)], line)
			}
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
	trimmed := strings.Join(withoutTails(text.String()), "\n")
	if _, err := io.WriteString(w, trimmed); err != nil {
		return fmt.Errorf("write selfcheck: %w", err)
	}
	return nil
}

// withoutTails takes the blanks off the ends, which columns leave there.
func withoutTails(text string) []string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return lines
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
