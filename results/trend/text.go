package trend

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/jsonio"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results/compare"
)

const (
	plotHeight = 8
	plotWidth  = 90
)

// WriteText writes every series as a plot of characters with its changes below.
func WriteText(w io.Writer, all []Series) error {
	var b bytes.Buffer
	about := ""
	for i, s := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		if s.About != about {
			about = s.About
			fmt.Fprintf(&b, "%s\n\n", about)
		}
		s.plot(&b)
	}
	if len(all) == 0 {
		b.WriteString("nothing to show\n")
	}
	return jsonio.WriteText(w, "trend", b.Bytes())
}

// plot writes one series: ● a point, │ the first point of a change.
func (s Series) plot(b *bytes.Buffer) {
	shown := s.Points[max(0, len(s.Points)-plotWidth):]
	skipped := len(s.Points) - len(shown)
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range shown {
		low, high = min(low, p.Value), max(high, p.Value)
	}
	fmt.Fprintf(b, "%s %s · %s, %s to %s\n", s.Strategy, s.Metric.Compared.Label, words.Count(len(s.Points), "report"), day(s.Points[0]), day(s.Points[len(s.Points)-1]))
	rows := make([][]rune, plotHeight)
	for i := range rows {
		rows[i] = slices.Repeat([]rune{' '}, len(shown))
	}
	for _, c := range s.Changes {
		if at := c.At - skipped; at >= 0 {
			for _, row := range rows {
				row[at] = '│'
			}
		}
	}
	for x, p := range shown {
		y := plotHeight / 2
		if high > low {
			y = int(math.Round((high - p.Value) / (high - low) * (plotHeight - 1)))
		}
		rows[y][x] = '●'
	}
	for i, row := range rows {
		scale := ""
		switch i {
		case 0:
			scale = compare.Write(s.Metric, high)
		case plotHeight - 1:
			scale = compare.Write(s.Metric, low)
		}
		fmt.Fprintf(b, "%12s ┤%s\n", scale, strings.TrimRight(string(row), " "))
	}
	for _, c := range s.Changes {
		p := s.Points[c.At]
		fmt.Fprintf(b, "%12s  %s: %s → %s (%+.1f %%) since %s, %s\n", "", c.Verdict, compare.Write(s.Metric, c.Before), compare.Write(s.Metric, c.After), c.Delta*100, c.Commit, day(p))
	}
	if len(s.Changes) == 0 {
		fmt.Fprintf(b, "%12s  no change\n", "")
	}
}

func day(p Point) string { return p.Time.UTC().Format("2006-01-02") }
