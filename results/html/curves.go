package html

import (
	"bytes"
	"math"

	"github.com/lockbench/lockbench/results"
)

// Curves is a chart of durations against a rate, for documents other than reports.
type Curves struct {
	Title, Note, XName, YName string
	Curves                    []Curve
}

// Curve is the line of one lock, with its points in ascending order of X.
type Curve struct {
	Name   string
	Points []Spot // by X
}

// Spot is a duration Y in nanoseconds at a rate X per second. AtLeast means that Y is a lower bound.
type Spot struct {
	X, Y    float64
	AtLeast bool
}

// Figure draws the chart as an element of a page, with its legend; "" if there is nothing to draw.
func (c Curves) Figure() string {
	drawn := chart{
		name: "curves", Title: c.Title, Note: c.Note, XName: c.XName, YName: c.YName,
		xUnit: results.PerSecond, yUnit: results.Nanoseconds,
	}
	low, high := math.Inf(1), 0.0
	var names []string
	for _, one := range c.Curves {
		names = append(names, one.Name)
	}
	style := styles(names)
	for _, one := range c.Curves {
		line := curve{mark: mark{name: one.Name, style: style[one.Name]}}
		for _, s := range one.Points {
			line.add(spot{point{s.X, max(nanosecond, s.Y)}, s.AtLeast})
			low, high = min(low, s.X), max(high, s.X)
		}
		if len(line.marks) > 0 {
			drawn.curves = append(drawn.curves, line)
		}
	}
	least, most, ok := span(drawn.curves)
	if !ok || low <= 0 {
		return ""
	}
	drawn.x = logarithmic(low, high, results.PerSecond)
	drawn.x.low, drawn.x.high = min(drawn.x.low, low/1.05), max(drawn.x.high, high*1.05)
	drawn.y = logarithmic(least, most, results.Nanoseconds)
	var legend []cell
	for _, l := range drawn.curves {
		legend = append(legend, cell{results.Summary{Strategy: results.Strategy{Name: l.name}}, l.mark})
	}
	var b bytes.Buffer
	err := templates().ExecuteTemplate(&b, "curves", struct {
		Legend  []cell
		Drawing drawing
	}{legend, drawn.Draw()})
	if err != nil {
		panic(err) // the template is embedded and accepts any figures
	}
	return b.String()
}
