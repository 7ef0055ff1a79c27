//go:build browser

package html

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// TestInABrowser looks at pages in headless Chromium, as make browser runs it:
// nothing is complained of or fetched, nothing sticks out, and no two labels of a
// picture lie on each other. With LOCKBENCH_PICTURES=DIR it keeps what it saw.
func TestInABrowser(t *testing.T) {
	program := os.Getenv("LOCKBENCH_CHROMIUM")
	if program == "" {
		t.Fatal("LOCKBENCH_CHROMIUM does not say where Chromium is; make browser looks for it")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	browser, stop := chromedp.NewContext(allocator)
	defer stop()
	if err := chromedp.Do(browser); err != nil { // starts it
		t.Fatal(err)
	}
	for name, page := range written() {
		file := filepath.Join(t.TempDir(), "report.html")
		if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int64{390, 1440} {
			for _, scheme := range []string{"light", "dark"} {
				t.Run(fmt.Sprintf("%s %d %s", name, width, scheme),
					func(t *testing.T) { visit(t, browser, file, width, scheme) })
			}
		}
	}
}

// visit opens a page in a window of that width.
func visit(t *testing.T, browser context.Context, file string, width int64, scheme string) {
	tab, cancel := chromedp.NewContext(browser)
	defer cancel()
	ctx, cancel := context.WithTimeout(tab, 30*time.Second)
	defer cancel()
	complaints := make(chan string, 100)
	err := chromedp.Listen(tab, func(event any) {
		complaint := complaintOf(event, "file://"+file)
		if complaint == "" {
			return
		}
		select {
		case complaints <- complaint:
		default: // a hundred are enough
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	var picture []byte
	feature := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{feature}}
	for _, step := range []func() error{
		func() error { _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); return err },
		func() error { _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); return err },
		func() error { _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); return err },
		func() error {
			return chromedp.Do(ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate("file://"+file))
		},
		func() error {
			ms, err := chromedp.Run(ctx,
				chromedp.Evaluate[float64](`performance.getEntriesByType("navigation")[0].loadEventEnd`))
			t.Logf("loaded in %.0f ms", ms)
			return err
		},
		func() (err error) {
			found, err = chromedp.Run(ctx, chromedp.Evaluate[[]string](faults))
			return err
		},
		func() (err error) {
			if os.Getenv("LOCKBENCH_PICTURES") != "" {
				picture, err = chromedp.Run(ctx, chromedp.FullScreenshot(100))
			}
			return err
		},
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	for range len(complaints) {
		t.Error(<-complaints)
	}
	for _, fault := range found {
		t.Error(fault)
	}
	if directory := os.Getenv("LOCKBENCH_PICTURES"); directory != "" {
		if err := os.WriteFile(filepath.Join(directory, filepath.Base(t.Name())+".png"), picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// complaintOf is what is wrong with a page of which this happened; "" if nothing
// is.
func complaintOf(event any, page string) string {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		return fmt.Sprintf("it writes %s to the console", e.Type)
	case *runtime.EventExceptionThrown:
		return "it throws " + e.ExceptionDetails.Text
	case *log.EventEntryAdded:
		return "the browser complains: " + e.Entry.Text
	case *network.EventRequestWillBeSent:
		if e.Request.URL != page && e.Request.URL != "data:," {
			return "it fetches " + e.Request.URL
		}
	}
	return ""
}

// faults lists what sticks out of the page or of its picture, and labels that lie
// on each other.
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
