package html

import (
	"fmt"
	"math"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// farApart is the ratio of two values above which a linear axis is not readable.
const farApart = 30

// overview returns the charts of a family: curves against the number of clients, or bars if
// there is only one number.
func (f family) overview() []chart {
	var all []chart
	for _, o := range []struct {
		chart
		metric string
		log    bool
	}{
		{chart{name: "throughput", title: "Throughput", xName: "acquisitions per second"}, "acq_per_s", false},
		{
			chart{
				name: "utilisation", title: "Utilisation", xName: "share of the time that the lock was held",
				note: "What is missing from 100 % was lost handing the lock over, or nobody wanted it.",
			},
			"utilisation",
			false,
		},
		{
			chart{
				name: "wait-p99", title: "Slowest waits", xName: "99th percentile of the waits",
				note: "Every client counts alike.",
			},
			"wait_per_client_p99", true,
		},
		{chart{
			name: "commands", title: "Commands", xName: "commands per acquisition",
			note: "Counted by Redis, those inside scripts too.",
		}, "commands_per_acq", true},
		{chart{
			name: "redis-cpu", title: "server CPU", xName: "CPU time per acquisition",
			note: "Less what the same connections cost idle.",
		}, "redis_cpu_per_acq", true},
		{chart{
			name: "handoff-p99", title: "Slowest handoffs", xName: "99th percentile of the handoffs",
			note: "From the start of a release to the next lease, where somebody waited.",
		}, "handoff_p99", true},
	} {
		c, m, known := o.chart, metric(o.metric), false
		if len(f.arenas) == 1 {
			c, known = f.top().withBars(c, m)
		} else {
			switch o.name {
			case "commands", "redis-cpu":
				c.title = "Herd curve: " + c.title
				c.note += " A rising line is a herd that grows with the clients."
			case "wait-p99":
				c.note += " Dotted: at least that long."
			}
			c, known = f.withGrowth(c, m, o.log)
		}
		if known {
			all = append(all, c)
		}
	}
	return all
}

// withBars draws a metric, with one bar per strategy, the first on top; false if no strategy has it.
func (a arena) withBars(c chart, m results.Metric) (chart, bool) {
	most, known := 0.0, false
	for _, of := range a.cells {
		figure := of.Figure(m)
		b := bar{mark: of.mark, text: figure.Text(m.Unit)}
		if of.Invalid {
			b.text += " !"
		}
		if figure != nil {
			b.value, b.atLeast, known = figure.Value, figure.AtLeast, true
		}
		if low, high, ok := of.Range(m); ok {
			b.low, b.high = low, high
		}
		most = max(most, b.value, b.high)
		c.bars = append(c.bars, b)
	}
	if m.Unit == results.Percent {
		most = max(most, 100)
	}
	c.x, c.y = linear(most, m.Unit), axis{high: 1}
	return c, known
}

// withGrowth draws a metric against the number of clients, with one line per strategy; false if
// there is nothing to draw.
func (f family) withGrowth(c chart, m results.Metric, log bool) (chart, bool) {
	var clients []float64
	for _, a := range f.arenas {
		clients = append(clients, float64(a.workload.Clients))
	}
	c.curves = f.lines(m, log)
	low, high, ok := span(c.curves)
	if !log && m.Unit == results.PerSecond && high > farApart*low {
		log = true
		c.curves = f.lines(m, log)
	}
	if log && ok {
		c.y = logarithmic(low, high, m.Unit)
	} else {
		c.y = linear(high*1.05, m.Unit)
	}
	c.x = axis{low: slices.Min(clients) / 1.15, high: slices.Max(clients) * 1.15, log: true}
	last := -1.0
	for _, n := range clients {
		t := tick{value: n}
		if at := c.x.share(n); last < 0 || at-last > 0.09 {
			t.label, last = short(n, results.Number), at
		}
		c.x.ticks = append(c.x.ticks, t)
	}
	c.yName, c.xName, c.yUnit = c.xName, "clients", m.Unit
	return c, ok
}

// lines returns the curves of all strategies that have the metric.
func (f family) lines(m results.Metric, log bool) []curve {
	var all []curve
	for _, name := range strategyNames([]family{f}) {
		var c curve
		for _, a := range f.arenas {
			at := slices.IndexFunc(a.cells, func(c cell) bool { return c.Name == name })
			if at < 0 {
				continue
			}
			c.mark = a.cells[at].mark
			figure := a.cells[at].Figure(m)
			if figure == nil || log && figure.Value <= 0 {
				continue
			}
			p := point{float64(a.workload.Clients), figure.Value}
			c.marks = append(c.marks, p)
			if figure.AtLeast || len(c.bound) > 0 {
				if n := len(c.line); n > 0 && len(c.bound) == 0 {
					c.bound = append(c.bound, c.line[n-1])
				}
				c.bound = append(c.bound, p)
				continue
			}
			c.line = append(c.line, p)
			if low, high, ok := a.cells[at].Range(m); ok && (low > 0 || !log) {
				c.ranges = append(c.ranges, extent{p.X, low, high})
			}
		}
		if len(c.marks) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// span returns the smallest and the largest positive y of all curves; false if there is none.
func span(curves []curve) (low, high float64, ok bool) {
	low, high = math.Inf(1), 0
	for _, c := range curves {
		for _, p := range slices.Concat(c.line, c.bound) {
			if p.Y > 0 {
				low, high = min(low, p.Y), max(high, p.Y)
			}
		}
	}
	return low, high, low <= high
}

// details returns the charts of one arena.
func (a arena) details() ([]chart, error) {
	var all []chart
	named := func(name, title, note, x, y string) chart {
		return chart{
			name: fmt.Sprintf("%s-c%d", name, a.workload.Clients), title: title, note: note, xName: x,
			yName: y,
		}
	}
	const handed = "From the start of a release to the next lease, where somebody waited."
	for _, p := range []struct {
		chart
		of func(results.Run) results.Distribution
	}{
		{
			named("wait", "Wait by percentile, over acquisitions", "", "share of the waits", "wait"),
			func(r results.Run) results.Distribution { return r.Waiting.PerAcquisition },
		},
		{
			named("wait-per-client", "Wait by percentile, weighted per client", "",
				"share of the waits, weighted per client", "wait"),
			func(r results.Run) results.Distribution { return r.Waiting.PerClient },
		},
		{
			named("handoff", "Handoff by percentile", handed, "share of the handoffs", "handoff"),
			func(r results.Run) results.Distribution { return r.Speed.Handoff },
		},
	} {
		c, err := withPercentiles(p.chart, a.cells, p.of)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	shares, err := a.withShares(named("fairness", "Acquisitions of each client",
		"The broken line is an even share; at 0 is a client that got nothing.",
		"clients, from the fewest acquisitions to the most", "acquisitions, in even shares"))
	if err != nil {
		return nil, err
	}
	const course = "seconds since the window opened"
	all = slices.Insert(all, 2, shares)
	all = append(all,
		a.withCourse(named("timeline", "Throughput in the course of the run", "", course, "acquisitions per second"),
			results.PerSecond, false, perSecond),
		a.withCourse(named("timeline-wait", "Slowest waits in the course of the run",
			"99th percentile of the waits that ended in each second.", course, "wait p99"), results.Nanoseconds, true,
			waitP99))
	return slices.DeleteFunc(all, func(c chart) bool { return len(c.curves) == 0 }), nil
}

// The x axis of percentiles is 1/(1−q): each power of ten adds a nine to the percentile.
const (
	mostNines  = 4.0  // decades
	perDecade  = 14.0 // points of a curve
	nanosecond = 1.0  // the smallest duration on a logarithmic axis
)

// withPercentiles draws durations against their percentiles; without curves if there are none.
func withPercentiles(c chart, cells []cell, of func(results.Run) results.Distribution) (chart, error) {
	c.x = axis{low: 1, high: 100, log: true}
	for _, one := range cells {
		survival, observed, err := pooled(one.Used, of)
		if err != nil {
			return c, fmt.Errorf("%s: %w", one.Name, err)
		}
		if observed == 0 {
			continue
		}
		drawn := one.percentiles(survival, observed)
		c.curves = append(c.curves, drawn)
		for _, p := range slices.Concat(drawn.line, drawn.bound) {
			c.x.high = max(c.x.high, p.X)
		}
		if len(drawn.bound) > 0 && c.note == "" {
			c.note = "Dotted: at least that long; the rest had not ended."
		}
	}
	low, high, ok := span(c.curves)
	if !ok {
		c.curves = nil
		return c, nil
	}
	c.y, c.yUnit = logarithmic(low, high, results.Nanoseconds), results.Nanoseconds
	for _, t := range []tick{{2, "50 %"}, {10, "90 %"}, {100, "99 %"}, {1000, "99.9 %"}, {10000, "99.99 %"}} {
		if t.value <= c.x.high {
			c.x.ticks = append(c.x.ticks, t)
		}
	}
	return c, nil
}

// pooled returns the estimate over all runs' durations, and their number.
func pooled(runs []results.Run, of func(results.Run) results.Distribution) (results.Survival, int64, error) {
	var parts []results.Distribution
	observed := int64(0)
	for _, run := range runs {
		if d := of(run); len(d.Histogram)+len(d.CensoredHistogram) > 0 {
			parts = append(parts, d)
			observed += d.Count + d.Censored
		}
	}
	if observed == 0 {
		return results.Survival{}, 0, nil
	}
	return results.Sum(parts...).Survival(), observed, nil
}

// percentiles returns the cell's curve up to the last percentile that this number of
// durations supports.
func (c cell) percentiles(survival results.Survival, observed int64) curve {
	drawn := curve{mark: c.mark}
	most := min(mostNines, math.Log10(max(2, float64(observed))))
	for i := 0.0; ; i++ {
		decade := min(i/perDecade, most)
		x := math.Pow(10, decade)
		q := survival.Quantile(1 - 1/x)
		if q == nil {
			return drawn
		}
		at := point{X: x, Y: max(nanosecond, float64(q.NS))}
		if q.AtLeast {
			drawn.bound = []point{at, {X: math.Pow(10, most), Y: at.Y}}
			if decade == most {
				drawn.bound[0].X = math.Pow(10, max(0, most-0.5/perDecade))
			}
			drawn.marks = append(drawn.marks, drawn.bound[0])
			return drawn
		}
		drawn.line = append(drawn.line, at)
		if decade == most {
			break
		}
	}
	for _, x := range []float64{2, 10, 100, 1000} {
		if q := survival.Quantile(1 - 1/x); q != nil && !q.AtLeast && math.Log10(x) <= most {
			drawn.marks = append(drawn.marks, point{X: x, Y: max(nanosecond, float64(q.NS))})
		}
	}
	return drawn
}

// withShares draws each client's acquisitions, divided by their mean, in ascending order; without
// curves if they were not recorded.
func (a arena) withShares(fig chart) (chart, error) {
	most := 2.0
	for _, c := range a.cells {
		h := c.typical().Fairness.PerClient
		if h.Mean() == 0 {
			continue
		}
		drawn := curve{mark: c.mark}
		clients, even, before := float64(h.TotalCount()), h.Mean(), 0.0
		for _, bar := range h {
			y := float64(bar.To) / even
			after := before + float64(bar.Count)
			drawn.line = append(drawn.line, point{X: before / clients * 100, Y: y},
				point{X: after / clients * 100, Y: y})
			before = after
			most = max(most, y)
		}
		drawn.line = thinned(drawn.line, 160)
		drawn.marks = []point{drawn.line[len(drawn.line)/2], drawn.line[len(drawn.line)-1]}
		fig.curves = append(fig.curves, drawn)
	}
	fig.x, fig.y, fig.even = linear(100, results.Percent), linear(most*1.05, results.Number), true
	fig.xUnit = results.Percent
	return fig, nil
}

// thinned keeps about this many of a line's points, including both ends.
func thinned(line []point, most int) []point {
	if len(line) <= most {
		return line
	}
	var kept []point
	for i := range most {
		kept = append(kept, line[i*(len(line)-1)/(most-1)])
	}
	return kept
}

// mostSlices is the largest number of slices that a timeline shows.
const mostSlices = 120

// withCourse draws a figure of the slices over the window; without curves if no strategy has two slices.
func (a arena) withCourse(fig chart, unit results.Unit, log bool, of func(results.Slice) *float64) chart {
	seconds := 0.0
	for _, c := range a.cells {
		course := c.typical().Timeline
		for len(course) > mostSlices {
			course = results.Halve(course)
		}
		drawn := curve{mark: c.mark}
		for _, s := range course {
			if v := of(s); v != nil && (*v > 0 || !log) {
				drawn.line = append(drawn.line, point{X: s.At + s.Seconds/2, Y: *v})
			}
			seconds = max(seconds, s.At+s.Seconds)
		}
		if len(drawn.line) < 2 {
			continue
		}
		for i := 0; i < len(drawn.line); i += max(1, len(drawn.line)/6) {
			drawn.marks = append(drawn.marks, drawn.line[i])
		}
		fig.curves = append(fig.curves, drawn)
	}
	low, high, ok := span(fig.curves)
	if !ok {
		fig.curves = nil
		return fig
	}
	fig.x, fig.y, fig.yUnit = linear(seconds, results.Number), linear(high*1.08, unit), unit
	if log {
		fig.y = logarithmic(low, high, unit)
	}
	return fig
}

func perSecond(s results.Slice) *float64 {
	if s.Seconds <= 0 {
		return nil
	}
	return new(float64(s.Acquisitions) / s.Seconds)
}

func waitP99(s results.Slice) *float64 {
	if s.WaitP99 == nil {
		return nil
	}
	return new(math.Max(nanosecond, float64(*s.WaitP99)))
}

// Charts returns the names of all charts that the page of these reports has.
func Charts(files []File) ([]string, error) {
	all, err := charts(files)
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	return names, err
}

// Chart returns one chart as an SVG file of its own, with title and legend.
func Chart(files []File, name string) ([]byte, error) {
	all, err := charts(files)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if c.name == name {
			svg, err := c.file()
			return []byte(svg), err
		}
	}
	return nil, fmt.Errorf("there is no chart %q", name)
}

// charts returns the charts of all families, each with a unique name.
func charts(files []File) ([]chart, error) {
	var all []chart
	for i, f := range families(files) {
		f = f.drawn()
		of := f.overview()
		for _, a := range slices.Backward(f.arenas) {
			more, err := a.details()
			if err != nil {
				return nil, err
			}
			for j := range more {
				more[j].title += fmt.Sprintf(", %d clients", a.workload.Clients)
			}
			of = append(of, more...)
		}
		for _, c := range of {
			c.name = fmt.Sprintf("%d-%s", i+1, c.name)
			all = append(all, c)
		}
	}
	return all, nil
}
