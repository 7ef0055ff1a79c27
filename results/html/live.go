package html

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/lockbench/lockbench/results"
)

// Live is the state that the live page shows while lockbench measures.
type Live struct {
	Now     Progress
	Report  *results.Report // so far, its last run may be in progress; nil before the first run
	Waiting []results.Wait
	Script  template.JS // receives the frames; "" in a frame itself
}

// Progress is the state of a session: its current run, phase and expected end.
type Progress struct {
	Run, Runs int    // the current run, from 1; 0 before the first
	Title     string // of the current run: its strategy, in a sweep with its point
	Round     int
	Phase     string
	End       time.Time // expected; zero if it is not known
}

// WriteLive writes the whole live page. When the page's script receives a frame, it replaces the content of the main
// element.
func WriteLive(w io.Writer, l Live) error { return write(w, "the live page", "live", l) }

// WriteSeen writes a frame, which is the new content of the page's main element.
func WriteSeen(w io.Writer, l Live) error { return write(w, "a frame of the live page", "seen", l) }

// Style returns the style sheet, which is the same as that of the report's page.
func (l Live) Style() template.CSS { return template.CSS(tonesSource + styleSource + chartStyle) }

func (l Live) file() []results.File {
	if l.Report == nil {
		return nil
	}
	return []results.File{{Report: l.Report}}
}

// Sections returns the sections with the figures of the runs so far.
func (l Live) Sections() []family { return families(l.file()) }

// Extras returns the tables of mixed strategies, bursts, faults and the audit.
func (l Live) Extras() (all []table) {
	for _, f := range l.file() {
		all = append(all, extras(f)...)
	}
	return all
}

// phases lists the phases of an undisturbed session. Status names only phases that are not in this list.
var phases = []string{"", "start", "baselines", "prepare", "warm-up", "measure", "drain", "verify"}

// Status returns the text that a screen reader speaks. The text changes once per run, and when something disturbs the
// session.
func (l Live) Status() string {
	text := "Before the first run"
	if l.Now.Run > 0 {
		text = fmt.Sprintf("Run %d of %d: %s, round %d", l.Now.Run, l.Now.Runs, l.Now.Title, l.Now.Round)
	}
	if !slices.Contains(phases, l.Now.Phase) {
		text += ": " + l.Now.Phase
	}
	return text
}

// End returns the time at which the session is expected to end, in the time zone of the machine that runs lockbench; ""
// if it is not known.
func (l Live) End() string {
	if l.Now.End.IsZero() {
		return ""
	}
	return l.Now.End.Format("15:04:05 MST")
}

// part is a progress bar of which the share Done ÷ Whole is filled.
type part struct {
	Name        string
	Done, Whole float64
	Text        string
}

// Parts returns the progress bars of the session and of the current window; nil before the first run.
func (l Live) Parts() []part {
	if l.Report == nil || l.Now.Run == 0 {
		return nil
	}
	window := part{Name: "Window", Whole: 1}
	for _, s := range l.Report.Asked() {
		if s.Title() != l.Now.Title {
			continue
		}
		window.Whole, window.Text = time.Duration(s.Workload.Duration).Seconds(), "%.0f of %v s"
		if n := s.Workload.Iterations; n > 0 {
			window.Whole, window.Text = float64(n), "%.0f of %v acquisitions"
		}
		if run := l.Run(); l.current(*run) {
			window.Done = float64(run.WindowNS) / 1e9
			if s.Workload.Iterations > 0 {
				window.Done = float64(run.Speed.Acquisitions)
			}
		}
		window.Done = min(window.Done, window.Whole)
		window.Text = fmt.Sprintf(window.Text, window.Done, window.Whole)
	}
	before := l.Now.Run - 1
	return []part{
		{
			"Runs", float64(before) + window.Done/window.Whole, float64(l.Now.Runs),
			fmt.Sprintf("%d of %d done", before, l.Now.Runs),
		},
		window,
	}
}

