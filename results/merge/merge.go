// Package merge adds up the reports of generators that measured together, on the same keys of the
// same Redis at the same time.
package merge

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/compare"
	"github.com/lockbench/lockbench/workloads"
)

// Merge returns the report of all generators' clients together: it adds their records, see
// results.Run.Add. The error names every reason why the reports do not belong together.
func Merge(files []results.File) (*results.Report, error) {
	if problems := differences(files); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b results.File) int { return cmp.Compare(a.Shared.Generator, b.Shared.Generator) })
	merged := frame(files)
	together := false
	for _, run := range files[0].Runs {
		sum, overlap := add(files, run)
		each := files[0].WorkloadOf(run)
		sum.Point = relabelled(run.Point, each, each.Times(len(files), 1))
		sum.Record.Contended = contended(files[0], each, run)
		sum.Compute()
		merged.Runs = append(merged.Runs, sum)
		together = together || overlap > 0
	}
	if !together {
		return nil, errors.New("no run of theirs was measured at the same time (give all of them the same --start-at)")
	}
	return merged, nil
}

// enough is the least share of a window that all windows must have in common: otherwise the figures
// are of different loads.
const enough = 0.9

// add adds up the generators' records of a run, and returns for how long their windows were open together.
func add(files []results.File, like results.Run) (sum results.Run, overlap time.Duration) {
	var longest int64
	var closed time.Time
	for i, f := range files {
		run := find(f, like)
		end := run.Started.Add(time.Duration(run.WindowNS))
		longest = max(longest, run.WindowNS)
		name := f.Shared.Generator
		claims, invalid, failure := run.Safety.Broken, run.Invalid, run.Failure
		run.Safety.Broken, run.Invalid, run.Failure = nil, nil, ""
		if i == 0 {
			sum, closed = run, end
			sum.Labels = nil
		} else {
			sum.Add(run)
		}
		if end.Before(closed) {
			closed = end
		}
		if run.Started.After(sum.Started) {
			sum.Started = run.Started
		}
		for _, claim := range claims {
			sum.Safety.Broken = append(sum.Safety.Broken, claim+" (seen by "+name+")")
		}
		for _, why := range invalid {
			sum.Invalid = append(sum.Invalid, name+": "+why)
		}
		if failure != "" && sum.Failure == "" {
			sum.Failure = name + ": " + failure
		}
		for _, label := range run.Labels {
			if label != results.PartOfASession && !slices.Contains(sum.Labels, label) {
				sum.Labels = append(sum.Labels, label)
			}
		}
	}
	overlap = max(0, closed.Sub(sum.Started))
	if float64(overlap) < enough*float64(longest) {
		sum.Invalid = append(sum.Invalid, fmt.Sprintf("its generators' windows were open together for %v of %v",
			overlap.Round(time.Millisecond), time.Duration(longest).Round(time.Millisecond)))
	}
	if sum.Speed.Acquisitions == 0 && sum.Valid() {
		sum.Invalid = append(sum.Invalid, "it had not one acquisition")
	}
	return sum, overlap
}

// contended says whether clients always waited. No generator sees the waiters of another, so it is only
// known for several clients of one key, none of which pauses, times out, shares or ends early.
func contended(f results.File, each workloads.Spec, run results.Run) bool {
	return each.Keys == 1 && each.Rate == 0 && len(each.Stages) == 0 && each.Think.IsZero() &&
		each.Timeout == nil && !each.Coalesce && each.Iterations == 0 &&
		slices.ContainsFunc(f.Strategies, func(s results.Strategy) bool {
			return s.Name == run.Strategy && s.Capacity == 1
		})
}

