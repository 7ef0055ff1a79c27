//go:build browser

package command_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
)

// rows returns the text of each table's rows, after its title.
const rows = `[...document.querySelectorAll("main tbody tr")].map(row =>
	[...row.children].map(e => e.textContent).join("|"))`

// TestInABrowserALivePage opens the live page during the second run (make browser). The page must show the same figures
// as the table, for the first run and at the end, and the browser must log no error.
func TestInABrowserALivePage(t *testing.T) {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(os.Getenv("LOCKBENCH_CHROMIUM")),
		chromedp.NoSandbox)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	tab, stop := chromedp.NewContext(allocator)
	defer stop()
	complaints := make(chan string, 100)
	complain := func(text string) {
		select {
		case complaints <- text:
		default:
		}
	}
	if err := chromedp.Do(tab); err != nil { // starts it
		t.Fatal(err)
	}
	err := chromedp.Listen(tab, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			complain("it throws " + e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			complain("the browser complains: " + e.Entry.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(tab, log.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	shown := func(expression string) (texts []string) {
		texts, err := chromedp.Run(tab, chromedp.Evaluate[[]string](expression))
		if err != nil {
			t.Fatal(err)
		}
		return texts
	}

	w := watch(t, "-s", "handoff", "-u", redistest.Start(t).URL(), "--hold", "1ms,10s", "-c", "20", "-w", "0s",
		"-n", "2000", "--seed", "4", "--live", "0")
	if err := chromedp.Do(tab, chromedp.Navigate(w.address(t, "live"))); err != nil {
		t.Fatal(err)
	}
	title, status := `[document.querySelector("h1").textContent]`, `[document.querySelector("#status").textContent]`
	poll.Until(t, "the page shows the first run", func() bool { return strings.Contains(shown(status)[0], "hold=1ms") })
	poll.Until(t, "the page shows the second run by the second", func() bool {
		figures := shown(`[...document.querySelectorAll("figure .line")].map(e => e.getAttribute("d"))`)
		return strings.Contains(shown(status)[0], "hold=10s") && len(figures) > 5 && strings.Contains(figures[0], "L")
	})
	middle := shown(rows)
	if !slices.ContainsFunc(shown(`[...document.querySelectorAll("h2")].map(e => e.textContent)`),
		func(text string) bool { return text == "Who has waited longest" }) {
		t.Error("19 clients wait, and the page does not say so")
	}

	report := w.report(t)
	poll.Until(t, "the page has become the report", func() bool { return shown(title)[0] == "lockbench report" })
	end := shown(rows)
	for i, s := range report.Summaries() {
		s.Point = "" // as in the page's tables
		row := s.Title()
		for _, c := range results.Columns(results.PageGroup, nil) {
			row += "|" + c.Text(s)
		}
		if !slices.Contains(end, row) {
			t.Errorf("the page does not end with %q, but %q", row, end)
		}
		if i == 0 && !slices.Contains(middle, row) {
			t.Errorf("in the middle of the second run the page does not say %q of the first, but %q", row, middle)
		}
	}
	if len(report.Runs) != 2 {
		t.Error(fmt.Sprint(len(report.Runs), " runs"))
	}
	for range len(complaints) {
		t.Error(<-complaints)
	}
}
