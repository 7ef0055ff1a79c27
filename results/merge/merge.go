// Package merge combines the reports of generators that measured together, on the same keys of the
// same Redis at the same time.
package merge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// File is a generator's report and the name of its file.
type File struct {
	Name string
	*results.Report
}

// Merge returns the report of all generators' clients together. Counts of a generator's own
// clients are added; what all generators saw of the same server is averaged; what only one
// process could observe on both sides is unknown. The error names every reason why the
// reports do not belong together.
func Merge(files []File) (*results.Report, error) {
	if problems := differences(files); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Shared.Generator, b.Shared.Generator) })
	merged := frame(files)
	overlapping := false
	for _, run := range files[0].Runs {
		var parts []part
		for _, f := range files {
			parts = append(parts, part{f.Shared.Generator, *find(f, run)})
		}
		together, err := join(parts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", title(run), err)
		}
		together.Speed.Gap = gap(merged, files[0].WorkloadOf(run), together)
		together.Point = relabelled(run.Point, files[0].WorkloadOf(run).Times(len(files), 1))
		overlapping = overlapping || together.WindowNS > 0
		merged.Runs = append(merged.Runs, together)
	}
	if !overlapping {
		return nil, errors.New("no run of theirs was measured at the same time (give all of them the same --start-at)")
	}
	return merged, nil
}

// frame returns the merged report without its runs.
func frame(files []File) *results.Report {
	first, n := files[0], len(files)
	merged := &results.Report{
		Schema: results.Schema, Tool: first.Tool, Started: first.Started, Finished: first.Finished,
		Environment: first.Environment, Redis: first.Redis, Stores: first.Stores, Workload: first.Workload.Times(n, 1), Rounds: first.Rounds, LeftOut: first.LeftOut,
	}
	for _, p := range first.Points {
		w := p.Workload.Times(n, 1)
		merged.Points = append(merged.Points, workloads.Point{Label: relabelled(p.Label, w), Workload: w})
	}
	for _, s := range first.Strategies {
		s.Instances *= n
		merged.Strategies = append(merged.Strategies, s)
	}
	var names, troubles []string
	for _, f := range files {
		p := results.GeneratorPart{
			Generator: f.Shared.Generator, Tool: f.Tool, Environment: f.Environment, Baselines: f.Baselines, Seed: f.Workload.Seed, Started: f.Started, Finished: f.Finished,
		}
		for _, run := range f.Runs {
			p.Acquisitions += run.Speed.Acquisitions
		}
		merged.Generators = append(merged.Generators, p)
		names = append(names, p.Generator)
		if f.Started.Before(merged.Started) {
			merged.Started = f.Started
		}
		if f.Finished.After(merged.Finished) {
			merged.Finished = f.Finished
		}
		merged.Interrupted = merged.Interrupted || f.Interrupted
		merged.Unreachable = merged.Unreachable || f.Unreachable
		if f.Error != "" {
			troubles = append(troubles, p.Generator+": "+f.Error)
		}
		for _, warning := range f.Warnings {
			if !slices.Contains(merged.Warnings, warning) {
				merged.Warnings = append(merged.Warnings, warning)
			}
		}
	}
	merged.Error = strings.Join(troubles, "; ")
	merged.Warnings = append(merged.Warnings, fmt.Sprintf("merged from %d generators, %s: overlaps (their sum) and the largest bypass (the largest of theirs) are of each one's own clients "+
		"among themselves; between clients of different ones overlaps, the order of acquisitions and handoffs could not be "+
		"looked at; "+
		"each one's counts are of its own window, and the windows may begin and end at other instants", n, strings.Join(names, ", ")))
	merged.Warnings = append(merged.Warnings, alike(files)...)
	return merged
}

// alike warns of generators that drew the same random numbers.
func alike(files []File) []string {
	seeds := map[int64]string{}
	var warnings []string
	for _, f := range files {
		name := f.Shared.Generator
		if other, taken := seeds[f.Workload.Seed]; taken && slices.ContainsFunc(f.Planned(), func(p workloads.Point) bool { return random(p.Workload) }) {
			warnings = append(warnings, fmt.Sprintf("%s and %s drew the same random numbers: give each generator a --seed of its own", other, name))
		}
		seeds[f.Workload.Seed] = name
	}
	return warnings
}

// random says whether the workload draws any random numbers.
func random(w workloads.Spec) bool {
	fixed := func(d workloads.Dist) bool { return d.String() == workloads.Fixed(d.Mean()).String() }
	return w.Keys > 1 || w.Rate > 0 && w.Arrivals == workloads.ArrivalsPoisson || !fixed(w.Hold) || !fixed(w.Think)
}

// relabelled returns a sweep's label with the scaled values.
func relabelled(label string, w workloads.Spec) string {
	words := strings.Fields(label)
	for i, word := range words {
		switch name, _, _ := strings.Cut(word, "="); name {
		case "clients":
			words[i] = fmt.Sprintf("clients=%d", w.Clients)
		case "instances":
			words[i] = fmt.Sprintf("instances=%d", w.Instances)
		case "rate":
			words[i] = "rate=" + w.Rate.String()
		}
	}
	return strings.Join(words, " ")
}

// find returns a file's run of the same strategy, point and round; nil if there is none.
func find(f File, like results.Run) *results.Run {
	i := slices.IndexFunc(f.Runs, func(run results.Run) bool {
		return run.Strategy == like.Strategy && run.Point == like.Point && run.Round == like.Round
	})
	if i < 0 {
		return nil
	}
	return &f.Runs[i]
}

func title(run results.Run) string {
	return fmt.Sprintf("%s, round %d", run.Title(), run.Round)
}
