package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/lockbench/lockbench/results"
)

var (
	//go:embed chart.svg.tmpl
	chartSource string
	//go:embed chart.css
	chartStyle string
	//go:embed tones.css
	tonesSource string
)

var chartTemplate = template.Must(template.New("chart").Parse(chartSource))

// chart is a picture of curves or bars. A timeline is curves over time.
type chart struct {
	name  string // unique on the page: 1-throughput
	title string
	note  string // how to read it

	xName, yName string
	x, y         axis
	xUnit, yUnit results.Unit
	curves       []curve
	bars         []bar
	even         bool // a broken line at y = 1
}

// mark is a strategy's name and the number of its style.
type mark struct {
	name  string
	style int
}

type point struct{ X, Y float64 }

// curve is one strategy's line. bound is the part where only a lower bound is known.
type curve struct {
	mark
	line, bound []point
	marks       []point // where its glyphs are drawn
	ranges      []extent
}

// extent is the smallest and the largest run at one point.
type extent struct{ at, low, high float64 }

// bar is one strategy's bar; atLeast says that its value is a lower bound.
type bar struct {
	mark
	value, low, high float64
	text             string
	atLeast          bool
}

// axis maps values onto the part of the chart's width or height from 0 to 1.
type axis struct {
	low, high float64
	log       bool
	ticks     []tick
}

type tick struct {
	value float64
	label string // empty where there is no room
}

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

// above returns the smallest value of 1, 2 or 5 times a power of ten that is not below v.
func above(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 5} {
		if step*power >= v*(1-1e-9) {
			return step * power
		}
	}
	return 10 * power
}

// below returns the largest such value that is not above v: the reciprocals of 1, 2 and 5 are
// again 1, 5 and 2 times a power of ten.
func below(v float64) float64 { return 1 / above(1/v) }

// short writes a tick in a metric's unit without zeros at the end: 1 ms, not 1.00 ms.
func short(v float64, u results.Unit) string {
	written := (&results.Figure{Value: v}).Text(u)
	if u == results.PerSecond {
		written = strings.TrimSuffix(written, "/s") // the axis has it
	}
	if u == results.Number && v >= 1e5 {
		written = strings.TrimSuffix((&results.Figure{Value: v}).Text(results.PerSecond), "/s")
	}
	number, unit, spaced := strings.Cut(written, " ")
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	if !spaced {
		return number
	}
	return number + " " + unit
}

// The size of a chart in pixels, and of a letter in a tick's label.
const (
	chartWidth, chartHeight = 400, 240
	letter                  = 6.2
	hues                    = 7 // colours in the style sheet
)

// drawing is a chart in pixels, as the template takes it.
type drawing struct {
	Title         string
	Width, Height float64
	Alone         bool         // a file of its own, not a part of a page
	Style         template.CSS // of such a file
	XName, YName  string
	Lines         []line
	Texts         []text
	Shapes        []shape
}

type line struct {
	Class          string
	X1, Y1, X2, Y2 float64
}

type text struct {
	Class, Text string
	X, Y        float64
}

// shape is a path with a title, which a browser shows under the pointer.
type shape struct{ Class, Path, Title string }

// class returns the classes of a style's colour.
func (m mark) class(kind string) string {
	class := fmt.Sprintf("%s hue%d", kind, m.style%hues)
	if kind == "line" && m.style >= hues {
		class += " dashed"
	}
	return class
}

// glyph returns the path of a style's mark around a point.
func (m mark) glyph(x, y float64) shape {
	forms := []string{
		"m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0", "m-2.7-2.7h5.4v5.4h-5.4z", "m0-3.4l3.2 5.6h-6.4z",
		"m0-3.8l3.8 3.8l-3.8 3.8l-3.8-3.8z",
		"m0 3.4l3.2-5.6h-6.4z", "m-3-3l6 6m-6 0l6-6", "m-3.4 0h6.8m-3.4-3.4v6.8", "m-4 0h8v1.6h-8z",
	}
	return shape{Class: m.class("glyph"), Path: fmt.Sprintf("M%.1f %.1f%s", x, y, forms[m.style%len(forms)])}
}

// path joins points by straight lines.
func path(points []point) string {
	var b strings.Builder
	for i, p := range points {
		fmt.Fprintf(&b, "%s%.1f %.1f", []string{"M", "L"}[min(i, 1)], p.X, p.Y)
	}
	return b.String()
}

