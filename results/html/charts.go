package html

import (
	"fmt"
	"math"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// farApart is the ratio of the largest to the smallest value above which a chart of rates has a logarithmic axis.
const farApart = 30

// overviews lists the charts at the beginning of a section, each of one metric. A chart shows lines against the number
// of clients, or bars if the section has only one number of clients.
var overviews = []struct {
	chart
	metric string
	rising string // what a line that rises with the clients shows
	log    bool   // the axis against clients is logarithmic
}{
	{chart{
		name: "gap", Title: "Gap", YName: "time per acquisition",
		Note: "Time in which no client held the lock although a client waited. It does not depend on the holds.",
	}, "gap", "", true},
	{chart{
		name: "throughput", Title: "Throughput", YName: "acquisitions per second",
	}, "acq_per_s", "", false},
	{chart{
		name: "utilisation", Title: "Utilisation", YName: "share of the time that the lock was held",
		Note: "The rest of the time the lock was being handed over, or no client wanted it.",
	}, "utilisation", "", false},
	{chart{
		name: "wait-p99", Title: "Wait p99, per client", YName: "99th percentile of the waits",
		Note: "Every client has the same weight. Arrows mark lower bounds.",
	}, "wait_per_client_p99", "", true},
	{chart{
		name: "commands", Title: "Commands", YName: "commands per acquisition",
		Note: "Counted by the server, including commands inside scripts.",
	}, "commands_per_acq", rises, true},
	{chart{
		name: "redis-cpu", Title: "Server CPU", YName: "CPU time per acquisition",
		Note: "The CPU time of the same connections when idle is subtracted.",
	}, "redis_cpu_per_acq", rises, true},
	{chart{
		name: "handoff-p99", Title: "Handoff p99", YName: "99th percentile of the handoffs",
		Note: "From the start of a release to the next lease, if a client waited.",
	}, "handoff_p99", "", true},
}

const rises = " A rising line means that an acquisition costs the server more with more clients."

// Overview returns the charts of overviews for which at least one strategy has a known value.
func (f family) Overview() []chart {
	var all []chart
	for _, o := range overviews {
		if o.metric == "acq_per_s" {
			o.chart.Note = f.pace()
		}
		c, known := f.top().withBars(o.chart, results.MustMetric(o.metric))
		if len(f.arenas) > 1 {
			o.chart.Note += o.rising
			c, known = f.withGrowth(o.chart, results.MustMetric(o.metric), o.log)
		}
		if known {
			all = append(all, c)
		}
	}
	return all
}

// pace returns the note under the throughput chart, which states how throughput depends on the holds; "" if arrivals or
// bursts determine the throughput.
func (f family) pace() string {
	w, note := f.top().workload, "Longer holds lower the throughput."
	noGap := func(c cell) bool { return c.Figure(results.MustMetric("gap")) == nil }
	switch {
	case w.Rate > 0 || w.Burst > 0:
		return ""
	case !slices.ContainsFunc(f.top().cells, noGap):
		note = "Longer holds lower the throughput: where the mean holds differ, compare the gap."
	}
	return note
}

// withBars returns the chart with one bar per strategy, which shows the metric; false if no figure is above 0 and the
// metric is not a percentage.
func (a arena) withBars(c chart, m results.Metric) (chart, bool) {
	c.y = axis{}
	if m.Unit == results.Percent {
		c.y.high = 100
	}
	for _, one := range a.cells {
		b := bar{mark: one.mark, text: results.Column{Metric: m}.Text(one.Summary)}
		if figure := one.Figure(m); figure != nil && b.text != results.NotKnown {
			b.high, b.atLeast = max(0, figure.Value), figure.AtLeast
			low, high, _ := one.Range(m)
			b.ranges = extent{low: max(0, low), high: max(0, high)}
			c.y.high = max(c.y.high, b.high, high)
		}
		c.bars = append(c.bars, b)
	}
	return c, c.y.high > 0
}

// withGrowth returns the chart with one line per strategy, which shows the metric against the number of clients; false
// if no strategy has a positive figure.
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
	switch {
	case log && ok:
		c.y = logarithmic(low, high, m.Unit)
	case m.Unit == results.Percent:
		c.y = linear(max(100, high), m.Unit)
	default:
		c.y = linear(high*1.05, m.Unit)
	}
	c.x = axis{low: slices.Min(clients) / 1.15, high: slices.Max(clients) * 1.15, log: true}
	last := -1.0
	for _, n := range clients {
		t := tick{value: n}
		if at := c.x.share(n); last < 0 || at-last > 0.12 {
			t.label, last = short(n, results.Number), at
		}
		c.x.ticks = append(c.x.ticks, t)
	}
	c.XName, c.yUnit = "clients", m.Unit
	return c, ok
}

