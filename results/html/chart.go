package html

// The values of a chart are in the units of their metrics. Draw converts the chart to a drawing, whose coordinates are
// pixels with y growing downwards. A template writes the drawing as SVG, without a script. An axis maps a value to a
// share of the width or height, and drawing.at maps a point to pixels.
//
// All curves are drawn before any value is written next to them, because a value is written only where it covers no
// mark and no other text. drawing.taken lists the covered places.

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lockbench/lockbench/results"
)

// chart is a chart of curves or of bars, in the units of its metrics. Draw converts it to pixels.
type chart struct {
	name  string // unique on the page: 1-throughput
	Title string
	Note  string // how to read it

	XName, YName string
	x, y         axis
	xUnit, yUnit results.Unit
	curves       []curve
	even         bool // draws a dotted line at y = 1
	moments      []moment
	bars         []bar
}

// moment is an event of the run, such as a fault, at its time on the x axis.
type moment struct {
	at   float64
	name string
}

// mark identifies a strategy in a chart by its name and the number of its style. A ghost is an earlier run, which is
// drawn behind the current one.
type mark struct {
	name  string
	style int
	ghost bool
}

type point struct{ X, Y float64 }

// spot is a point of a curve that is marked with a glyph. atLeast means that its y value is a lower bound.
type spot struct {
	point
	atLeast bool
}

// curve is the line of one strategy. bound is the dotted part of the line, which begins at the last exact value before
// the first lower bound.
type curve struct {
	mark
	line, bound []point
	marks       []spot
	ranges      []extent
}

// add appends a point with a glyph. From the first lower bound on, all points belong to the dotted part.
func (c *curve) add(s spot) {
	c.marks = append(c.marks, s)
	if !s.atLeast && len(c.bound) == 0 {
		c.line = append(c.line, s.point)
		return
	}
	if n := len(c.line); n > 0 && len(c.bound) == 0 {
		c.bound = append(c.bound, c.line[n-1])
	}
	c.bound = append(c.bound, s.point)
}

// bar shows one strategy's figure as a bar from 0 to high.
type bar struct {
	mark
	text    string // the figure in its unit
	high    float64
	atLeast bool
	ranges  extent // of several runs
}

// extent is the range from the smallest to the largest value of several runs at one x value.
type extent struct{ at, low, high float64 }

// axis maps the values from low to high onto the width or the height of the chart, as a share from 0 to 1.
type axis struct {
	low, high float64
	log       bool
	ticks     []tick
}

// tick is a value of an axis at which a line crosses the chart.
type tick struct {
	value float64
	label string // empty where there is no room
}

// share returns the position of a value on the axis, from 0 to 1. On a logarithmic axis, v must be above 0.
func (a axis) share(v float64) float64 {
	if a.log {
		return math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return (v - a.low) / (a.high - a.low)
}

// linear returns an axis from 0 with about five ticks.
func linear(high float64, unit results.Unit) axis {
	if high <= 0 {
		high = 1
	}
	a := axis{high: high}
	step := above(high / 6)
	// The tolerance prevents rounding errors from removing the last tick.
	for i := 0.0; i*step <= high*(1+1e-9); i++ {
		a.ticks = append(a.ticks, tick{i * step, short(i*step, unit)})
	}
	return a
}

// logarithmic returns an axis for these positive values. Its ends are 1, 2 or 5 times a power of ten.
func logarithmic(low, high float64, unit results.Unit) axis {
	a := axis{low: below(low), high: above(high), log: true}
	if a.high/a.low < 4 { // put a flat line in the middle
		a.low, a.high = below(a.low/2), above(a.high*2)
	}
	// Labels must not touch. Over many decades only some powers of ten have a label; over few decades their multiples by 2
	// and 5 have one too.
	span := math.Log10(a.high / a.low)
	every := max(1, int(math.Ceil(span/6)))
	for e := int(math.Floor(math.Log10(a.low))); e <= int(math.Ceil(math.Log10(a.high))); e++ {
		for _, digit := range []int{1, 2, 5} {
			v := float64(digit) * math.Pow10(e)
			labelled := digit == 1 && e%every == 0 || span <= 2.2 && digit == 5 || span <= 1.4 && digit == 2
			if labelled && v >= a.low*(1-1e-9) && v <= a.high*(1+1e-9) {
				a.ticks = append(a.ticks, tick{v, short(v, unit)})
			}
		}
	}
	return a
}

// above returns the smallest number ≥ v that is 1, 2 or 5 times a power of ten.
func above(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if step*power >= v*(1-1e-9) {
			return step * power
		}
	}
	return 10 * power
}

