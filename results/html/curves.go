package html

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/lockbench/lockbench/results"
)

// curve is one strategy's line in a figure. bound is the part where only a lower bound is
// known.
type curve struct {
	mark
	line  plotter.XYs
	bound plotter.XYs
	marks plotter.XYs // where its glyphs are drawn
}

func (c curve) points() plotter.XYs { return slices.Concat(c.line, c.bound) }

// put draws curves into a plot; its axes must be set before.
func put(p *plot.Plot, curves []curve) {
	for _, c := range curves {
		if len(c.line) > 0 {
			p.Add(&plotter.Line{XYs: c.line, LineStyle: c.style.LineStyle})
		}
		if len(c.bound) > 0 {
			style := c.style.LineStyle
			style.Dashes = dotted
			p.Add(&plotter.Line{XYs: c.bound, LineStyle: style})
		}
		if len(c.marks) > 0 {
			p.Add(&plotter.Scatter{XYs: c.marks, GlyphStyle: c.style.GlyphStyle})
		}
	}
}

// extent returns the smallest and the largest positive y of all curves; false if there is
// none.
func extent(curves []curve) (low, high float64, ok bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, at := range c.points() {
			if at.Y > 0 {
				low, high = min(low, at.Y), max(high, at.Y)
			}
		}
	}
	return low, high, low <= high
}

func marksOf(curves []curve) []mark {
	var marks []mark
	for _, c := range curves {
		marks = append(marks, c.mark)
	}
	return marks
}

// The x axis of percentiles is 1/(1−q): each power of ten adds a nine to the percentile.
const (
	mostNines  = 4.0  // decades
	perDecade  = 14.0 // points of a curve
	nanosecond = 1.0  // the smallest duration on a logarithmic axis
)

// percentiles draws durations against their percentiles.
func percentiles(cells []cell, of func(results.Run) results.Distribution) ([]curve, error) {
	var curves []curve
	for _, c := range cells {
		survival, observed, err := pooled(c.Used, of)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		if observed == 0 {
			continue
		}
		curves = append(curves, c.percentiles(survival, observed))
	}
	return curves, nil
}

// pooled returns the estimate over all runs' durations, and their number.
func pooled(runs []results.Run, of func(results.Run) results.Distribution) (results.Survival, int64, error) {
	var parts []results.Distribution
	observed := int64(0)
	for _, run := range runs {
		if d := of(run); d.Histogram != "" || d.CensoredHistogram != "" {
			parts = append(parts, d)
			observed += d.Count + d.Censored
		}
	}
	if observed == 0 {
		return results.Survival{}, 0, nil
	}
	survival, err := results.PoolSurvival(parts)
	return survival, observed, err
}

// percentiles returns the cell's curve up to the last percentile that this number of
// durations supports.
func (c cell) percentiles(survival results.Survival, observed int64) curve {
	drawn := curve{mark: c.mark}
	most := min(mostNines, math.Log10(max(2, float64(observed))))
	for i := 0.0; ; i++ {
		decade := min(i/perDecade, most)
		x := math.Pow(10, decade)
		q := survival.Quantile(1 - 1/x)
		if q == nil {
			return drawn
		}
		at := plotter.XY{X: x, Y: max(nanosecond, float64(q.NS))}
		if q.AtLeast {
			drawn.bound = plotter.XYs{at, {X: math.Pow(10, most), Y: at.Y}}
			if decade == most {
				drawn.bound[0].X = math.Pow(10, max(0, most-0.5/perDecade))
			}
			drawn.marks = append(drawn.marks, drawn.bound[0])
			return drawn
		}
		drawn.line = append(drawn.line, at)
		if decade == most {
			break
		}
	}
	for _, x := range []float64{2, 10, 100, 1000} {
		if q := survival.Quantile(1 - 1/x); q != nil && !q.AtLeast && math.Log10(x) <= most {
			drawn.marks = append(drawn.marks, plotter.XY{X: x, Y: max(nanosecond, float64(q.NS))})
		}
	}
	return drawn
}

// nines puts ticks at 50 %, 90 %, 99 % and so on.
type nines struct{}

// Ticks implements plot.Ticker.
func (nines) Ticks(_, high float64) []plot.Tick {
	var ticks []plot.Tick
	for _, t := range []plot.Tick{{Value: 2, Label: "50 %"}, {Value: 10, Label: "90 %"}, {Value: 100, Label: "99 %"}, {Value: 1000, Label: "99.9 %"}, {Value: 10000, Label: "99.99 %"}} {
		if t.Value <= high {
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// percentileFigure draws percentile curves; it returns nil if there are none.
func percentileFigure(f figure, cells []cell, share, duration string, of func(results.Run) results.Distribution) (*figure, error) {
	curves, err := percentiles(cells, of)
	if err != nil {
		return nil, err
	}
	low, high, ok := extent(curves)
	if !ok {
		return nil, nil
	}
	p := newChart(share, duration)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, nines{}
	logarithmic(&p.Y, low, high, results.Nanoseconds)
	put(p.Plot, curves)
	p.X.Min, p.X.Max = 1, 100
	for _, c := range curves {
		for _, at := range c.points() {
			p.X.Max = max(p.X.Max, at.X)
		}
		if len(c.bound) > 0 && f.note == "" {
			f.note = "Dotted: at least that long; the rest had not ended."
		}
	}
	f.plot, f.marks = p, marksOf(curves)
	return &f, nil
}
