package html

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// arena is one workload together with the strategies that were measured under it.
type arena struct {
	workload workloads.Spec
	cells    []cell
}

// cell is the summary of one strategy in an arena, with its style in charts.
type cell struct {
	results.Summary
	mark
}

// family is a section of the page. It holds the arenas of one report that differ only in the number of clients, in
// ascending order of that number.
type family struct {
	Title  string
	Open   bool // the page shows it unfolded
	file   string
	number string // before its title and its findings if there are several: "[1] "
	arenas []arena
}

// families groups the strategies of each file into sections and, within a section, by number of clients. A strategy has
// the same style in all sections.
func families(files []results.File) []family {
	var all []family
	var names []string
	for _, file := range files {
		for _, s := range file.Asked() { // a colour does not change when another strategy has run
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	style := styles(names)
	for _, file := range files {
		index := map[string]int{}
		for _, s := range file.Summaries() {
			key := kind(s.Workload)
			at, known := index[key]
			if !known {
				at = len(all)
				index[key] = at
				all = append(all, family{file: file.Name})
			}
			all[at].add(cell{s, mark{name: s.Name, style: style[s.Name]}})
		}
	}
	for i := range all {
		f := &all[i]
		slices.SortStableFunc(f.arenas,
			func(a, b arena) int { return cmp.Compare(a.workload.Clients, b.workload.Clients) })
		f.Open = i == 0 || len(all) <= 3
		if len(all) > 1 {
			f.number = fmt.Sprintf("[%d] ", i+1)
		}
		if f.Title = f.number; len(files) > 1 {
			f.Title += f.file + ": "
		}
		f.Title += f.title()
	}
	return all
}

func (f *family) add(c cell) {
	at := slices.IndexFunc(f.arenas, func(a arena) bool { return results.SameWorkload(a.workload, c.Workload) })
	if at < 0 {
		at = len(f.arenas)
		f.arenas = append(f.arenas, arena{workload: c.Workload})
	}
	f.arenas[at].cells = append(f.arenas[at].cells, c)
}

// kind returns a key that two workloads share if they differ only in the seed, the number of clients, and the number of
// instances that follows from the clients.
func kind(w workloads.Spec) string {
	if w.Instances == min(workloads.DefaultInstances, w.Clients) {
		w.Instances = 0
	}
	w.Clients, w.Seed = 0, 0
	return fmt.Sprint(w.Given())
}

// top returns the arena with the most clients.
func (f family) top() arena { return f.arenas[len(f.arenas)-1] }

// title returns the description of the workload, with the numbers of clients of all arenas.
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

// Strategies returns one cell for each strategy of the family, for the legend.
func (f family) Strategies() []cell {
	var all []cell
	for _, a := range f.arenas {
		for _, c := range a.cells {
			if !slices.ContainsFunc(all, func(known cell) bool { return known.Name == c.Name }) {
				all = append(all, c)
			}
		}
	}
	return all
}

// Table returns the table with a row for each strategy and, in a sweep, for each number of clients.
func (f family) Table() table {
	var all []results.Summary
	for _, a := range f.arenas {
		for _, c := range a.cells {
			if len(f.arenas) == 1 {
				c.Point = "" // the same for all
			}
			all = append(all, c.Summary)
		}
	}
	return tableOf("", results.Columns(results.PageGroup, nil), all)
}

// Arenas returns the arenas, the one with the most clients first.
func (f family) Arenas() []arena {
	arenas := slices.Clone(f.arenas)
	slices.Reverse(arenas)
	return arenas
}

// Note explains how the charts show several runs of a strategy; "" if there is only one.
func (f family) Note() string {
	if len(f.top().cells[0].Used) <= 1 {
		return ""
	}
	return "Points and bars are medians of the valid runs; strokes show the smallest and the largest value. " +
		"Percentiles combine all valid runs; shares and timelines show the run with the median throughput."
}

// Title returns the heading of the arena within its section.
func (a arena) Title() string { return fmt.Sprintf("%d clients", a.workload.Clients) }

// typical returns the used run with the median throughput. It represents all runs in charts that cannot combine several
// runs.
func (c cell) typical() results.Run {
	runs := slices.Clone(c.Used)
	slices.SortStableFunc(runs, func(a, b results.Run) int { return cmp.Compare(a.Speed.PerSecond, b.Speed.PerSecond) })
	return runs[(len(runs)-1)/2]
}
