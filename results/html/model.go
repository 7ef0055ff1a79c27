package html

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// File is a report and the name of its file.
type File struct {
	Name string
	*results.Report
}

// arena is one workload with the strategies that ran it under the same conditions.
type arena struct {
	workload workloads.Spec
	cells    []cell
}

// cell is a strategy in an arena.
type cell struct {
	results.Summary
	mark
}

// family is a list of arenas that differ only in the number of clients, in ascending order.
type family struct {
	files  []File // made under the same conditions
	arenas []arena
}

// families groups the files' runs by conditions, workload and clients.
func families(files []File) []family {
	var all []family
	for _, alike := range setups(files) {
		var reports []*results.Report
		for _, f := range alike {
			reports = append(reports, f.Report)
		}
		index := map[string]int{}
		for _, s := range results.Summarise(reports) {
			key := kind(s.Workload)
			at, known := index[key]
			if !known {
				at = len(all)
				index[key] = at
				all = append(all, family{files: alike})
			}
			all[at].add(s)
		}
	}
	paint(all)
	for _, f := range all {
		slices.SortStableFunc(f.arenas,
			func(a, b arena) int { return cmp.Compare(a.workload.Clients, b.workload.Clients) })
	}
	return all
}

func (f *family) add(s results.Summary) {
	for i := range f.arenas {
		if results.SameWorkload(f.arenas[i].workload, s.Workload) {
			f.arenas[i].cells = append(f.arenas[i].cells, cell{Summary: s})
			return
		}
	}
	f.arenas = append(f.arenas, arena{s.Workload, []cell{{Summary: s}}})
}

// paint gives every strategy the same style on the whole page.
func paint(all []family) {
	names := strategyNames(all)
	for _, f := range all {
		for _, a := range f.arenas {
			for i := range a.cells {
				name := a.cells[i].Name
				a.cells[i].mark = mark{name, slices.Index(names, name)}
			}
		}
	}
}

// kind returns the same text for workloads that differ only in clients, and in the instances
// that follow from the clients.
func kind(w workloads.Spec) string {
	if w.Instances == min(workloads.DefaultInstances, w.Clients) {
		w.Instances = 0
	}
	w.Clients, w.Seed = 0, 0
	return encoded(w)
}

func encoded(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // cannot happen: it was read from JSON
	}
	return string(text)
}

// setups groups the files of the same build, machine and Redis: their runs can be combined.
func setups(files []File) [][]File {
	var groups [][]File
	index := map[string]int{}
	for _, f := range files {
		key := setup(f.Report)
		at, known := index[key]
		if !known {
			at = len(groups)
			index[key] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], f)
	}
	return groups
}

// setup encodes the conditions without what differs between any two sessions.
func setup(r *results.Report) string {
	e, s := r.Environment, r.Redis
	e.TimerOvershoot, e.ClockResolution = 0, 0
	s.Why = ""
	if s.Source != "address" { // otherwise a free port, chosen at the start
		s.Address, s.Nodes = "", nil
	}
	return encoded([]any{r.Tool, e, s, r.Shared}) // only merge combines reports of several generators
}

// top returns the arena with the most clients.
func (f family) top() arena { return f.arenas[len(f.arenas)-1] }

// beyond is how many times as fast as the fastest lock a strategy without exclusion must be
// to be left out of the pictures: it would squeeze the locks together at the bottom.
const beyond = 10

// drawn returns the family without such strategies.
func (f family) drawn() family {
	m := metric("acq_per_s")
	excludes := func(c cell) bool { return slices.Contains(c.Claims, "exclusion") }
	var left []string
	for _, a := range f.arenas {
		fastest := 0.0
		for _, c := range a.cells {
			if excludes(c) {
				fastest = max(fastest, c.Figure(m).Value)
			}
		}
		for _, c := range a.cells {
			if !excludes(c) && fastest > 0 && c.Figure(m).Value > beyond*fastest {
				left = append(left, c.Name)
			}
		}
	}
	locks := family{files: f.files}
	for _, a := range f.arenas {
		kept := slices.DeleteFunc(slices.Clone(a.cells), func(c cell) bool { return slices.Contains(left, c.Name) })
		if len(kept) == 0 {
			return f // only such strategies ran with this number of clients
		}
		locks.arenas = append(locks.arenas, arena{a.workload, kept})
	}
	return locks
}

// title describes what all arenas of the family have in common, and the numbers of clients.
func (f family) title() string {
	text := f.top().workload.Describe()
	for _, fault := range f.top().workload.Faults {
		text += " · " + fault.String()
	}
	if len(f.arenas) == 1 {
		return text
	}
	var clients []string
	for _, a := range f.arenas {
		clients = append(clients, strconv.Itoa(a.workload.Clients))
	}
	_, rest, _ := strings.Cut(text, " on ")
	return words.And(clients) + " clients on " + rest
}

// strategyNames returns the strategies of all cells, each once, in order.
func strategyNames(all []family) []string {
	var names []string
	for _, f := range all {
		for _, a := range f.arenas {
			for _, cell := range a.cells {
				if !slices.Contains(names, cell.Name) {
					names = append(names, cell.Name)
				}
			}
		}
	}
	return names
}

// metric returns a metric of results.Metrics. The tests draw every name that is used here.
func metric(name string) results.Metric {
	m, ok := results.FindMetric(name)
	if !ok {
		panic("html: no metric " + name)
	}
	return m
}

// typical returns the used run with the median throughput. It stands for all runs where
// runs cannot be combined.
func (c cell) typical() results.Run {
	runs := slices.Clone(c.Used)
	slices.SortStableFunc(runs, func(a, b results.Run) int { return cmp.Compare(a.Speed.PerSecond, b.Speed.PerSecond) })
	return runs[(len(runs)-1)/2]
}