// below returns the largest number ≤ v that is 1, 2 or 5 times a power of ten. It can use above, because the reciprocal
// of such a number is such a number too.
func below(v float64) float64 { return 1 / above(1/v) }

// short formats a value in the unit u without trailing zeros: 1 ms, not 1.00 ms.
func short(v float64, u results.Unit) string {
	number, unit, spaced := strings.Cut(strings.TrimSuffix(u.Format(v), "/s"), " ") // the axis has it
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	if !spaced {
		return number
	}
	return number + " " + unit
}

// These sizes of a chart are in pixels. On a phone that is 360 pixels wide, letters are at least 11 pixels high.
const (
	chartWidth, chartHeight = 340, 240
	letter                  = 8.3 // the width of a letter in a label, in a wide font
	barHeight               = 36  // of a bar with its name
	hues                    = 7   // colours in the style sheet
)

// drawing is a chart with its elements in pixels, the input of the SVG template.
type drawing struct {
	chart
	Width, Height float64
	Alone         bool         // a file of its own, not a part of a page
	Style         template.CSS // of such a file
	WholeWidth    float64      // of such a file, with its legend
	WholeHeight   float64
	Lines         []svgLine
	Texts         []text
	Shapes        []shape

	left, right, top, bottom float64 // of the part inside the axes
	taken                    []box   // by texts and glyphs
}

// box is the rectangle that a text or a glyph covers.
type box struct{ left, top, right, bottom float64 }

func (b box) covers(o box) bool {
	return b.left < o.right && o.left < b.right && b.top < o.bottom && o.top < b.bottom
}

type svgLine struct {
	Class          string
	X1, Y1, X2, Y2 float64
}

type text struct {
	Class, Text string
	X, Y        float64
}

// shape is an SVG path with a title, which browsers show as a tooltip.
type shape struct{ Class, Path, Title string }

// ID returns the CSS class that all elements of a style have, so that the page's script can hide them.
func (m mark) ID() string { return fmt.Sprintf("s%d", m.style) }

// class returns the CSS classes of an element of this kind, including that of the style's colour.
func (m mark) class(kind string) string {
	class := fmt.Sprintf("%s hue%d %s", kind, m.style%hues, m.ID())
	// There are more styles than colours, so the second use of a colour is dashed.
	if kind == "line" && m.style >= hues {
		class += " dashed"
	}
	if kind == "line" && m.ghost {
		class += " ghost"
	}
	return class
}

// glyph returns the glyph of a style, centred on a point.
func (m mark) glyph(x, y float64) shape {
	// The forms are circle, square, triangle, diamond, triangle, cross, plus and bar, which differ even without colours.
	forms := []string{
		"m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0", "m-2.7-2.7h5.4v5.4h-5.4z", "m0-3.4l3.2 5.6h-6.4z",
		"m0-3.8l3.8 3.8l-3.8 3.8l-3.8-3.8z",
		"m0 3.4l3.2-5.6h-6.4z", "m-3-3l6 6m-6 0l6-6", "m-3.4 0h6.8m-3.4-3.4v6.8", "m-4 0h8v1.6h-8z",
	}
	return shape{Class: m.class("glyph"), Path: fmt.Sprintf("M%.1f %.1f%s", x, y, forms[m.style%len(forms)])}
}

// Draw computes the coordinates of all elements of the chart.
func (c chart) Draw() drawing {
	d := drawing{
		chart: c, Width: chartWidth, Height: chartHeight,
		left: 12, right: chartWidth - 32, top: 12, bottom: chartHeight - 40,
	}
	if c.YName != "" {
		d.top += 14
	}
	if len(c.bars) > 0 {
		d.left, d.right, d.Height = 2, chartWidth-14, d.top+barHeight*float64(len(c.bars))
		for i, b := range c.bars {
			d.bar(b, d.top+barHeight*float64(i))
		}
		return d
	}
	for _, t := range c.y.ticks {
		d.left = max(d.left, 12+letter*float64(utf8.RuneCountInString(t.label)))
	}
	d.axes()
	for _, v := range c.curves {
		d.curve(v)
	}
	for _, v := range c.curves {
		if !v.ghost {
			d.values(v)
		}
	}
	for _, m := range c.moments {
		// If there is no room for the name, it is left out. The tooltip of the line always shows it.
		x := d.at(point{m.at, d.y.low}).X
		d.Shapes = append(d.Shapes, shape{"fault", fmt.Sprintf("M%.1f %.1fV%.1f", x, d.top, d.bottom), m.name})
		name := shortened(m.name, 16)
		place := box{x + 3, d.top, x + 3 + letter*float64(utf8.RuneCountInString(name)), d.top + 14}
		if place.right < d.Width && !slices.ContainsFunc(d.taken, place.covers) {
			d.Texts, d.taken = append(d.Texts, text{"value", name, x + 3, d.top + 11}), append(d.taken, place)
		}
	}
	return d
}