// frame returns the merged report without its runs.
func frame(files []results.File) *results.Report {
	first, n := files[0], len(files)
	merged := &results.Report{
		Schema: results.Schema, Tool: first.Tool, Started: first.Started, Finished: first.Finished,
		Environment: first.Environment, Redis: first.Redis, Stores: first.Stores,
		Workload: first.Workload.Times(n, 1), Rounds: first.Rounds, LeftOut: first.LeftOut,
	}
	for _, p := range first.Points {
		w := p.Workload.Times(n, 1)
		merged.Points = append(merged.Points, workloads.Point{Label: relabelled(p.Label, p.Workload, w), Workload: w})
	}
	for _, s := range first.Strategies {
		s.Instances *= n
		merged.Strategies = append(merged.Strategies, s)
	}
	var names, troubles []string
	for _, f := range files {
		p := results.GeneratorPart{
			Generator: f.Shared.Generator, Tool: f.Tool, Environment: f.Environment, Baselines: f.Baselines,
			Seed: f.Workload.Seed, Started: f.Started, Finished: f.Finished,
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
	merged.Warnings = append(merged.Warnings,
		fmt.Sprintf("merged from %d generators, %s: overlaps (their sum) and the largest "+
			"bypass (the largest of theirs) are of each one's own clients; overlaps, order and handoffs between "+
			"clients of different ones are not known; each one's counts are of its own window", n,
			strings.Join(names, ", ")))
	return merged
}

// relabelled returns a sweep's label with the values that are not the same any more.
func relabelled(label string, before, after workloads.Spec) string {
	words, was, is := strings.Fields(label), before.Given(), after.Given()
	for i, word := range words {
		if name, _, _ := strings.Cut(word, "="); !slices.Equal(was[name], is[name]) {
			words[i] = name + "=" + strings.Join(is[name], ",")
		}
	}
	return strings.Join(words, " ")
}

// differences returns the reasons why the files are not of generators that measured together.
func differences(files []results.File) []error {
	if len(files) < 2 {
		return []error{fmt.Errorf("at least two reports are needed, %d given", len(files))}
	}
	var problems []error
	for _, f := range files {
		switch {
		case len(f.Generators) > 0:
			problems = append(problems,
				fmt.Errorf("%s is merged already: merge all generators' reports at once", f.Name))
		case f.Shared == nil:
			problems = append(problems,
				fmt.Errorf("%s was not measured together with others: --session was not given", f.Name))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	first := files[0]
	generators := map[string]string{first.Shared.Generator: first.Name}
	for _, f := range files[1:] {
		differ := func(what, a, b string) {
			if a != b {
				problems = append(problems, fmt.Errorf("%s: %s in %s, %s in %s", what, a, first.Name, b, f.Name))
			}
		}
		differ("session", first.Shared.Session, f.Shared.Session)
		differ("build", first.Tool.Build(), f.Tool.Build())
		differ("runs of each strategy", fmt.Sprint(first.Rounds), fmt.Sprint(f.Rounds))
		differ("strategies", strategies(first), strategies(f))
		differ("Redis", redis(first), redis(f))
		if len(problems) == 0 { // otherwise their runs differ too
			differ("runs", runs(first), runs(f))
		}
		if other, known := generators[f.Shared.Generator]; known {
			problems = append(problems,
				fmt.Errorf("%s and %s are of the same generator, %s", other, f.Name, f.Shared.Generator))
		}
		generators[f.Shared.Generator] = f.Name
	}
	for _, d := range compare.Differences(compare.Side{Reports: files[:1]}, compare.Side{Reports: files[1:]}) {
		if strings.HasPrefix(d.What, "workload ") {
			problems = append(problems, errors.New(d.String()))
		}
	}
	return problems
}

func strategies(f results.File) string {
	var names []string
	for _, s := range f.Strategies {
		names = append(names, s.Name)
	}
	return strings.Join(names, ",")
}

func runs(f results.File) string {
	var names []string
	for _, run := range f.Runs {
		names = append(names, fmt.Sprintf("%s round %d", run.Title(), run.Round))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// redis identifies a server: by its processes' run IDs, or if these are unknown by its version,
// mode and topology.
func redis(f results.File) string {
	ids := slices.Sorted(slices.Values(f.Shared.RedisRuns))
	if len(ids) == 0 || slices.Contains(ids, "") {
		return strings.Join([]string{f.Redis.Release(), f.Redis.Mode, f.Redis.Topology}, " ")
	}
	return strings.Join(ids, ",")
}

// find returns a file's run of the same strategy, point and round.
func find(f results.File, like results.Run) results.Run {
	return f.Runs[slices.IndexFunc(f.Runs, func(run results.Run) bool {
		return run.Title() == like.Title() && run.Round == like.Round
	})]
}
