package html

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"

	"github.com/lockbench/lockbench/results"
)

// Live is what the page shows while lockbench measures.
type Live struct {
	Status  string
	Report  *results.Report // so far, its last run may be under way; nil before the first
	Waiting []results.Wait
	Script  template.JS // receives the frames; "" in the part that they replace
}

// WriteLive writes the page with its script, which puts what is new into main.
func WriteLive(w io.Writer, l Live) error { return write(w, "the live page", "live", l) }

// WriteSeen writes what is in the page's main.
func WriteSeen(w io.Writer, l Live) error { return write(w, "what is seen", "seen", l) }

// Style returns the style sheet of the report.
func (l Live) Style() template.CSS { return template.CSS(tonesSource + styleSource + chartStyle) }

func (l Live) file() []results.File {
	if l.Report == nil {
		return nil
	}
	return []results.File{{Report: l.Report}}
}

// Sections have the table of what has been measured so far.
func (l Live) Sections() []family { return families(l.file()) }

// Extras are the tables of bursts, of faults and of the audit.
func (l Live) Extras() (all []table) {
	for _, f := range l.file() {
		all = append(all, extras(f)...)
	}
	return all
}

// Run is the last run; nil before the first.
func (l Live) Run() *results.Run {
	if l.Report == nil || len(l.Report.Runs) == 0 {
		return nil
	}
	return &l.Report.Runs[len(l.Report.Runs)-1]
}

// Longest has the clients that have waited longest at this moment.
func (l Live) Longest() *table {
	if len(l.Waiting) == 0 {
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

// bySecond are the charts of a run by the second: of one figure, or of a median and a 99th percentile.
var bySecond = []struct {
	chart
	unit results.Unit
	of   func(results.Slice) []*results.Figure
}{
	{
		chart{Title: "Throughput", YName: "acquisitions per second"},
		results.PerSecond,
		func(s results.Slice) []*results.Figure { return figure(&s.Acquisitions, s.Seconds) },
	},
	{
		chart{Title: "Waits", YName: "waits", Note: twoLines + " Waits under way count with their age."},
		results.Nanoseconds,
		func(s results.Slice) []*results.Figure { return figures(s.WaitP50, s.WaitP99) },
	},
	{
		chart{Title: "Handoffs", YName: "handoffs", Note: twoLines},
		results.Nanoseconds,
		func(s results.Slice) []*results.Figure { return figures(s.HandoffP50, s.HandoffP99) },
	},
	{chart{Title: "Waiting clients", YName: "clients"}, results.Number, func(s results.Slice) []*results.Figure {
		return figure(new(float64(s.Waiting)), 1)
	}},
	{chart{Title: "Server CPU", YName: "of one core"}, results.Percent, func(s results.Slice) []*results.Figure {
		return figure(s.RedisCPU, s.Seconds/100)
	}},
	{
		chart{Title: "Commands", YName: "commands per second"},
		results.PerSecond,
		func(s results.Slice) []*results.Figure { return figure(s.Commands, s.Seconds) },
	},
}

const twoLines = "Circles: median. Squares: 99th percentile."

// figure is a count by a time, known exactly or not at all.
func figure[N int64 | float64](count *N, by float64) []*results.Figure {
	if count == nil {
		return nil
	}
	return []*results.Figure{{Value: float64(*count) / by}}
}

func figures(all ...*results.Bound) []*results.Figure {
	drawn := make([]*results.Figure, len(all))
	for i, b := range all {
		if b != nil {
			drawn[i] = &results.Figure{Value: float64(b.NS), AtLeast: b.AtLeast}
		}
	}
	return drawn
}

// Seconds are the charts of the last run, with the faults as marks, and what each client got.
func (l Live) Seconds() (all []chart) {
	run := l.Run()
	if run == nil {
		return nil
	}
	course := run.Timeline
	for len(course) > mostSlices {
		course = results.Halve(course)
	}
	for _, kind := range bySecond {
		c, end := kind.chart, 0.0
		curves := []curve{{mark: mark{"median", 0}}, {mark: mark{"p99", 1}}}
		for _, s := range course {
			end = s.At + s.Seconds
			for i, value := range kind.of(s) {
				if drawn := &curves[i]; value != nil && s.Seconds > 0 {
					drawn.line = append(drawn.line, point{s.At + s.Seconds/2, value.Value})
					drawn.marks = []spot{{drawn.line[len(drawn.line)-1], value.AtLeast}}
				}
			}
		}
		c.curves = slices.DeleteFunc(curves, func(c curve) bool { return len(c.line) == 0 })
		low, high, known := span(c.curves)
		if len(c.curves) == 0 {
			continue
		}
		for _, f := range run.Faults {
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
	alone := arena{cells: []cell{{results.Summary{Used: []results.Run{*run}}, mark{run.Title(), 0}}}}
	if shares := alone.withShares(fairness); len(shares.curves) > 0 {
		all = append(all, shares)
	}
	return all
}

// Title names the page.
func (l Live) Title() string {
	if run := l.Run(); run != nil {
		return fmt.Sprintf("lockbench: %s, round %d", run.Title(), run.Round)
	}
	return "lockbench"
}
