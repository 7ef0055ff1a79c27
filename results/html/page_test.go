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

// TestPages holds every page against what all of them must be.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, page := range written() {
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
		if len(pictures) == 0 && name != "empty" {
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

// picturesOf are those of a page, in order.
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

// TestHostileNames come out as they are written and do nothing.
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

// TestText compares a page's words, without its pictures, with what was accepted.
func TestText(t *testing.T) {
	t.Parallel()
	page := written()["rounds"]
	page = page[strings.Index(page, "<body>"):]
	for _, p := range picturesOf(page) {
		page = strings.Replace(page, p, "", 1)
	}
	page = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")
	page = regexp.MustCompile(`[ \t]+`).ReplaceAllString(page, " ")
	page = regexp.MustCompile(`\s*\n\s*`).ReplaceAllString(page, "\n")
	golden.Compare(t, "testdata/rounds.txt.golden", page)
}

// TestCharts: each has a name of its own, and is a file of its own.
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

// TestCensoredPart: a curve goes on dotted where waits had not ended, and only
// there.
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
	d := results.Describe(results.Observations{Ended: results.Counted(ended), Censored: results.Counted(censored)},
		&results.Bound{NS: 5e9, AtLeast: true})
	cells[0].Used[0].Waiting.PerAcquisition = d
	c := withPercentiles(chart{}, cells, perAcquisition).curves[0]
	if last := c.line[len(c.line)-1]; last.Y > 1.01e6 || last.X > 2 {
		t.Errorf("half of the waits ended, the curve goes on to %v", last)
	}
	if len(c.bound) != 2 || c.bound[0].Y != 5e9 || c.bound[0].X < 2 {
		t.Errorf("the other half is at least 5 s, drawn as %v", c.bound)
	}
}
