package html

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/lockbench/lockbench/results"
)

// farApart is the ratio of two values above which a linear axis is not readable.
const farApart = 30

// growth draws a metric against the number of clients, with one line per strategy; nil if
// there is nothing to draw.
func (f family) growth(fig figure, m results.Metric, axis string, logScale bool) *figure {
	var clients []float64
	for _, a := range f.arenas {
		clients = append(clients, float64(a.workload.Clients))
	}
	curves, ranges := f.lines(m, logScale)
	low, high, ok := extent(curves)
	if !logScale && m.Unit == results.PerSecond && high > farApart*low {
		logScale = true
		curves, ranges = f.lines(m, logScale)
	}
	if !ok {
		return nil
	}
	p := newChart("clients", axis)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, counted(clients)
	if logScale {
		logarithmic(&p.Y, low, high, m.Unit)
	} else {
		p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, high*1.05, linear{m.Unit}
	}
	for _, spread := range ranges {
		p.Add(spread)
	}
	put(p.Plot, curves)
	p.X.Min, p.X.Max = slices.Min(clients)/1.15, slices.Max(clients)*1.15
	if !logScale {
		p.Y.Min = 0
	}
	fig.plot, fig.marks = p, marksOf(curves)
	return &fig
}

// lines returns the curves of all strategies that have the metric, and the ranges of their
// runs.
func (f family) lines(m results.Metric, logScale bool) ([]curve, []*plotter.YErrorBars) {
	var curves []curve
	var ranges []*plotter.YErrorBars
	for _, name := range strategyNames([]family{f}) {
		c, spread := f.line(name, m, logScale)
		if len(c.points()) > 0 {
			curves = append(curves, c)
		}
		if len(spread.XYs) > 0 {
			ranges = append(ranges, spread)
		}
	}
	return curves, ranges
}

// line returns one strategy's curve, and the ranges of its runs.
func (f family) line(name string, m results.Metric, logScale bool) (curve, *plotter.YErrorBars) {
	var c curve
	bars := &plotter.YErrorBars{CapWidth: 5}
	for _, a := range f.arenas {
		at := slices.IndexFunc(a.cells, func(c cell) bool { return c.Name == name })
		if at < 0 {
			continue
		}
		c.mark = a.cells[at].mark
		figure := a.cells[at].Figure(m)
		if figure == nil || logScale && figure.Value <= 0 {
			continue
		}
		point := plotter.XY{X: float64(a.workload.Clients), Y: figure.Value}
		c.marks = append(c.marks, point)
		if figure.AtLeast || len(c.bound) > 0 {
			if n := len(c.line); n > 0 && len(c.bound) == 0 {
				c.bound = append(c.bound, c.line[n-1])
			}
			c.bound = append(c.bound, point)
			continue
		}
		c.line = append(c.line, point)
		if low, high, ok := a.cells[at].Range(m); ok && (low > 0 || !logScale) {
			bars.XYs = append(bars.XYs, point)
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{point.Y - low, high - point.Y})
		}
	}
	bars.LineStyle = c.style.LineStyle
	bars.Dashes, bars.Width = nil, 1
	return c, bars
}

// counted puts ticks at the measured numbers of clients, with labels where there is room.
type counted []float64

// Ticks implements plot.Ticker.
func (c counted) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	room := plot.LogScale{}
	last := -1.0
	for _, n := range c {
		tick := plot.Tick{Value: n}
		if at := room.Normalize(low, high, n); last < 0 || at-last > 0.09 {
			tick.Label, last = short(n, results.Number), at
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// bars draws a metric of one arena, with one bar per strategy, the first on top; nil if no
// strategy has it.
func (a arena) bars(fig figure, m results.Metric, axis string, ceiling float64) (*figure, error) {
	p := newChart(axis, "")
	var names []string
	most := ceiling
	n := len(a.cells)
	known := false
	for i, c := range a.cells {
		names = append(names, "")
		figure := c.Figure(m)
		label := figure.Text(m.Unit)
		if c.Invalid {
			label += " !"
		}
		value := 0.0
		if figure != nil {
			value, known = figure.Value, true
		}
		names[i] = shortened(c.Name, 16)
		y := float64(n - 1 - i)
		bar, err := plotter.NewBarChart(plotter.Values{value}, vg.Length(min(18, 150/n)))
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", c.Name, err)
		}
		bar.Horizontal, bar.XMin, bar.Color, bar.LineStyle.Width = true, y, c.style.LineStyle.Color, 0
		p.Add(bar)
		end := value
		if low, high, ok := c.Range(m); ok {
			p.Add(&plotter.Line{XYs: plotter.XYs{{X: low, Y: y}, {X: high, Y: y}}, LineStyle: draw.LineStyle{Color: ink, Width: 1}})
			end = max(end, high)
		}
		most = max(most, end)
		text, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: end, Y: y}}, Labels: []string{label}})
		if err != nil {
			return nil, fmt.Errorf("draw %s: %w", c.Name, err)
		}
		text.TextStyle[0].Font, text.TextStyle[0].Color, text.TextStyle[0].YAlign = sans(9.5), ink, -0.4
		text.Offset.X = 4
		p.Add(text)
	}
	if !known {
		return nil, nil
	}
	slices.Reverse(names)
	p.NominalY(names...)
	p.Y.Tick.Label.Font, p.Y.Tick.Label.Color = sans(10), ink
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0, most*1.22, linear{m.Unit}
	if most == 0 {
		p.X.Max = 1
	}
	p.Y.Min, p.Y.Max = -0.6, float64(n)-0.4
	fig.plot = p
	for _, c := range a.cells {
		fig.marks = append(fig.marks, c.mark)
	}
	return &fig, nil
}
