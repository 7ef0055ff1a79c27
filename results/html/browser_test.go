//go:build browser

package html

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/lockbench/lockbench/internal/testkit/chromium"
)

// TestBrowserPage visits pages in headless Chromium (make browser). The browser and axe-core must report no error. The
// page must fetch nothing, no element may overflow, every letter and colour must be visible, and no two labels of a
// chart may overlap. With LOCKBENCH_PICTURES=DIR the test keeps screenshots.
func TestBrowserPage(t *testing.T) {
	browser := chromium.Start(t)
	for name, page := range written() {
		file := filepath.Join(t.TempDir(), "report.html")
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int64{390, 1280} {
			for _, scheme := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("%s %d %s", name, width, scheme),
					func(t *testing.T) { visit(t, browser, file, width, scheme) })
			}
		}
	}
}

// TestBrowserScript uses only the keyboard to sort a table and to hide a strategy.
func TestBrowserScript(t *testing.T) {
	browser := chromium.Start(t)
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(written()["sweep"]), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{390, 1280} {
		t.Run(fmt.Sprint(width), func(t *testing.T) { useScript(t, browser, file, width) })
	}
}

// TestBrowserTablesWithoutOrder checks that a table offers no sorting if one of its rows continues the row above it.
func TestBrowserTablesWithoutOrder(t *testing.T) {
	tab := chromium.Open(t, chromium.Start(t), time.Minute, nil)
	for name, want := range map[string]int{"empty document": 1, "empty with a subrow": 0} {
		file := filepath.Join(t.TempDir(), "page.html")
		if err := os.WriteFile(file, []byte(written()[name]), 0o600); err != nil {
			t.Fatal(err)
		}
		tab.Visit("file://"+file, 1280)
		if got := len(tab.All(`[...document.querySelectorAll("th button")].map(e => e.textContent)`)); got != want {
			t.Errorf("%s: %d headings sort, want %d", name, got, want)
		}
	}
}

func useScript(t *testing.T, browser context.Context, file string, width int64) {
	tab := chromium.Open(t, browser, time.Minute, nil)
	tab.Visit("file://"+file, width)
	shows, press := tab.All, tab.Press
	// reach presses Tab until the focus is on the control with the given text.
	reach := func(text string) {
		t.Helper()
		for range 60 {
			if press(kb.Tab); shows(`[document.activeElement.textContent]`)[0] == text {
				return
			}
		}
		t.Fatalf("the keyboard does not reach %q", text)
	}
	const column = `[...document.querySelector("table").tBodies[0].rows].map(row => row.cells[3].textContent)`
	const order = `[...document.querySelectorAll("table [aria-sort]")].map(e => e.textContent + " " + e.ariaSort)`
	before := shows(column)
	reach("gap")
	press(kb.Enter)
	sorted := shows(column)
	if got := shows(order); !slices.Equal(got, []string{"gap ascending"}) || slices.Equal(before, sorted) {
		t.Errorf("Enter on the heading sorted by %q: %q", got, sorted)
	}
	press(" ")
	reversed := shows(column)
	if got := shows(order); !slices.Equal(got, []string{"gap descending"}) {
		t.Errorf("the space bar sorted by %q", got)
	}
	var values []float64
	for _, text := range sorted {
		number, unit, _ := strings.Cut(text, " ")
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value*map[string]float64{"µs": 1e3, "ms": 1e6, "s": 1e9}[unit])
	}
	slices.Sort(before)
	slices.Reverse(reversed)
	if !slices.IsSorted(values) || !slices.Equal(sorted, reversed) {
		t.Errorf("the gaps are sorted as %q, and as %q in reverse", sorted, reversed)
	}

	hidden := `[...document.querySelectorAll("figure .s2")].filter(e => getComputedStyle(e).visibility == "hidden")
		.map(e => e.className.baseVal)`
	pressed := `[...document.querySelectorAll(".legend [aria-pressed=false]")].map(e => e.textContent)`
	reach("handoff")
	press(" ")
	if n, got := len(shows(hidden)), shows(pressed); n == 0 || len(got) == 0 || got[0] != "handoff" {
		t.Errorf("%d shapes of handoff are hidden, and pressed are %q", n, got)
	}
	others := strings.ReplaceAll(hidden, ".s2", ".s3")
	if n := len(shows(others)); n > 0 {
		t.Errorf("%d shapes of another strategy are hidden", n)
	}
	if got := shows(`[document.activeElement.textContent]`); got[0] != "handoff" {
		t.Errorf("the focus is on %q", got)
	}
	if press(kb.Enter); len(shows(hidden))+len(shows(pressed)) > 0 {
		t.Error("handoff does not come back")
	}
}

