//go:build browser

package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/lockbench/lockbench/internal/testkit/chromium"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/html"
)

const hostile = `<img src=x onerror="document.title='owned'"></main><script>document.title='owned'</script>`

// TestBrowserFramesKeepState follows two runs on a phone and on a screen. Frames do not take away the
// focus, the order of a table or the hidden strategies, and a screen reader speaks only when the run changes. The
// browser and axe-core report no problem, and the script of the final report works. With LOCKBENCH_PICTURES=DIR the
// test saves screenshots.
func TestBrowserFramesKeepState(t *testing.T) {
	browser := chromium.Start(t)
	for _, width := range []int64{390, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprint(width, " ", scheme), func(t *testing.T) { follow(t, browser, width, scheme) })
		}
	}
}

// session returns a report with five runs of three strategies in two rounds, made from recorded runs.
func session(t *testing.T) *results.Report {
	r := recorded(t)
	runs := r.Runs
	r.Strategies, r.Runs, r.Points, r.Rounds = nil, nil, nil, 2
	for _, name := range []string{"spin", "pubsub", hostile} {
		r.Strategies = append(r.Strategies, results.Strategy{Name: name, Summary: hostile})
	}
	for i := range 5 {
		run := runs[i%len(runs)]
		run.Strategy, run.Round, run.Point, run.Partial = r.Strategies[i%3].Name, 1+i/3, "", false
		run.Timeline = nil
		for second := range 5 {
			wait := results.Bound{NS: int64(1+i+second) * 1e6}
			run.Timeline = append(run.Timeline, results.Slice{
				At: float64(second), Seconds: 1, Acquisitions: int64(100 * (5 + i - second)), Waiting: 9, WaitP50: &wait,
				WaitP99: &wait, HandoffP50: &wait, HandoffP99: &wait, RedisCPU: new(0.1 * float64(1+i)), Commands: new(int64(900)),
			})
		}
		r.Runs = append(r.Runs, run)
	}
	return r
}

