//go:build browser

// Package chromium drives headless Chromium in a test (make browser). Start starts the browser, and Open opens a Tab.
// An error that a Tab reports, such as a JavaScript exception, fails the test.
package chromium

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Start starts the browser whose path is in LOCKBENCH_CHROMIUM. The browser ends with the test.
func Start(t testing.TB) context.Context {
	t.Helper()
	program := os.Getenv("LOCKBENCH_CHROMIUM")
	if program == "" {
		t.Fatal("LOCKBENCH_CHROMIUM does not name a browser, as make browser does")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	browser, stop := chromedp.NewContext(allocator)
	t.Cleanup(stop)
	if err := chromedp.Do(browser); err != nil { // starts the browser
		t.Fatal(err)
	}
	return browser
}

// Tab is a tab of a browser.
type Tab struct {
	context.Context

	t testing.TB
}

// Open opens a tab that closes when the test ends. limit is the time limit for all actions in the tab. The test fails
// if a script throws, if the browser logs anything, or if the function more returns a text for an event. more may be
// nil.
func Open(t testing.TB, browser context.Context, limit time.Duration, more func(event any) string) *Tab {
	t.Helper()
	opened, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	ctx, cancel := context.WithTimeout(opened, limit)
	t.Cleanup(cancel)
	complaints := make(chan string, 100)
	err := chromedp.Listen(opened, func(event any) {
		text := complaint(event)
		if text == "" && more != nil {
			text = more(event)
		}
		if text == "" {
			return
		}
		select {
		case complaints <- text:
		default: // keep only the first hundred
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range len(complaints) {
			t.Error(<-complaints)
		}
	})
	if _, err := chromedp.Call(ctx, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	return &Tab{ctx, t}
}

func complaint(event any) string {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		return "it throws " + e.ExceptionDetails.Text
	case *log.EventEntryAdded:
		return "the browser complains: " + e.Entry.Text
	}
	return ""
}

// Scheme sets the colour scheme, light or dark, and the medium, such as print. If medium is "", the medium is the
// screen.
func (tab *Tab) Scheme(scheme, medium string) {
	tab.t.Helper()
	_, err := chromedp.Call(tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		tab.t.Fatal(err)
	}
}

// Visit opens a URL in a window that is width pixels wide.
func (tab *Tab) Visit(url string, width int64) {
	tab.t.Helper()
	if err := chromedp.Do(tab, chromedp.EmulateViewport(width, 900), chromedp.Navigate(url)); err != nil {
		tab.t.Fatal(err)
	}
}

// All evaluates a JavaScript expression whose value is a list of strings, or a promise of one, and returns the list.
func (tab *Tab) All(expression string) []string {
	tab.t.Helper()
	texts, err := chromedp.Run(tab, chromedp.Evaluate[[]string](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		tab.t.Fatal(err)
	}
	return texts
}

// One evaluates a JavaScript expression and returns its value as a string.
func (tab *Tab) One(expression string) string {
	tab.t.Helper()
	return tab.All("[String(" + expression + ")]")[0]
}

// Press presses a key.
func (tab *Tab) Press(key string) {
	tab.t.Helper()
	if err := chromedp.Do(tab, chromedp.KeyEvent(key)); err != nil {
		tab.t.Fatal(err)
	}
}

// Picture saves a screenshot of the whole page as NAME.png in the directory that the variable LOCKBENCH_PICTURES names.
// It does nothing if the variable is not set.
func (tab *Tab) Picture(name string) {
	tab.t.Helper()
	directory := os.Getenv("LOCKBENCH_PICTURES")
	if directory == "" {
		return
	}
	picture, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(directory, name+".png"), picture, 0o600)
	}
	if err != nil {
		tab.t.Fatal(err)
	}
}

// audit lists the violations of levels A and AA of WCAG 2.1 that axe-core finds. It first empties the charts, because
// their thousands of shapes would take axe-core half a minute. Screen readers read only a chart's label, not its
// shapes.
const audit = `;document.querySelectorAll("svg").forEach(e => e.replaceChildren());
axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}).then(said => said.violations.map(v =>
	v.id + ": " + v.help + ", at " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 120)).join(" and ")))`

// Audit returns the violations that axe-core finds in the page. The variable LOCKBENCH_AXE must contain the path of
// axe-core. Audit removes the content of the charts from the page.
func (tab *Tab) Audit() []string {
	tab.t.Helper()
	axe, err := os.ReadFile(os.Getenv("LOCKBENCH_AXE"))
	if err != nil {
		tab.t.Fatalf("LOCKBENCH_AXE does not name axe-core, as make browser does: %v", err)
	}
	return tab.All(string(axe) + audit)
}