// Run returns the last run, which may be in progress; nil before the first one.
func (l Live) Run() *results.Run {
	if l.Report == nil || len(l.Report.Runs) == 0 {
		return nil
	}
	return &l.Report.Runs[len(l.Report.Runs)-1]
}

// current reports whether this run is the one in progress.
func (l Live) current(run results.Run) bool {
	return run.Title() == l.Now.Title && run.Round == l.Now.Round
}

// Runs returns a table with the state of each run. It has a row for each strategy and point, and a column for each
// round.
func (l Live) Runs() *table {
	if l.Report == nil {
		return nil
	}
	t := &table{Head: []string{"strategy"}}
	for round := range l.Report.Rounds {
		t.Head = append(t.Head, fmt.Sprintf("round %d", round+1))
	}
	for _, s := range l.Report.Asked() {
		row := []string{s.Title()}
		for round := range l.Report.Rounds {
			row = append(row, l.state(s, round+1))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// state returns the state of a strategy's run in a round: done (with the throughput), cut short, running, left out or
// pending.
func (l Live) state(s results.Summary, round int) string {
	at := slices.IndexFunc(s.Runs, func(r results.Run) bool { return r.Round == round })
	running := l.current(results.Run{Strategy: s.Name, Point: s.Point, Round: round})
	switch {
	case at >= 0 && !(running && s.Runs[at].Partial):
		run := s.Runs[at]
		text := "done, " + results.PerSecond.Format(run.Speed.PerSecond)
		if run.Partial {
			text = "cut short"
		}
		if !run.Usable() {
			text += ", not trusted"
		}
		return text
	case running:
		return "running"
	case slices.ContainsFunc(l.Report.LeftOut, func(o results.LeftOut) bool { return o.Strategy == s.Name }):
		return "left out"
	}
	return "pending"
}

// Longest returns a table of the five longest waits in progress.
func (l Live) Longest() *table {
	if l.Run() == nil {
		return nil
	}
	waiting := slices.Clone(l.Waiting)
	slices.SortFunc(waiting, func(a, b results.Wait) int { return cmp.Compare(b.NS, a.NS) })
	t := &table{Head: []string{"client", "has waited"}}
	for _, one := range waiting[:min(5, len(waiting))] {
		t.Rows = append(t.Rows, []string{strconv.Itoa(one.Client), (&results.Bound{NS: one.NS}).String()})
	}
	return t
}

// bySecond lists the charts of a run over time. Each shows one figure of the run's slices, which are about a second
// long.
var bySecond = []struct {
	chart
	unit results.Unit
	of   func(results.Slice) *results.Figure
}{
	{
		chart{Title: "Throughput", YName: "acquisitions per second"},
		results.PerSecond,
		func(s results.Slice) *results.Figure { return figure(&s.Acquisitions, s.Seconds) },
	},
	{
		chart{Title: "Wait p50", YName: "median of the waits", Note: withAge},
		results.Nanoseconds,
		func(s results.Slice) *results.Figure { return bound(s.WaitP50) },
	},
	{
		chart{Title: "Wait p99", YName: "99th percentile of the waits", Note: withAge},
		results.Nanoseconds,
		func(s results.Slice) *results.Figure { return bound(s.WaitP99) },
	},
	{
		chart{Title: "Handoff p50", YName: "median of the handoffs"},
		results.Nanoseconds,
		func(s results.Slice) *results.Figure { return bound(s.HandoffP50) },
	},
	{
		chart{Title: "Handoff p99", YName: "99th percentile of the handoffs"},
		results.Nanoseconds,
		func(s results.Slice) *results.Figure { return bound(s.HandoffP99) },
	},
	{chart{Title: "Waiting clients", YName: "clients"}, results.Number, func(s results.Slice) *results.Figure {
		return figure(new(float64(s.Waiting)), 1)
	}},
	{chart{Title: "Server CPU", YName: "of one core"}, results.Percent, func(s results.Slice) *results.Figure {
		return figure(s.RedisCPU, s.Seconds/100)
	}},
	{
		chart{Title: "Commands", YName: "commands per second"},
		results.PerSecond,
		func(s results.Slice) *results.Figure { return figure(s.Commands, s.Seconds) },
	},
}

const withAge = "Waits in progress count with their age."

// figure returns a count divided by a time in seconds; nil if the count is not known.
func figure[N int64 | float64](count *N, by float64) *results.Figure {
	if count == nil {
		return nil
	}
	return &results.Figure{Value: float64(*count) / by}
}

func bound(b *results.Bound) *results.Figure {
	if b == nil {
		return nil
	}
	return &results.Figure{Value: float64(b.NS), AtLeast: b.AtLeast}
}

// These limits keep frames small. A frame is made every second, and making it must not disturb the clients that are
// being measured.
const (
	mostGhosts  = 8
	ghostPoints = 60 // of a ghost's line
)

// Shown returns the runs that the charts over time show. The current run comes first. Each strategy's last complete run
// under the same workload follows as a ghost, the newest first, up to mostGhosts of them.
func (l Live) Shown() (all []cell) {
	run := l.Run()
	if run == nil {
		return nil
	}
	var names []string
	for _, s := range l.Report.Asked() {
		names = append(names, s.Name)
	}
	style := styles(names)
	add := func(r results.Run, note string) {
		title := fmt.Sprintf("%s, round %d%s", r.Title(), r.Round, note)
		all = append(all, cell{
			results.Summary{Strategy: results.Strategy{Name: title}, Used: []results.Run{r}},
			mark{title, style[r.Strategy], note == ""},
		})
	}
	var ghosts []string
	for i, one := range slices.Backward(l.Report.Runs) {
		switch {
		case i == len(l.Report.Runs)-1 && l.current(one):
			add(one, " (this run)")
		case one.Point == run.Point && one.Complete() && !slices.Contains(ghosts, one.Strategy) &&
			len(ghosts) < mostGhosts:
			ghosts = append(ghosts, one.Strategy)
			add(one, "")
		}
	}
	return all
}

// Seconds returns the charts of these runs over time, followed by a chart of each client's acquisitions. The first run
// is drawn in front, with the injections of its faults as vertical lines.
func (l Live) Seconds(shown []cell) (all []chart) {
	if len(shown) == 0 {
		return nil
	}
	var faults []results.Fault
	if !shown[0].ghost {
		faults = shown[0].Used[0].Faults
	}
	shown = slices.Clone(shown)
	slices.Reverse(shown) // the last one is drawn over the others
	courses := make([][]results.Slice, len(shown))
	for i, one := range shown {
		if courses[i] = one.Used[0].Timeline; one.ghost {
			courses[i] = thinned(courses[i], ghostPoints)
		}
		for len(courses[i]) > mostSlices {
			courses[i] = results.Halve(courses[i])
		}
	}
	for _, kind := range bySecond {
		c, end := kind.chart, 0.0
		for i, one := range shown {
			drawn := curve{mark: one.mark}
			for _, s := range courses[i] {
				end = max(end, s.At+s.Seconds)
				if value := kind.of(s); value != nil && s.Seconds > 0 {
					drawn.line = append(drawn.line, point{s.At + s.Seconds/2, value.Value})
					drawn.marks = []spot{{drawn.line[len(drawn.line)-1], value.AtLeast}}
				}
			}
			if len(drawn.line) > 0 {
				c.curves = append(c.curves, drawn)
			}
		}
		low, high, known := span(c.curves)
		if len(c.curves) == 0 {
			continue
		}
		for _, f := range faults {
			for _, at := range f.Injections {
				c.moments = append(c.moments, moment{float64(at.AtNS) / 1e9, f.Fault.Name})
				end = max(end, float64(at.AtNS)/1e9)
			}
		}
		c.x, c.y, c.yUnit, c.XName = linear(end, results.Number), linear(high*1.08, kind.unit), kind.unit, "seconds"
		if known && kind.unit == results.Nanoseconds {
			c.y = logarithmic(low, high, kind.unit)
		}
		all = append(all, c)
	}
	if shares := (arena{cells: shown}).withShares(fairness); len(shares.curves) > 0 {
		all = append(all, shares)
	}
	return all
}