func follow(t *testing.T, browser context.Context, width int64, scheme string) {
	tab := chromium.Open(t, browser, 2*time.Minute, nil)
	tab.Scheme(scheme, "")
	shows, press := tab.One, tab.Press

	w, urls := open(t, Addresses{Live: "127.0.0.1:0"})
	whole := session(t)
	// frame sends the page a report with this number of runs, the last of which has been measured for this number of
	// seconds. The text of the phase identifies the frame.
	frame := func(runs, second int) {
		t.Helper()
		r := *whole
		r.Runs = slices.Clone(whole.Runs[:runs])
		run := &r.Runs[runs-1]
		run.Partial, run.WindowNS = true, int64(second)*1e9
		run.Timeline = run.Timeline[:min(second, len(run.Timeline))]
		w.Progress(html.Progress{
			Run: runs, Runs: 6, Title: run.Title(), Round: run.Round, Phase: fmt.Sprintf("measure, frame %d.%d", runs, second),
		}, time.Minute)
		w.See(&r, []results.Wait{{Client: second, NS: 5e9}})
	}
	arrived := func(runs, second int) {
		t.Helper()
		poll.Until(t, "the frame arrives", func() bool {
			text := shows(`document.querySelector("main").textContent`)
			return strings.Contains(text, fmt.Sprintf("frame %d.%d", runs, second))
		})
	}
	w.See(whole, nil)
	tab.Visit(urls[0], width)
	frame(4, 1)
	arrived(4, 1)
	ghosts := shows(`new Set([...document.querySelectorAll("figure .line.ghost")].map(e => e.classList[2])).size`)
	if ghosts != "3" { // the current strategy's first round, and two others
		t.Errorf("there are ghosts of %s strategies", ghosts)
	}
	const status = `document.querySelector("#status").textContent`
	if got := shows(status); !strings.HasPrefix(got, "Run 4 of 6: spin, round 2") {
		t.Errorf("the status is %q", got)
	}
	shows(`(() => { window.spoken = []; new MutationObserver(all => spoken.push(...all.map(m => m.type)))
		.observe(document.querySelector("#status"),
			{ attributes: true, childList: true, characterData: true, subtree: true });
		const focus = document.querySelector("table th button");
		focus.focus(); window.focused = focus; })()`)
	press(kb.Enter)
	press(kb.Enter) // z to a
	shows(`document.querySelectorAll(".legend button")[1].focus()`)
	press(" ")
	shows(`(() => { focused.focus(); document.querySelectorAll(".scroll").forEach(e => { e.scrollLeft = 20 }); })()`)
	scrolled := shows(`[...document.querySelectorAll(".scroll")].map(e => e.scrollLeft)`)
	const choice = `[...document.querySelectorAll("[aria-sort]")].map(e => e.textContent + " " + e.ariaSort) + ", " +
		[...document.querySelectorAll("table")[0].tBodies[0].rows].map(row => row.cells[0].textContent) + ", hidden " +
		[...document.querySelectorAll(".legend [aria-pressed=false]")].map(e => e.textContent)`
	chosen := shows(choice)
	want := "strategy descending, spin,pubsub," + hostile + ", hidden "
	if !strings.HasPrefix(chosen, want) || chosen == want {
		t.Errorf("chosen are %q", chosen)
	}
	for second := 2; second <= 4; second++ {
		frame(4, second)
		arrived(4, second)
	}
	if got := shows(`document.activeElement === focused`); got != "true" {
		t.Error("a frame takes the focus away")
	}
	if got := shows(choice); got != chosen {
		t.Errorf("after some frames the choice is %q, and was %q", got, chosen)
	}
	if got := shows(`[...document.querySelectorAll(".scroll")].map(e => e.scrollLeft)`); got != scrolled {
		t.Errorf("the tables scroll from %s to %s", scrolled, got)
	}
	if got := shows(`getComputedStyle(document.querySelector("figure ." +
		document.querySelector(".legend [aria-pressed=false]").parentElement.dataset.style)).visibility`); got != "hidden" {
		t.Errorf("the hidden strategy is %s", got)
	}
	spoken := `spoken.length`
	if got := strings.Count(shows(status), "frame"); got == 0 {
		t.Error("a phase that is not usual is not spoken")
	}
	before := shows(spoken)
	// quiet sends a frame of the phase "measure" and waits until the page shows it. A screen reader must stay silent
	// unless the run has changed.
	quiet := func(run, round int, title string, at int) {
		t.Helper()
		w.Progress(html.Progress{Run: run, Runs: 6, Title: title, Round: round, Phase: "measure"}, time.Minute)
		w.See(whole, []results.Wait{{Client: at, NS: 5e9}})
		poll.Until(t, "the frame arrives", func() bool {
			return strings.Contains(shows(`document.querySelectorAll("table")[1].textContent`), fmt.Sprint(at))
		})
	}
	quiet(4, 2, "spin", 9001)
	first := shows(spoken)
	if first == before {
		t.Error("the end of a disturbance is not spoken")
	}
	for at := 9002; at < 9005; at++ {
		quiet(4, 2, "spin", at)
	}
	if got := shows(spoken); got != first {
		t.Errorf("the status changed within a run: %s times, and %s before", got, first)
	}
	if quiet(5, 2, "pubsub", 9005); shows(spoken) == first || shows(status) != "Run 5 of 6: pubsub, round 2" {
		t.Errorf("in the next run the status is %q", shows(status))
	}
	tab.Picture(fmt.Sprintf("watch_%d_%s", width, scheme))
	for _, violation := range tab.Audit() {
		t.Error(violation)
	}
	if got := shows(`document.documentElement.scrollWidth <= document.documentElement.clientWidth`); got != "true" {
		t.Error("the page is wider than the window")
	}

	w.End(results.File{Name: "run.json", Report: whole})
	poll.Until(t, "the page has become the report", func() bool {
		return shows(`document.querySelector("h1").textContent`) == "lockbench report"
	})
	shows(`document.querySelector("table th button").focus()`)
	press(kb.Enter)
	if got := shows(`document.querySelector("table th").ariaSort`); got != "ascending" {
		t.Errorf("the report's table is sorted %s", got)
	}
	if got := shows(`document.images.length + document.title`); got != "0lockbench report" {
		t.Errorf("a strategy's name has made %s", got)
	}
}
