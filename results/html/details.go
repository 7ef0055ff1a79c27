package html

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/lockbench/lockbench/results"
)

// shares draws each client's acquisitions, divided by their mean, in ascending order; nil if
// they were not recorded.
func (a arena) shares(fig figure) (*figure, error) {
	var curves []curve
	most := 2.0
	for _, c := range a.cells {
		h, err := c.typical().Fairness.PerClientHistogram()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		if h == nil || h.TotalCount() == 0 || h.Mean() == 0 {
			continue
		}
		drawn := curve{mark: c.mark}
		clients, even, before := float64(h.TotalCount()), h.Mean(), 0.0
		for _, bar := range h.Distribution() {
			if bar.Count == 0 {
				continue
			}
			y := float64(bar.To) / even
			after := before + float64(bar.Count)
			drawn.line = append(drawn.line, plotter.XY{X: before / clients * 100, Y: y}, plotter.XY{X: after / clients * 100, Y: y})
			before = after
			most = max(most, y)
		}
		drawn.line = thinned(drawn.line, 160)
		drawn.marks = plotter.XYs{drawn.line[len(drawn.line)/2], drawn.line[len(drawn.line)-1]}
		curves = append(curves, drawn)
	}
	if len(curves) == 0 {
		return nil, nil
	}
	p := newChart("clients, from the fewest acquisitions to the most", "acquisitions, in even shares")
	p.X.Tick.Marker = linear{results.Percent}
	p.Y.Tick.Marker = linear{results.Number}
	p.Add(&plotter.Line{
		XYs:       plotter.XYs{{X: 0, Y: 1}, {X: 100, Y: 1}},
		LineStyle: draw.LineStyle{Color: quiet, Width: 1, Dashes: dotted},
	})
	put(p.Plot, curves)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, 100, 0, most*1.05
	fig.plot, fig.marks = p, marksOf(curves)
	return &fig, nil
}

// thinned keeps about this many of a line's points, including both ends.
func thinned(line plotter.XYs, most int) plotter.XYs {
	if len(line) <= most {
		return line
	}
	var kept plotter.XYs
	for i := range most {
		kept = append(kept, line[i*(len(line)-1)/(most-1)])
	}
	return kept
}

// mostSlices is the largest number of slices that a timeline shows.
const mostSlices = 120

// timeline draws a figure of the slices over the window; nil if no strategy has two slices.
func (a arena) timeline(fig figure, axis string, unit results.Unit, logScale bool, of func(results.Slice) *float64) *figure {
	var curves []curve
	seconds := 0.0
	for _, c := range a.cells {
		course := c.typical().Timeline
		for len(course) > mostSlices {
			course = results.Halve(course)
		}
		drawn := curve{mark: c.mark}
		for _, s := range course {
			if v := of(s); v != nil && (*v > 0 || !logScale) {
				drawn.line = append(drawn.line, plotter.XY{X: s.At + s.Seconds/2, Y: *v})
			}
			seconds = max(seconds, s.At+s.Seconds)
		}
		if len(drawn.line) < 2 {
			continue
		}
		for i := 0; i < len(drawn.line); i += max(1, len(drawn.line)/6) {
			drawn.marks = append(drawn.marks, drawn.line[i])
		}
		curves = append(curves, drawn)
	}
	low, high, ok := extent(curves)
	if !ok {
		return nil
	}
	p := newChart("seconds since the window opened", axis)
	p.X.Tick.Marker = linear{results.Number}
	if logScale {
		logarithmic(&p.Y, low, high, unit)
	} else {
		p.Y.Tick.Marker = linear{unit}
	}
	put(p.Plot, curves)
	p.X.Min, p.X.Max = 0, seconds
	if !logScale {
		p.Y.Min, p.Y.Max = 0, high*1.08
	}
	fig.plot, fig.marks = p, marksOf(curves)
	return &fig
}

func perSecond(s results.Slice) *float64 {
	if s.Seconds <= 0 {
		return nil
	}
	return new(float64(s.Acquisitions) / s.Seconds)
}

func waitP99(s results.Slice) *float64 {
	if s.WaitP99 == nil {
		return nil
	}
	return new(math.Max(nanosecond, float64(*s.WaitP99)))
}