// visit opens the page in file in a window of the given width and colour scheme. It checks the page on the screen, and
// then in the print layout.
func visit(t *testing.T, browser context.Context, file string, width int64, scheme string) {
	tab := chromium.Open(t, browser, 30*time.Second, func(event any) string { return complaintOf(event, "file://"+file) })
	if _, err := chromedp.Call(tab, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	tab.Scheme(scheme, "")
	tab.Visit("file://"+file, width)
	t.Logf("loaded in %s ms", tab.One(`performance.getEntriesByType("navigation")[0].loadEventEnd.toFixed()`))
	found := tab.All(faults)
	tab.Picture(filepath.Base(t.Name()))
	found = append(found, tab.Audit()...)
	tab.Scheme(scheme, "print")
	for _, fault := range append(found, tab.All(printed)...) {
		t.Error(fault)
	}
}

// complaintOf describes event if the page wrote to the console or fetched something, which it must not do. For other
// events it returns "".
func complaintOf(event any, page string) string {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		return fmt.Sprintf("it writes %s to the console", e.Type)
	case *network.EventRequestWillBeSent:
		if e.Request.URL != page && e.Request.URL != "data:," {
			return "it fetches " + e.Request.URL
		}
	}
	return ""
}

// printed is a script that checks the print layout. It reports missing charts, and a background that is not white.
const printed = `(() => {
	document.querySelectorAll("details").forEach(d => { d.open = false });
	const found = [], tone = getComputedStyle(document.body).backgroundColor;
	if (tone != "rgb(255, 255, 255)") found.push("it is printed on " + tone);
	const hidden = [...document.querySelectorAll("details svg")].filter(e => !e.checkVisibility());
	if (hidden.length) found.push(hidden.length + " charts are not printed");
	return found;
})()`

// faults is a script that lists faults of the page: elements that overflow the page, their table or their chart, labels
// that overlap, letters that are too small, and chart colours with too little contrast to the background. The contrast
// is that of WCAG 1.4.11, which axe-core does not check.
const faults = `(() => {
	document.querySelectorAll("details").forEach(d => { d.open = true });
	const found = [], wide = document.documentElement.clientWidth;
	if (document.documentElement.scrollWidth > wide)
		found.push("the page is " + document.documentElement.scrollWidth + " pixels wide");
	for (const e of document.querySelectorAll("main *")) {
		if (e.closest(".scroll") && !e.classList.contains("scroll")) continue;
		const box = e.getBoundingClientRect();
		if (box.right > wide + 0.5 || box.left < -0.5)
			found.push(e.tagName + " sticks out: " + e.textContent.slice(0, 40));
	}
	for (const box of document.querySelectorAll(".scroll"))
		if (wide < 500 && box.scrollWidth > box.clientWidth) found.push("a table is wider than a phone");
	const luminance = tone => {
		const [r, g, b] = tone.match(/[\d.]+/g).map(v => v / 255)
			.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const contrast = (a, b) => {
		const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
		return (high + 0.05) / (low + 0.05);
	};
	for (const e of document.querySelectorAll("main :not(svg, svg *), figure text")) {
		const svg = e.ownerSVGElement;
		const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
		const pixels = parseFloat(getComputedStyle(e).fontSize) * scale;
		if (e.childElementCount == 0 && e.tagName != "title" && e.textContent.trim() && pixels < 11)
			found.push(pixels.toFixed(1) + " pixels: " + e.textContent.slice(0, 40));
	}
	const seen = new Set();
	for (const e of document.querySelectorAll("figure .glyph, figure .bar, figure .line, figure text")) {
		const kind = e.tagName + e.getAttribute("class");
		if (seen.has(kind)) continue;
		seen.add(kind);
		const least = e.tagName == "text" ? 4.5 : 3, style = getComputedStyle(e);
		const tone = e.tagName == "text" ? style.fill : style.stroke;
		const got = contrast(tone, getComputedStyle(e.closest("figure")).backgroundColor);
		if (!(got >= least)) found.push(e.getAttribute("class") + " has a contrast of " + got.toFixed(2) + ": " + tone);
	}
	for (const svg of document.querySelectorAll("figure svg")) {
		const frame = svg.getBoundingClientRect();
		const labels = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
		const title = svg.getAttribute("aria-label") + ": ";
		labels.forEach(([text, a], i) => {
			if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 ||
				a.bottom > frame.bottom + 1) found.push(title + text + " sticks out of its picture");
			labels.slice(i + 1).forEach(([other, b]) => {
				const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
				const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
				if (across > 1 && down > 3) found.push(title + text + " lies on " + other);
			});
		});
	}
	return found;
})()`