// draw lays the chart out.
func (c chart) draw() drawing {
	d := drawing{Title: c.title, Width: chartWidth, Height: chartHeight, XName: c.xName, YName: c.yName}
	left, right, top, bottom := 12.0, chartWidth-20.0, 10.0, chartHeight-36.0
	if c.yName != "" {
		top += 14
	}
	for _, t := range c.y.ticks {
		left = max(left, 12+letter*float64(utf8.RuneCountInString(t.label)))
	}
	for _, b := range c.bars {
		left = max(left, 12+letter*float64(utf8.RuneCountInString(shortened(b.name, 16))))
		right = min(right, chartWidth-10-letter*float64(utf8.RuneCountInString(b.text)))
	}
	at := func(p point) point {
		return point{left + c.x.share(p.X)*(right-left), bottom - c.y.share(p.Y)*(bottom-top)}
	}
	all := func(points []point) []point {
		var placed []point
		for _, p := range points {
			placed = append(placed, at(p))
		}
		return placed
	}
	for _, t := range c.y.ticks {
		y := at(point{c.x.low, t.value}).Y
		d.Lines = append(d.Lines, line{"grid", left, y, right, y})
		d.Texts = append(d.Texts, text{"end", t.label, left - 5, y + 4})
	}
	for _, t := range c.x.ticks {
		x := at(point{t.value, c.y.low}).X
		d.Lines = append(d.Lines, line{"grid", x, top, x, bottom})
		d.Texts = append(d.Texts, text{"middle", t.label, x, bottom + 15})
	}
	d.Lines = append(d.Lines, line{"axis", left, bottom, right, bottom}, line{"axis", left, top, left, bottom})
	if c.even {
		from, to := at(point{c.x.low, 1}), at(point{c.x.high, 1})
		d.Lines = append(d.Lines, line{"axis dotted", from.X, from.Y, to.X, to.Y})
	}
	for _, v := range c.curves {
		d.Shapes = append(d.Shapes, shape{v.class("line"), path(all(v.line)), v.name})
		if len(v.bound) > 0 {
			placed := all(v.bound)
			end := placed[len(placed)-1]
			d.Shapes = append(d.Shapes, shape{v.class("line") + " dotted", path(placed), v.name + ", at least"},
				shape{
					v.class("line"), fmt.Sprintf("M%.1f %.1fv-9m-3 3.5l3-3.5l3 3.5", end.X, end.Y),
					v.name + ", at least",
				})
		}
		for _, e := range v.ranges {
			low, high := at(point{e.at, e.low}), at(point{e.at, e.high})
			d.Lines = append(d.Lines, line{v.class("range"), low.X, low.Y, high.X, high.Y})
		}
		for _, p := range v.marks {
			placed := at(p)
			glyph := v.glyph(placed.X, placed.Y)
			glyph.Title = fmt.Sprintf("%s: %s, at %s", v.name, short(p.Y, c.yUnit), short(p.X, c.xUnit))
			d.Shapes = append(d.Shapes, glyph)
		}
	}
	row := (bottom - top) / float64(max(1, len(c.bars)))
	for i, b := range c.bars {
		middle, thick := top+(float64(i)+0.5)*row, min(18, row*0.7)
		end := at(point{b.value, 0}).X
		d.Texts = append(d.Texts, text{"end", shortened(b.name, 16), left - 5, middle + 4})
		d.Shapes = append(d.Shapes, shape{
			b.class("bar"),
			fmt.Sprintf("M%.1f %.1fH%.1fv%.1fH%.1fz", left, middle-thick/2, end, thick, left), b.name + ": " + b.text,
		})
		if b.atLeast { // an open end
			d.Shapes = append(d.Shapes, shape{
				b.class("bar"),
				fmt.Sprintf("M%.1f %.1fl6 %.1fl-6 %.1fz", end, middle-thick/2, thick/2, thick/2),
				b.name + ", at least",
			})
			end += 6
		}
		if b.high > b.low {
			low, high := at(point{b.low, 0}).X, at(point{b.high, 0}).X
			d.Lines = append(d.Lines, line{"whisker", low, middle, high, middle})
			end = max(end, high)
		}
		d.Texts = append(d.Texts, text{"", b.text, end + 4, middle + 4})
	}
	return d
}

// svg returns the chart for a page, in the colours of its style sheet.
func (c chart) svg() (template.HTML, error) { return rendered(c.draw()) }

func rendered(d drawing) (template.HTML, error) {
	var b bytes.Buffer
	if err := chartTemplate.Execute(&b, d); err != nil {
		return "", fmt.Errorf("draw %q: %w", d.Title, err)
	}
	return template.HTML(b.String()), nil // escaped by its template
}

// swatch draws a style for a legend.
func (m mark) swatch() (template.HTML, error) {
	return rendered(drawing{Width: 30, Height: 12, Shapes: []shape{{m.class("line"), "M0 6H30", ""}, m.glyph(15, 6)}})
}

// file returns the chart as a file of its own, with its title and a legend, in light colours.
func (c chart) file() (template.HTML, error) {
	d := c.draw()
	d.Alone, d.Style = true, template.CSS(tonesSource+chartStyle) // our own
	for i, m := range c.strategies() {
		y := 20 + 18*float64(i)
		d.Shapes = append(d.Shapes, shape{m.class("line"), fmt.Sprintf("M%d %.1fh24", chartWidth+4, y-4), m.name},
			m.glyph(chartWidth+16, y-4))
		d.Texts = append(d.Texts, text{"", shortened(m.name, 22), chartWidth + 34, y})
	}
	return rendered(d)
}

// strategies returns those in the chart.
func (c chart) strategies() []mark {
	var all []mark
	for _, v := range c.curves {
		all = append(all, v.mark)
	}
	for _, b := range c.bars {
		all = append(all, b.mark)
	}
	return all
}

// shortened cuts a long name in its middle, because variants often differ at the end.
func shortened(name string, most int) string {
	letters := []rune(name)
	if len(letters) <= most {
		return name
	}
	head := (most - 1) / 2
	return string(letters[:head]) + "…" + string(letters[len(letters)-(most-1-head):])
}
