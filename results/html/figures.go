package html

import (
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/results"
)

// collect keeps the figures that are not nil, and the first error.
type collect struct {
	figures []figure
	err     error
}

func (c *collect) add(f *figure, err error) {
	if c.err == nil && err != nil {
		c.err = err
	}
	if f != nil {
		c.figures = append(c.figures, *f)
	}
}

// overview returns the figures of a family: curves against the number of clients, or bars if
// there is only one number.
func (f family) overview() ([]figure, error) {
	var c collect
	for _, o := range []struct {
		figure
		metric, axis string
		log          bool
		ceiling      float64
	}{
		{figure{name: "throughput", title: "Throughput"}, "acq_per_s", "acquisitions per second", false, 0},
		{figure{name: "utilisation", title: "Utilisation", note: "What is missing from 100 % was lost handing the lock over, or nobody wanted it."},
			"utilisation", "share of the time that the lock was held", false, 100},
		{figure{name: "wait-p99", title: "Slowest waits", note: "Every client counts alike."}, "wait_per_client_p99", "99th percentile of the waits", true, 0},
		{figure{name: "commands", title: "Commands", note: "Counted by Redis, those inside scripts too."}, "commands_per_acq", "commands per acquisition", true, 0},
		{figure{name: "redis-cpu", title: "server CPU", note: "Less what the same connections cost idle."}, "redis_cpu_per_acq", "CPU time per acquisition", true, 0},
		{figure{name: "handoff-p99", title: "Slowest handoffs", note: "From the start of a release to the next lease, where somebody waited."}, "handoff_p99", "99th percentile of the handoffs", true, 0},
	} {
		fig := o.figure
		if len(f.arenas) == 1 {
			c.add(f.top().bars(fig, metric(o.metric), o.axis, o.ceiling))
			continue
		}
		switch o.name {
		case "commands", "redis-cpu":
			fig.title = "Herd curve: " + fig.title
			fig.note += " A rising line is a herd that grows with the clients."
		case "wait-p99":
			fig.note += " Dotted: at least that long."
		}
		c.add(f.growth(fig, metric(o.metric), o.axis, o.log), nil)
	}
	return c.figures, c.err
}

// details returns the figures of one arena.
func (a arena) details() ([]figure, error) {
	var c collect
	named := func(name, title, note string) figure {
		return figure{name: fmt.Sprintf("%s-c%d", name, a.workload.Clients), title: title, note: note}
	}
	const share, wait = "share of the waits", "wait"
	c.add(percentileFigure(named("wait", "Wait by percentile, over acquisitions", ""), a.cells, share, wait,
		func(r results.Run) results.Distribution { return r.Waiting.PerAcquisition }))
	c.add(percentileFigure(named("wait-per-client", "Wait by percentile, every client alike", ""), a.cells, share+", clients weighing alike", wait,
		func(r results.Run) results.Distribution { return r.Waiting.PerClient }))
	c.add(a.shares(named("fairness", "Acquisitions of each client", "The broken line is an even share; at 0 is a client that got nothing.")))
	c.add(percentileFigure(named("handoff", "Handoff by percentile", "From the start of a release to the next lease, where somebody waited."), a.cells, "share of the handoffs", "handoff",
		func(r results.Run) results.Distribution { return r.Speed.Handoff }))
	c.add(a.timeline(named("timeline", "Throughput in the course of the run", ""), "acquisitions per second", results.PerSecond, false, perSecond), nil)
	c.add(a.timeline(named("timeline-wait", "Slowest waits in the course of the run", "99th percentile of the waits that ended in each second."), "wait p99", results.Nanoseconds, true, waitP99), nil)
	return c.figures, c.err
}

// Picture is one figure for a slide.
type Picture struct {
	Name string // of its file: 1-throughput.png
	PNG  []byte
}

// Pictures draws every figure of the page, with title and legend.
func Pictures(files []File) ([]Picture, error) {
	figures, err := slides(files)
	if err != nil {
		return nil, err
	}
	var all []Picture
	for _, f := range figures {
		picture, err := f.slide()
		if err != nil {
			return nil, err
		}
		all = append(all, picture)
	}
	return all, nil
}

// slides returns the figures of all families, each with a unique name.
func slides(files []File) ([]figure, error) {
	var all []figure
	for i, f := range families(files) {
		f = f.drawn()
		figures, err := f.overview()
		if err != nil {
			return nil, err
		}
		for _, a := range slices.Backward(f.arenas) {
			more, err := a.details()
			if err != nil {
				return nil, err
			}
			for j := range more {
				more[j].title += fmt.Sprintf(", %d clients", a.workload.Clients)
			}
			figures = append(figures, more...)
		}
		for j := range figures {
			figures[j].name = fmt.Sprintf("%d-%s", i+1, figures[j].name)
		}
		all = append(all, figures...)
	}
	return all, nil
}
