package html

import (
	"image/color"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/lockbench/lockbench/results"
)

// tone is a named colour of the style sheet, for a light and for a dark background. Pictures
// are drawn with the light one.
type tone struct{ Name, Light, Dark string }

// The hues are those of Okabe and Ito, which colour-blind people can distinguish (Color
// Universal Design, 2008), without yellow and black; the two brightest are darker for white
// paper. Lines also differ in their glyphs.
var (
	ink   = tone{"ink", "#1C2128", "#E6E9EE"}
	quiet = tone{"quiet", "#5B6471", "#9AA4B2"}
	grid  = tone{"grid", "#DFE3E8", "#30363F"}
	hues  = []tone{
		{"hue0", "#0072B2", "#5BB0F0"},
		{"hue1", "#D55E00", "#FF8C42"},
		{"hue2", "#009E73", "#2CC99A"},
		{"hue3", "#B4588F", "#E592C4"},
		{"hue4", "#3A97D0", "#A5DBFF"},
		{"hue5", "#B97C00", "#F2C14E"},
		{"hue6", "#6B7280", "#C3C9D2"},
	}
)

func tones() []tone { return append([]tone{ink, quiet, grid}, hues...) }

func (t tone) RGBA() (r, g, b, a uint32) {
	c, err := strconv.ParseUint(t.Light[1:], 16, 24) // called for every pixel
	if err != nil {
		panic("html: colour " + t.Light)
	}
	return color.RGBA{R: uint8(c >> 16), G: uint8(c >> 8), B: uint8(c), A: 255}.RGBA()
}

// style is a strategy's line and glyph in all figures.
type style struct {
	draw.LineStyle
	draw.GlyphStyle
}

var (
	glyphs = []draw.GlyphDrawer{
		draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.RingGlyph{}, draw.BoxGlyph{},
		draw.PyramidGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{},
	}
	dotted = []vg.Length{1.5, 2.5}
)

// styleOf returns the style of strategy number i.
func styleOf(i int) style {
	hue := hues[i%len(hues)]
	l := style{
		draw.LineStyle{Color: hue, Width: 1.6},
		draw.GlyphStyle{Color: hue, Radius: 2.8, Shape: glyphs[i%len(glyphs)]},
	}
	if i >= len(hues) {
		l.Dashes = []vg.Length{6, 2}
	}
	return l
}

// Thumbnail implements plot.Thumbnailer.
func (l style) Thumbnail(c *draw.Canvas) {
	y := c.Center().Y
	c.StrokeLine2(l.LineStyle, c.Min.X, y, c.Max.X, y)
	c.DrawGlyph(l.GlyphStyle, c.Center())
}

func sans(size vg.Length) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
}

// chart is a plot with the axis names outside: inside, they take room at the end of a
// logarithmic axis.
type chart struct {
	*plot.Plot
	x, y string
}

// draw draws the chart: the name of y above it, the name of x below it.
func (c chart) draw(on draw.Canvas) {
	style := text.Style{Font: sans(10.5), Color: quiet, Handler: c.TextHandler, YAlign: draw.YTop}
	height := style.FontExtents().Height
	if c.y != "" {
		on.FillText(style, vg.Point{X: on.Min.X, Y: on.Max.Y}, c.y)
		on = draw.Crop(on, 0, 0, 0, -height-4)
	}
	if c.x != "" {
		style.XAlign, style.YAlign = draw.XRight, draw.YBottom
		on.FillText(style, vg.Point{X: on.Max.X, Y: on.Min.Y}, c.x)
		on = draw.Crop(on, 0, 0, height+2, 0)
	}
	c.Draw(on)
}

// newChart returns an empty chart in the page's style.
func newChart(x, y string) chart {
	p := plot.New()
	p.BackgroundColor = nil // the page's
	p.Title.TextStyle.Font, p.Title.TextStyle.Color, p.Title.Padding = sans(14), ink, 8
	p.Legend.TextStyle.Font, p.Legend.TextStyle.Color = sans(10), ink
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Tick.Label.Font, axis.Tick.Label.Color = sans(10), ink
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = quiet, quiet
		axis.LineStyle.Width, axis.Tick.LineStyle.Width = 0.7, 0.7
		axis.Tick.Length, axis.Padding = 4, 3
	}
	lines := plotter.NewGrid()
	lines.Horizontal.Color, lines.Vertical.Color = grid, grid
	lines.Horizontal.Width, lines.Vertical.Width = 0.6, 0.6
	p.Add(lines)
	return chart{p, x, y}
}

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

// linear puts ticks on a linear axis.
type linear struct{ unit results.Unit }

// Ticks implements plot.Ticker.
func (l linear) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = short(ticks[i].Value, l.unit)
		}
	}
	return ticks
}

// decades puts ticks on a logarithmic axis; it labels 2 and 5 too if there are few.
type decades struct{ unit results.Unit }

// Ticks implements plot.Ticker.
func (d decades) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	span := math.Log10(high / low)
	every := max(1, int(math.Ceil(span/6)))
	for e := int(math.Floor(math.Log10(low))); e <= int(math.Ceil(math.Log10(high))); e++ {
		for digit := 1.0; digit <= 9; digit++ {
			v := digit * math.Pow10(e)
			if v < low*(1-1e-9) || v > high*(1+1e-9) {
				continue
			}
			tick := plot.Tick{Value: v}
			if digit == 1 && e%every == 0 || span <= 2.2 && digit == 5 || span <= 1.4 && digit == 2 {
				tick.Label = short(v, d.unit)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// logarithmic sets a logarithmic scale for these positive values. Its ends are 1, 2 or 5
// times a power of ten.
func logarithmic(a *plot.Axis, low, high float64, unit results.Unit) {
	a.Scale = plot.LogScale{}
	a.Min, a.Max = below(low), above(high)
	if a.Max/a.Min < 4 { // put a flat line in the middle
		a.Min, a.Max = below(a.Min/2), above(a.Max*2)
	}
	a.Tick.Marker = decades{unit}
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
