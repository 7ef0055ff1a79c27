//go:build browser

package command_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/chromium"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
)

// rows is the JavaScript that returns, for each row of the page's tables, the texts of its cells, joined by "|".
const rows = `[...document.querySelectorAll("main tbody tr")].map(row =>
	[...row.children].map(e => e.textContent).join("|"))`

// TestBrowserLivePage opens the live page and interrupts lockbench during the second run (make browser). During the
// second run, the tables of the page must already show the first run's figures as they are in the final report. At the
// end, they must show the figures of both runs. The browser must log no error.
func TestBrowserLivePage(t *testing.T) {
	tab := chromium.Open(t, chromium.Start(t), 2*time.Minute, nil)
	w := watch(t, "-s", "handoff", "-u", redistest.Start(t).URL(), "--hold", "1ms,10s", "-c", "20", "-w", "0s",
		"-n", "2000", "--seed", "4", "--live", "0")
	tab.Visit(w.address(t, "live"), 1280)
	title, status := `document.querySelector("h1").textContent`, `document.querySelector("#status").textContent`
	poll.Until(t, "the page shows the first run", func() bool { return strings.Contains(tab.One(status), "hold=1ms") })
	poll.Until(t, "the page shows the second run by the second", func() bool {
		figures := tab.All(`[...document.querySelectorAll("figure .line")].map(e => e.getAttribute("d"))`)
		return strings.Contains(tab.One(status), "hold=10s") && len(figures) > 5 && strings.Contains(figures[0], "L")
	})
	middle := tab.All(rows)
	if !slices.ContainsFunc(tab.All(`[...document.querySelectorAll("h2")].map(e => e.textContent)`),
		func(text string) bool { return text == "Longest waits in progress" }) {
		t.Error("19 clients wait, and the page does not say so")
	}

	report := w.report(t)
	poll.Until(t, "the page has become the report", func() bool { return tab.One(title) == "lockbench report" })
	end := tab.All(rows)
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
}
