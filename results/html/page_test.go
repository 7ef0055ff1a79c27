package html

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// TestPages checks all test pages. No page may be too large or contain a URL. A browser must fetch nothing for a page,
// and run only the page's own script. Charts must be well-formed, have no undefined coordinates, and set no fonts or
// colours of their own.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, page := range written() {
		page, scripts := withoutScript(page)
		if live := strings.HasSuffix(name, ", live"); scripts != 1 && !live || scripts > 0 && live { // the server adds them
			t.Errorf("%s has its script %d times", name, scripts)
		}
		if most := 2 << 20; len(page) > most {
			t.Errorf("%s has %d bytes, more than %d", name, len(page), most)
		}
		if strings.Contains(page, "://") && name != "hostile" {
			t.Errorf("%s names an address", name)
		}
		for _, loud := range []string{"<script", "javascript:", "@import", "url(", "<iframe", "<img"} {
			if strings.Contains(strings.ToLower(page), loud) {
				t.Errorf("%s has something that is run or fetched: %s", name, loud)
			}
		}
		pictures := picturesOf(page)
		if len(pictures) == 0 && !strings.HasPrefix(name, "empty") {
			t.Errorf("%s has no picture", name)
		}
		for _, p := range pictures {
			if err := wellFormed(p); err != nil {
				t.Errorf("%s: %v in %s", name, err, p)
			}
			if strings.Contains(p, "font-family") {
				t.Errorf("%s: the letters of a picture have a font of their own", name)
			}
			if strings.Contains(p, "NaN") || strings.Contains(p, "Inf") {
				t.Errorf("%s: a picture has a point nowhere", name)
			}
			if _, colour, fixed := strings.Cut(p, ":#"); fixed {
				t.Errorf("%s: #%.6s is the same in the light and in the dark", name, colour)
			}
		}
	}
}

// withoutScript removes the embedded script from a page, and also returns how often the page contained it.
func withoutScript(page string) (string, int) {
	own := "<script>" + Script + "</script>"
	return strings.ReplaceAll(page, own, ""), strings.Count(page, own)
}

func picturesOf(page string) []string {
	var all []string
	for _, rest := range strings.Split(page, "<svg ")[1:] {
		body, _, _ := strings.Cut(rest, "</svg>")
		all = append(all, "<svg "+body+"</svg>")
	}
	return all
}