// bar draws the name and the value of a strategy, and the bar below them.
func (d *drawing) bar(b bar, y float64) {
	x := func(v float64) float64 { return d.left + v/d.y.high*(d.right-d.left) }
	// room is the number of letters of the name that fit to the left of the value, with a gap of three letters.
	room := int((chartWidth-letter*float64(utf8.RuneCountInString(b.text)))/letter) - 3
	d.Texts = append(d.Texts, text{b.ID(), shortened(b.name, room), d.left, y + 16},
		text{"end " + b.ID(), b.text, chartWidth - 2, y + 16})
	d.line("grid", point{d.left, y + 26}, point{d.right, y + 26})
	end, title := x(b.high), b.name+": "+b.text
	d.Shapes = append(d.Shapes, shape{b.class("bar"), fmt.Sprintf("M%.1f %.1fH%.1f", d.left, y+26, end), title})
	if b.atLeast {
		d.Shapes = append(d.Shapes, shape{
			b.class("line") + " dotted", fmt.Sprintf("M%.1f %.1fH%.1f", end, y+26, d.right+6), title,
		}, shape{b.class("line"), fmt.Sprintf("M%.1f %.1fl6 4l-6 4", d.right+5, y+22), title})
	}
	if b.ranges.low < b.ranges.high {
		d.line("spread "+b.ID(), point{x(b.ranges.low), y + 26}, point{x(b.ranges.high), y + 26})
	}
}

// at converts a point of the chart to pixels of the drawing.
func (d *drawing) at(p point) point {
	return point{d.left + d.x.share(p.X)*(d.right-d.left), d.bottom - d.y.share(p.Y)*(d.bottom-d.top)}
}

func (d *drawing) line(class string, from, to point) {
	d.Lines = append(d.Lines, svgLine{class, from.X, from.Y, to.X, to.Y})
}

func (d *drawing) axes() {
	corner := point{d.left, d.bottom}
	// The widest label of the y axis determines the left margin.
	for _, t := range d.y.ticks {
		y := d.at(point{d.x.low, t.value}).Y
		d.line("grid", point{d.left, y}, point{d.right, y})
		d.Texts = append(d.Texts, text{"end", t.label, d.left - 5, y + 4.5})
	}
	for _, t := range d.x.ticks {
		x := d.at(point{t.value, d.y.low}).X
		d.line("grid", point{x, d.top}, point{x, d.bottom})
		d.Texts = append(d.Texts, text{"middle", t.label, x, d.bottom + 17})
	}
	d.line("axis", corner, point{d.right, d.bottom})
	d.line("axis", point{d.left, d.top}, corner)
	if d.even {
		d.line("axis dotted", d.at(point{d.x.low, 1}), d.at(point{d.x.high, 1}))
	}
}

// path returns the SVG path of the straight lines that join the points.
func (d *drawing) path(points []point) string {
	var b strings.Builder
	for i, p := range points {
		placed := d.at(p)
		fmt.Fprintf(&b, "%s%.1f %.1f", []string{"M", "L"}[min(i, 1)], placed.X, placed.Y)
	}
	return b.String()
}

