package trend

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
)

const (
	imageWidth  = 8 * vg.Inch
	imageHeight = 2.5 * vg.Inch // of each series
)

// WriteSVG draws every series, one below the other.
func WriteSVG(w io.Writer, all []Series) error {
	canvas := vgsvg.New(imageWidth, height(all))
	return drawn(w, all, canvas, canvas)
}

// WritePNG is WriteSVG for a PNG.
func WritePNG(w io.Writer, all []Series) error {
	canvas := vgimg.PngCanvas{Canvas: vgimg.New(imageWidth, height(all))}
	return drawn(w, all, canvas, canvas)
}

func height(all []Series) vg.Length { return imageHeight * vg.Length(max(1, len(all))) }

func drawn(w io.Writer, all []Series, canvas vg.CanvasSizer, out io.WriterTo) error {
	whole := draw.New(canvas)
	for i, s := range all {
		top := whole.Max.Y - imageHeight*vg.Length(i)
		s.figure().Draw(draw.Crop(whole, 0, 0, top-imageHeight-whole.Min.Y, top-whole.Max.Y))
	}
	if _, err := out.WriteTo(w); err != nil {
		return fmt.Errorf("write trend: %w", err)
	}
	return nil
}

// figure draws one series: points over time, and the level of each segment.
func (s Series) figure() *plot.Plot {
	p := plot.New()
	p.Title.Text = s.Strategy + " " + s.Metric.Compared.Label
	p.X.Label.Text = "report"
	p.Y.Tick.Marker = ticks{s}
	var points plotter.XYs
	for i, point := range s.Points {
		points = append(points, plotter.XY{X: float64(i + 1), Y: point.Value})
	}
	dots := draw.GlyphStyle{Color: color.RGBA{R: 31, G: 119, B: 180, A: 255}, Shape: draw.CircleGlyph{}, Radius: vg.Points(2)}
	p.Add(plotter.NewGrid(), &plotter.Scatter{XYs: points, GlyphStyle: dots})
	steps := draw.LineStyle{Color: color.RGBA{R: 214, G: 39, B: 40, A: 255}, Width: vg.Points(1.5)}
	from := 0
	for i := range len(s.Changes) + 1 {
		to, level := len(s.Points), 0.0
		switch {
		case i < len(s.Changes):
			to, level = s.Changes[i].At, s.Changes[i].Before
		case i > 0:
			level = s.Changes[i-1].After
		default:
			level = medianOf(s.Points)
		}
		p.Add(&plotter.Line{XYs: plotter.XYs{{X: float64(from) + 0.5, Y: level}, {X: float64(to) + 0.5, Y: level}}, LineStyle: steps})
		from = to
	}
	return p
}

// ticks writes ticks in the metric's unit.
type ticks struct{ of Series }

// Ticks implements plot.Ticker.
func (t ticks) Ticks(low, high float64) []plot.Tick {
	marks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range marks {
		if marks[i].Label != "" {
			marks[i].Label = compare.Write(t.of.Metric, marks[i].Value)
		}
	}
	return marks
}

func medianOf(points []Point) float64 {
	var values []float64
	for _, p := range points {
		values = append(values, p.Value)
	}
	return results.Median(values)
}
