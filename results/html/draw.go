package html

import (
	"bytes"
	"fmt"
	"html/template"
	"image/color"
	"io"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// figure is one picture with its title and note.
type figure struct {
	name  string // of its file, without an extension
	title string
	note  string // how to read it
	plot  chart
	marks []mark // the strategies in it
}

// mark is a strategy's name and style.
type mark struct {
	name  string
	style style
}

const (
	pictureWidth  = 400 // points; close to a phone's pixels, so that letters keep their size
	pictureHeight = 240
)

// svg returns the figure for a page, in the colours of its style sheet.
func (f figure) svg() (template.HTML, error) {
	canvas := vgsvg.New(pictureWidth, pictureHeight)
	f.plot.draw(draw.Crop(draw.New(canvas), 4, -10, 3, -2)) // room for the ends of labels
	return inline(canvas, f.title)
}

// swatch draws a style for a legend.
func swatch(l style) (template.HTML, error) {
	canvas := vgsvg.New(30, 12)
	c := draw.New(canvas)
	l.Thumbnail(&c)
	return inline(canvas, "")
}

// typography is the style of every letter; the page's style sheet has it once for all.
const typography = "font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;"

// inline removes a picture's document frame. It replaces colours by variables of the style
// sheet, which follow the reader's light or dark mode.
func inline(canvas *vgsvg.Canvas, label string) (template.HTML, error) {
	var document bytes.Buffer
	if _, err := canvas.WriteTo(&document); err != nil {
		return "", fmt.Errorf("draw %s: %w", label, err)
	}
	_, frame, found := strings.Cut(document.String(), "<svg ")
	frame, body, closed := strings.Cut(frame, ">")
	_, box, sized := strings.Cut(frame, `viewBox="`)
	box, _, _ = strings.Cut(box, `"`)
	if !found || !closed || !sized {
		return "", fmt.Errorf("draw %s: the picture has no frame", label)
	}
	role := `aria-hidden="true"`
	if label != "" {
		role = `role="img" aria-label="` + template.HTMLEscapeString(label) + `"`
	}
	less := []string{typography, "", "\n\t", " "}
	for _, t := range tones() {
		less = append(less, ":"+t.Light, ":var(--"+t.Name+")")
	}
	// The functions that drew the parts have escaped them.
	return template.HTML(fmt.Sprintf(`<svg viewBox="%s" %s>`, box, role) + strings.NewReplacer(less...).Replace(body)), nil
}

// A slide has the proportions of a screen and is 1600 pixels wide.
const (
	slideWidth  = 8 * vg.Inch
	slideHeight = 4.5 * vg.Inch
	slideDPI    = 200
	legendWidth = 1.9 * vg.Inch
)

// png draws the figure as a picture of its own: with title and legend, on white.
func (f figure) png(w io.Writer) error {
	canvas := vgimg.NewWith(vgimg.UseWH(slideWidth, slideHeight), vgimg.UseDPI(slideDPI), vgimg.UseBackgroundColor(color.White))
	whole := draw.New(canvas)
	whole = draw.Crop(whole, 8, -8, 8, -8)
	title := f.plot.Title.TextStyle
	title.XAlign, title.YAlign = draw.XLeft, draw.YTop
	whole.FillText(title, vg.Point{X: whole.Min.X, Y: whole.Max.Y}, f.title)
	whole = draw.Crop(whole, 0, 0, 0, -26)
	legend := plot.NewLegend()
	legend.TextStyle = f.plot.Legend.TextStyle
	legend.Top, legend.Left, legend.Padding, legend.ThumbnailWidth = true, true, 4, 22
	for _, m := range f.marks {
		legend.Add(shortened(m.name, 22), m.style)
	}
	f.plot.draw(draw.Crop(whole, 0, -legendWidth, 0, 0))
	legend.Draw(draw.Crop(whole, slideWidth-legendWidth-8, 0, 0, -20))
	if _, err := (vgimg.PngCanvas{Canvas: canvas}).WriteTo(w); err != nil {
		return fmt.Errorf("draw %s: %w", f.name, err)
	}
	return nil
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

// slide returns the figure as a file of its own.
func (f figure) slide() (Picture, error) {
	var encoded bytes.Buffer
	if err := f.png(&encoded); err != nil {
		return Picture{}, err
	}
	return Picture{Name: f.name + ".png", PNG: encoded.Bytes()}, nil
}
