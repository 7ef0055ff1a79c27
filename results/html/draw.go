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

// figure is one picture and what is said of it.
type figure struct {
	name  string // of its file, without an extension
	title string
	note  string // how to read it
	plot  chart
	marks []mark // what is drawn in it
}

// mark is a line's name and look.
type mark struct {
	name  string
	style style
}

const (
	pictureWidth  = 400 // points; close to a phone's pixels, so that letters keep their size
	pictureHeight = 240
)

// svg is the figure for a page, in the colours of its style sheet.
func (f figure) svg() (template.HTML, error) {
	canvas := vgsvg.New(pictureWidth, pictureHeight)
	f.plot.draw(draw.Crop(draw.New(canvas), 4, -10, 3, -2)) // room for the ends of labels
	return inline(canvas, f.title)
}

// swatch is a look as it stands in a legend.
func swatch(l style) (template.HTML, error) {
	canvas := vgsvg.New(30, 12)
	c := draw.New(canvas)
	l.Thumbnail(&c)
	return inline(canvas, "")
}

// typography is what every letter would have of its own, and the page says once.
const typography = "font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;"

// inline takes a picture out of its document. Colours become the style sheet's,
// so that they follow the reader's light or dark.
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
	// What it is made of has been escaped by the one that drew it.
	return template.HTML(fmt.Sprintf(`<svg viewBox="%s" %s>`, box, role) + strings.NewReplacer(less...).Replace(body)), nil
}

// Slides have the form of a screen, 1600 pixels wide.
const (
	slideWidth  = 8 * vg.Inch
	slideHeight = 4.5 * vg.Inch
	slideDPI    = 200
	legendWidth = 1.9 * vg.Inch
)

// png is the figure as a picture that stands for itself: title and legend are in
// it, on white.
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

// shortened cuts a long name in its middle: variants may differ at their ends.
func shortened(name string, most int) string {
	letters := []rune(name)
	if len(letters) <= most {
		return name
	}
	head := (most - 1) / 2
	return string(letters[:head]) + "…" + string(letters[len(letters)-(most-1-head):])
}

// slide is the figure as a file of its own.
func (f figure) slide() (Picture, error) {
	var encoded bytes.Buffer
	if err := f.png(&encoded); err != nil {
		return Picture{}, err
	}
	return Picture{Name: f.name + ".png", PNG: encoded.Bytes()}, nil
}