// lines returns the curves of all strategies that have the metric.
func (f family) lines(m results.Metric, log bool) []curve {
	var all []curve
	for _, one := range f.Strategies() {
		c := curve{mark: one.mark}
		for _, a := range f.arenas {
			at := slices.IndexFunc(a.cells, func(c cell) bool { return c.Name == one.Name })
			if at < 0 {
				continue
			}
			figure := a.cells[at].Figure(m)
			if figure == nil || log && figure.Value <= 0 {
				continue
			}
			p := point{float64(a.workload.Clients), figure.Value}
			if c.add(spot{p, figure.AtLeast}); len(c.bound) > 0 {
				continue
			}
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

// span returns the smallest and the largest positive y value of all curves; false if there is none.
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

var fairness = chart{
	Title: "Acquisitions of each client", Note: "The dotted line is an even share. A client at 0 made no acquisition.",
	XName: "clients, from the fewest acquisitions to the most", YName: "acquisitions, in even shares",
}

// Details returns the charts about a single number of clients: percentiles, fairness and the course of the run.
func (a arena) Details() []chart {
	named := func(name, title, note, x, y string) chart {
		return chart{
			name: fmt.Sprintf("%s-c%d", name, a.workload.Clients), Title: title, Note: note, XName: x, YName: y,
		}
	}
	waits := func(r results.Run) results.Distribution { return r.Waiting.PerAcquisition }
	perClient := func(r results.Run) results.Distribution { return r.Waiting.PerClient }
	handoffs := func(r results.Run) results.Distribution { return r.Speed.Handoff }
	all := []chart{
		withPercentiles(named("wait", "Wait by percentile, over acquisitions", "", "share of the waits", "wait"),
			a.cells, waits),
		withPercentiles(named("wait-per-client", "Wait by percentile, weighted per client", "",
			"share of the waits, weighted per client", "wait"), a.cells, perClient),
		a.withShares(named("fairness", fairness.Title, fairness.Note, fairness.XName, fairness.YName)),
		withPercentiles(named("handoff", "Handoff by percentile",
			"From the start of a release to the next lease, if a client waited.", "share of the handoffs",
			"handoff"), a.cells, handoffs),
		a.withCourse(named("timeline", "Throughput during the run", "", "seconds since the window opened",
			"acquisitions per second")),
	}
	return slices.DeleteFunc(all, func(c chart) bool { return len(c.curves) == 0 })
}

// The x axis of the percentile charts is 1/(1−q) for the quantile q: each further power of ten adds a nine to the
// percentile.
const (
	mostNines  = 4.0  // decades
	perDecade  = 14.0 // points of a curve
	nanosecond = 1.0  // the smallest duration on a logarithmic axis
)

// withPercentiles returns the chart with a curve for each cell that has durations, which shows the durations against
// their percentiles. If no cell has any, it returns the zero chart.
func withPercentiles(c chart, cells []cell, of func(results.Run) results.Distribution) chart {
	c.x = axis{low: 1, high: 100, log: true}
	for _, one := range cells {
		var parts []results.Distribution
		for _, run := range one.Used {
			if d := of(run); d.Recorded() {
				parts = append(parts, d)
			}
		}
		pooled := results.Sum(parts...)
		if pooled.Count+pooled.Censored == 0 {
			continue
		}
		drawn := one.percentiles(pooled.Survival(), pooled.Count+pooled.Censored)
		c.curves = append(c.curves, drawn)
		for _, p := range slices.Concat(drawn.line, drawn.bound) {
			c.x.high = max(c.x.high, p.X)
		}
		if len(drawn.bound) > 0 && c.Note == "" {
			c.Note = "Dotted lines are lower bounds: some durations had not ended, or too few support the percentile."
		}
	}
	low, high, ok := span(c.curves)
	if !ok {
		return chart{}
	}
	c.y, c.yUnit = logarithmic(low, high, results.Nanoseconds), results.Nanoseconds
	for _, t := range []tick{{2, "50 %"}, {10, "90 %"}, {100, "99 %"}, {1000, "99.9 %"}, {10000, "99.99 %"}} {
		if t.value <= c.x.high {
			c.x.ticks = append(c.x.ticks, t)
		}
	}
	return c
}

// percentiles returns the curve of a cell. It ends at the highest percentile for which the number of observed durations
// is large enough.
func (c cell) percentiles(survival results.Survival, observed int64) curve {
	drawn := curve{mark: c.mark}
	most := min(mostNines, math.Log10(max(2, float64(observed))))
	quantile := func(decade float64) (spot, bool) {
		x := math.Pow(10, decade)
		q := survival.Quantile(1 - 1/x)
		if q == nil {
			return spot{}, false
		}
		return spot{point{x, max(nanosecond, float64(q.NS))}, q.AtLeast}, true
	}
	for i := 0.0; ; i++ {
		decade := min(i/perDecade, most)
		at, known := quantile(decade)
		switch {
		case !known:
			return drawn
		case at.atLeast && len(drawn.bound) == 0 && len(drawn.line) > 0:
			drawn.bound = []point{drawn.line[len(drawn.line)-1], at.point}
		case at.atLeast:
			drawn.bound = append(drawn.bound, at.point)
		default:
			drawn.line = append(drawn.line, at.point)
		}
		if decade == most {
			break
		}
	}
	for _, x := range []float64{2, 10, 100, 1000} {
		if at, known := quantile(math.Log10(x)); known && math.Log10(x) <= most {
			drawn.marks = append(drawn.marks, at)
		}
	}
	return drawn
}

// withShares returns the chart with the number of acquisitions of each client, divided by the mean of all clients, in
// ascending order. It has no curves if the acquisitions per client were not recorded.
func (a arena) withShares(fig chart) chart {
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
		drawn.marks = []spot{{point: drawn.line[len(drawn.line)/2]}, {point: drawn.line[len(drawn.line)-1]}}
		fig.curves = append(fig.curves, drawn)
	}
	fig.x, fig.y, fig.even = linear(100, results.Percent), linear(most*1.05, results.Number), true
	fig.xUnit = results.Percent
	return fig
}

// thinned returns at most this many points of a line, spaced evenly and including both ends.
func thinned[T any](line []T, most int) []T {
	if len(line) <= most {
		return line
	}
	var kept []T
	for i := range most {
		kept = append(kept, line[i*(len(line)-1)/(most-1)])
	}
	return kept
}

// mostSlices is the largest number of slices that a timeline shows. If there are more, neighbouring slices are joined.
const mostSlices = 120

// withCourse returns the chart with the throughput of each strategy over the window. It has no curves if no strategy
// has at least two slices.
func (a arena) withCourse(fig chart) chart {
	seconds := 0.0
	for _, c := range a.cells {
		course := c.typical().Timeline
		for len(course) > mostSlices {
			course = results.Halve(course)
		}
		drawn := curve{mark: c.mark}
		for _, s := range course {
			if s.Seconds > 0 {
				drawn.line = append(drawn.line, point{X: s.At + s.Seconds/2, Y: float64(s.Acquisitions) / s.Seconds})
			}
			seconds = max(seconds, s.At+s.Seconds)
		}
		if len(drawn.line) < 2 {
			continue
		}
		for i := 0; i < len(drawn.line); i += max(1, len(drawn.line)/3) {
			drawn.marks = append(drawn.marks, spot{point: drawn.line[i]})
		}
		fig.curves = append(fig.curves, drawn)
	}
	_, high, ok := span(fig.curves)
	if !ok {
		return chart{}
	}
	fig.x, fig.y = linear(seconds, results.Number), linear(high*1.08, results.PerSecond)
	fig.yUnit = results.PerSecond
	return fig
}

// charts returns the charts of all sections, each with a unique name, by which WriteChart selects it.
func charts(files []results.File) []chart {
	var all []chart
	for i, f := range families(files) {
		of := f.Overview()
		for _, a := range slices.Backward(f.arenas) {
			for _, c := range a.Details() {
				c.Title += fmt.Sprintf(", %d clients", a.workload.Clients)
				of = append(of, c)
			}
		}
		for _, c := range of {
			c.name = fmt.Sprintf("%d-%s", i+1, c.name)
			all = append(all, c)
		}
	}
	return all
}