// curve draws the line, its dotted part of lower bounds, the range of the runs at each point, and the glyphs. It
// reserves the places of the glyphs, so that no value is written over them.
func (d *drawing) curve(v curve) {
	d.Shapes = append(d.Shapes, shape{v.class("line"), d.path(v.line), v.name})
	if len(v.bound) > 0 {
		least := v.name + ", at least"
		d.Shapes = append(d.Shapes, shape{v.class("line") + " dotted", d.path(v.bound), least},
			v.arrow(d.at(v.bound[len(v.bound)-1]), least))
	}
	for _, e := range v.ranges {
		d.line(v.class("range"), d.at(point{e.at, e.low}), d.at(point{e.at, e.high}))
	}
	for _, s := range v.marks {
		placed := d.at(s.point)
		glyph := v.glyph(placed.X, placed.Y)
		glyph.Title = fmt.Sprintf("%s: %s, at %s", v.name, d.value(s), d.place(s.X))
		room := box{placed.X - 3, placed.Y - 3, placed.X + 3, placed.Y + 3}
		if d.Shapes = append(d.Shapes, glyph); s.atLeast {
			d.Shapes = append(d.Shapes, v.arrow(placed, glyph.Title))
			room.top -= 9
		}
		d.taken = append(d.taken, room)
	}
}

// arrow returns an upward arrow that begins at the point from. It is the sign of a lower bound.
func (m mark) arrow(from point, title string) shape {
	return shape{m.class("line"), fmt.Sprintf("M%.1f %.1fv-11m-3 3.5l3-3.5l3 3.5", from.X, from.Y), title}
}

// place returns the text for a value of the x axis: the label of its tick or, without a label, the formatted value.
func (d *drawing) place(x float64) string {
	for _, t := range d.x.ticks {
		if t.value == x && t.label != "" {
			return t.label
		}
	}
	return short(x, d.xUnit)
}

// value formats the value of a spot, with "≥" if it is a lower bound.
func (d *drawing) value(s spot) string {
	if s.atLeast {
		return "≥ " + short(s.Y, d.yUnit)
	}
	return short(s.Y, d.yUnit)
}

// values writes the value next to the curve's last glyph if there is room. The other values are only in the tooltips of
// their glyphs, because more texts would cover the lines.
func (d *drawing) values(v curve) {
	const above, below, up, down, aside, middle = 11.0, 3.0, -7.0, 17.0, 6.0, 4.0 // a letter is above its baseline
	for _, s := range v.marks[max(0, len(v.marks)-1):] {
		at, value := d.at(s.point), d.value(s)
		wide := letter * float64(utf8.RuneCountInString(value))
		for _, try := range []text{
			{"value middle", value, at.X, at.Y + up},
			{"value middle", value, at.X, at.Y + down},
			{"value end", value, at.X - aside, at.Y + middle},
			{"value", value, at.X + aside, at.Y + middle},
		} {
			left := try.X
			switch {
			case strings.HasSuffix(try.Class, "middle"):
				left -= wide / 2
			case strings.HasSuffix(try.Class, "end"):
				left -= wide
			}
			place := box{left, try.Y - above, left + wide, try.Y + below}
			inside := place.left > d.left+2 && place.right < d.Width &&
				place.top > d.top-10 && place.bottom < d.bottom+2
			if inside && !slices.ContainsFunc(d.taken, place.covers) {
				try.Class += " " + v.ID()
				d.Texts, d.taken = append(d.Texts, try), append(d.taken, place)
				break
			}
		}
	}
}

// Swatch draws the line and the glyph of a style for a legend.
func (m mark) Swatch() drawing {
	return drawing{Width: 30, Height: 12, Shapes: []shape{{m.class("line"), "M0 6H30", ""}, m.glyph(15, 6)}}
}

// file returns the drawing for a separate SVG file in light colours, with a title and, for curves, a legend.
func (c chart) file() drawing {
	d := c.Draw()
	d.Alone, d.Style = true, template.CSS(tonesSource+chartStyle) // embedded, so it is safe
	d.WholeWidth, d.WholeHeight = chartWidth+12, d.Height+44
	for i, m := range c.curves {
		y := 20 + 18*float64(i)
		d.WholeWidth, d.WholeHeight = chartWidth+210, max(d.WholeHeight, y+52)
		d.Shapes = append(d.Shapes, shape{m.class("line"), fmt.Sprintf("M%d %.1fh24", chartWidth+4, y-4), m.name},
			m.glyph(chartWidth+16, y-4))
		d.Texts = append(d.Texts, text{"", shortened(m.name, 22), chartWidth + 34, y})
	}
	return d
}

// shortened returns the name with at most this many letters. It replaces the middle of a longer name by "…" and keeps
// the end, because the names of variants often differ there.
func shortened(name string, most int) string {
	letters := []rune(name)
	if len(letters) <= most {
		return name
	}
	head := (most - 1) / 2
	return string(letters[:head]) + "…" + string(letters[len(letters)-(most-1-head):])
}
