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

// File is a report and where it was read from.
type File struct {
	Name string
	*results.Report
}

// arena is one workload with the strategies that met it under the same
// conditions.
type arena struct {
	workload workloads.Spec
	cells    []cell
}

// cell is a strategy in an arena.
type cell struct {
	results.Summary
	mark
}

// family are arenas that differ in the number of clients only, fewest first.
type family struct {
	files  []File // made under the same conditions
	arenas []arena
}

// families sorts the files' runs: conditions, workload, clients.
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
		slices.SortStableFunc(f.arenas, func(a, b arena) int { return cmp.Compare(a.workload.Clients, b.workload.Clients) })
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

// paint gives every strategy one look for all of the page.
func paint(all []family) {
	names := strategyNames(all)
	for _, f := range all {
		for _, a := range f.arenas {
			for i := range a.cells {
				name := a.cells[i].Name
				a.cells[i].mark = mark{name, styleOf(slices.Index(names, name))}
			}
		}
	}
}

// kind is the same for workloads that differ in their clients only, and in the
// instances that follow from those.
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
		return fmt.Sprint(v) // it came out of such a document
	}
	return string(text)
}

// setups groups the files that were made by the same build on the same machine
// and Redis, so that their runs can be put together.
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

// setup leaves out what differs between any two sessions.
func setup(r *results.Report) string {
	e, s := r.Environment, r.Redis
	e.TimerOvershoot, e.ClockResolution = 0, 0
	s.Why = ""
	if s.Source != "address" { // else a free port, found at the time
		s.Address, s.Nodes = "", nil
	}
	return encoded([]any{r.Tool, e, s, r.Shared}) // what generators saw is put together by merge only
}

// top is the arena with the most clients.
func (f family) top() arena { return f.arenas[len(f.arenas)-1] }

// beyond is how many times as fast as every lock something must be that is none
// to be left out of the pictures: beside it they would lie at the bottom.
const beyond = 10

// drawn is the family without such strategies.
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
			return f // a number of clients that only those were measured at
		}
		locks.arenas = append(locks.arenas, arena{a.workload, kept})
	}
	return locks
}

// title says what all of the family's arenas have in common, and how many
// clients there were.
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

// strategyNames are those of all cells, each once, in order.
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

// metric is one of results.Metrics, each of which some test of the page draws.
func metric(name string) results.Metric {
	m, ok := results.FindMetric(name)
	if !ok {
		panic("html: no metric " + name)
	}
	return m
}

// typical is the run with the median throughput of those used: what cannot be
// put together from several runs is shown of it.
func (c cell) typical() results.Run {
	runs := slices.Clone(c.Used)
	slices.SortStableFunc(runs, func(a, b results.Run) int { return cmp.Compare(a.Speed.PerSecond, b.Speed.PerSecond) })
	return runs[(len(runs)-1)/2]
}