func wellFormed(document string) error {
	decoder := xml.NewDecoder(strings.NewReader(document))
	for {
		if _, err := decoder.Token(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// TestHostileNames checks that names that contain HTML or scripts appear on a page as plain text.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	page := written()["hostile"]
	for _, want := range []string{
		`&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;`, `a &amp; b&#39;s &#34;lock&#34;`,
		`&lt;b&gt;&#34;name&#34;.json`,
		`&lt;img src=x onerror=&#34;alert(1)&#34;&gt;`, `&lt;/style&gt;&lt;script&gt;alert(2)`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, name := range []string{`<script>alert("x")</script>`, `a & b's "lock"`} {
		got := words.Quoted(name)
		if !strings.HasPrefix(got, "'") || strings.Count(strings.ReplaceAll(got, `'\''`, ""), "'") != 2 {
			t.Errorf("a shell would read %s otherwise", got)
		}
	}
}

// TestText compares the words of the page "rounds", without those in its charts, with the golden file.
func TestText(t *testing.T) {
	t.Parallel()
	page, _ := withoutScript(written()["rounds"])
	page = page[strings.Index(page, "<body>"):]
	for _, p := range picturesOf(page) {
		page = strings.Replace(page, p, "", 1)
	}
	page = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")
	page = regexp.MustCompile(`[ \t]+`).ReplaceAllString(page, " ")
	page = regexp.MustCompile(`\s*\n\s*`).ReplaceAllString(page, "\n")
	golden.Compare(t, "testdata/rounds.txt.golden", page)
}

// TestCharts checks that each chart has a unique name and can be written as a separate file.
func TestCharts(t *testing.T) {
	t.Parallel()
	files := pages()["hostile"]
	var names []string
	for _, c := range charts(files) {
		names = append(names, c.name)
	}
	for _, want := range []string{"1-wait-c100", "1-fairness-c100", "1-timeline-c100"} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no %s among %v", want, names)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(names) {
		t.Errorf("two charts have one name: %v", names)
	}
	for _, name := range names {
		var svg bytes.Buffer
		err := WriteChart(&svg, files, name)
		if err == nil {
			err = wellFormed(svg.String())
		}
		if err != nil || !bytes.Contains(svg.Bytes(), []byte("&lt;script&gt;")) ||
			bytes.Contains(svg.Bytes(), []byte("<script")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := WriteChart(io.Discard, files, "1-nothing"); err == nil {
		t.Error("there is a chart that is not on the page")
	}
}

// TestBars checks that an unknown value has a bar with a label but no height, that the axis of a share ends at 100 %,
// and that the bar of a lower bound has an open end.
func TestBars(t *testing.T) {
	t.Parallel()
	r := synthetic([]string{"spin", "pubsub"}, []int{100}, 1)
	r.Runs[0].Speed.Utilisation, r.Runs[1].Speed.Utilisation = 0.25, 0.5
	r.Runs[0].Server.Window.CPU = nil
	a := families([]results.File{{Name: "a", Report: r}})[0].top()
	c, known := a.withBars(chart{}, results.MustMetric("utilisation"))
	if !known || c.y.high != 100 || c.bars[1].text != "50.0 %" || c.bars[1].high != 50 {
		t.Errorf("%v, to %v: %+v", known, c.y.high, c.bars)
	}
	cpu := results.MustMetric("redis_cpu_per_acq")
	if c, known := a.withBars(chart{}, cpu); !known || c.bars[0].text != results.NotKnown || c.bars[0].high != 0 {
		t.Errorf("%v: %+v", known, c.bars)
	}
	a.cells = a.cells[:1]
	if _, known := a.withBars(chart{}, cpu); known {
		t.Error("nothing is known, and drawn")
	}
	exact := chart{y: axis{high: 2}, bars: []bar{{high: 1, text: "1 s"}}}
	least := bar{high: 1, text: "≥ 1 s", atLeast: true}
	open := chart{y: axis{high: 2}, bars: []bar{least}}
	if n, more := len(exact.Draw().Shapes), len(open.Draw().Shapes); n != 1 || more != 3 {
		t.Errorf("%d shapes, and %d of a lower bound", n, more)
	}
}

// TestValues draws nine marks close together. Some of their values must be left out for lack of room, and no two of the
// others may overlap.
func TestValues(t *testing.T) {
	t.Parallel()
	crowd := chart{x: linear(10, results.Number), y: linear(10, results.Number)}
	for i := range 9 {
		c := curve{mark: mark{name: "a", style: i}}
		c.marks = append(c.marks, spot{point: point{X: 5, Y: 5 + float64(i)/100}})
		crowd.curves = append(crowd.curves, c)
	}
	d := crowd.Draw()
	places := d.taken[len(crowd.curves):]
	if len(places) == 0 || len(places) == len(crowd.curves) {
		t.Errorf("%d values at %d marks of one place", len(places), len(crowd.curves))
	}
	for i, place := range places {
		if slices.ContainsFunc(places[i+1:], place.covers) {
			t.Errorf("a value lies on another at %v", place)
		}
	}
}

// TestCensoredPart checks that a curve is dotted exactly where only lower bounds are known, because some waits had not
// ended.
func TestCensoredPart(t *testing.T) {
	t.Parallel()
	r := synthetic([]string{"spin"}, []int{100}, 1)
	perAcquisition := func(r results.Run) results.Distribution { return r.Waiting.PerAcquisition }
	cells := families([]results.File{{Name: "a", Report: r}})[0].top().cells
	handoffs := withPercentiles(chart{}, cells, func(r results.Run) results.Distribution { return r.Speed.Handoff })
	if len(handoffs.curves[0].bound) != 0 {
		t.Errorf("handoffs have all ended, %v", handoffs.curves[0].bound)
	}
	ended, censored := results.NewHistogram(), results.NewHistogram()
	for range 60 {
		_, _ = ended.RecordValue(1e6), censored.RecordValue(5e9)
	}
	d := results.Describe(results.Observations{Ended: results.Counted(ended), Open: results.Counted(censored)},
		&results.Bound{NS: 5e9, AtLeast: true})
	cells[0].Used[0].Waiting.PerAcquisition = d
	c := withPercentiles(chart{}, cells, perAcquisition).curves[0]
	if last := c.line[len(c.line)-1]; last.Y > 1.01e6 || last.X > 2 {
		t.Errorf("half of the waits ended, the curve goes on to %v", last)
	}
	if len(c.bound) < 2 || c.bound[1].Y != 5e9 || c.bound[1].X < 2 || c.bound[0] != c.line[len(c.line)-1] {
		t.Errorf("the other half is at least 5 s, drawn as %v", c.bound)
	}
	var values []string
	drawn := withPercentiles(chart{}, cells, perAcquisition).Draw()
	for _, s := range c.marks {
		values = append(values, drawn.value(s))
	}
	if !slices.Equal(values, []string{"1 ms", "≥ 5 s", "≥ 5 s"}) {
		t.Errorf("p50, p90 and p99 are %q", values)
	}
}

// A lock was acquired once in 2 s. The live chart of the throughput must show 0.5 and not 0.
func TestLiveFiguresBelowOne(t *testing.T) {
	run := results.Run{Timeline: []results.Slice{{Seconds: 2, Acquisitions: 1}}}
	l := Live{Report: &results.Report{Runs: []results.Run{run}}}
	got := l.Seconds(l.Shown())
	if len(got) == 0 || len(got[0].curves) != 1 || got[0].curves[0].line[0].Y != 0.5 {
		t.Errorf("the chart of throughput: %+v", got)
	}
}

func TestSweepTableHasRowPerPoint(t *testing.T) {
	t.Parallel()
	r := synthetic([]string{"spin", "pubsub"}, []int{10, 50, 100}, 1)
	f := families([]results.File{{Name: "a", Report: r}})[0]
	var titles []string
	for _, row := range f.Table().Rows {
		titles = append(titles, row[0])
	}
	want := []string{
		"spin clients=10", "pubsub clients=10", "spin clients=50", "pubsub clients=50", "spin clients=100",
		"pubsub clients=100",
	}
	if !slices.Equal(titles, want) {
		t.Errorf("the rows are %q", titles)
	}
	one := families([]results.File{{Name: "a", Report: synthetic([]string{"spin"}, []int{10}, 1)}})[0]
	if got := one.Table().Rows[0][0]; got != "spin" {
		t.Errorf("without a sweep the row is %q", got)
	}
}
