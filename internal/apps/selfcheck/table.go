package selfcheck

import (
	"fmt"
	"io"
	"strings"

	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/results"
)

// WriteTable writes the document for people: for each check its verdict, what a pass shows, and every figure with
// its requirement.
func WriteTable(w io.Writer, d *Document, color bool) error {
	p := &layout.Page{Paint: layout.Paint(color)}
	fmt.Fprintln(p, d.Setup())
	for _, c := range d.Checks {
		fmt.Fprintf(p, "\n%s  %s  %s (%.0f s)\n", p.Bold(c.Name), c.Verdict.painted(p.Paint), c.Shows, c.Seconds)
		for _, why := range c.Why {
			p.Remark("! ", why)
		}
		var rows [][]string
		for _, m := range c.Measured {
			rows = append(rows, []string{m.Name, m.text(), m.Wanted, m.fault()})
		}
		p.Columns(rows)
	}
	if d.Interrupted {
		fmt.Fprintln(p, "\ninterrupted: checks are missing")
	}
	return p.Save(w, "selfcheck")
}

// fault marks a figure that is not as required.
func (m Measure) fault() string {
	switch m.Verdict {
	case Fail:
		return "FAIL"
	case Inconclusive:
		return "inconclusive"
	}
	return ""
}

func (m Measure) text() string {
	if m.Value == nil {
		return results.NotKnown
	}
	return m.Unit.Signed(*m.Value)
}

func (v Verdict) painted(p layout.Paint) string {
	switch v {
	case Pass:
		return p.Green(string(v))
	case Fail:
		return p.Red(strings.ToUpper(string(v)))
	default:
		return p.Yellow(string(v))
	}
}
