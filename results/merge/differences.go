package merge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/results/compare"
)

// differences returns the reasons why the files are not of generators that measured together.
func differences(files []File) []error {
	if len(files) < 2 {
		return []error{fmt.Errorf("at least two reports are needed, %d given", len(files))}
	}
	var problems []error
	for _, f := range files {
		switch {
		case len(f.Generators) > 0:
			problems = append(problems, fmt.Errorf("%s is merged already: merge all generators' reports at once", f.Name))
		case f.Shared == nil:
			problems = append(problems, fmt.Errorf("%s was not measured together with others: --session was not given", f.Name))
		}
	}
	if len(problems) > 0 {
		return problems
	}
	first := files[0]
	for _, f := range files[1:] {
		differ := func(what, a, b string) {
			if a != b {
				problems = append(problems, fmt.Errorf("%s: %s in %s, %s in %s", what, a, first.Name, b, f.Name))
			}
		}
		differ("session", first.Shared.Session, f.Shared.Session)
		differ("build", strings.TrimSpace(first.Tool.Version+" "+first.Tool.Commit), strings.TrimSpace(f.Tool.Version+" "+f.Tool.Commit))
		differ("runs of each strategy", fmt.Sprint(first.Rounds), fmt.Sprint(f.Rounds))
		differ("strategies", strategies(first), strategies(f))
		differ("Redis", redis(first), redis(f))
	}
	base, head := compare.Side{Reports: []compare.Report{side(first)}}, compare.Side{}
	for _, f := range files[1:] {
		head.Reports = append(head.Reports, side(f))
	}
	for _, d := range compare.Differences(base, head) {
		if strings.HasPrefix(d.What, "workload ") {
			problems = append(problems, errors.New(d.String()))
		}
	}
	problems = append(problems, twice(files)...)
	if len(problems) == 0 { // otherwise their runs differ too
		problems = missing(files)
	}
	return problems
}

func side(f File) compare.Report { return compare.Report{File: f.Name, Report: f.Report} }

func strategies(f File) string {
	var names []string
	for _, s := range f.Strategies {
		names = append(names, s.Name)
	}
	return strings.Join(names, ",")
}

// redis identifies a server: by its processes' run IDs, or if these are unknown by its version,
// mode and topology.
func redis(f File) string {
	ids := slices.Sorted(slices.Values(f.Shared.RedisRuns))
	if len(ids) == 0 || slices.Contains(ids, "") {
		return strings.Join([]string{f.Redis.Release(), f.Redis.Mode, f.Redis.Topology}, " ")
	}
	return strings.Join(ids, ",")
}

// twice reports files of the same generator.
func twice(files []File) []error {
	var problems []error
	seen := map[string]string{}
	for _, f := range files {
		if other, known := seen[f.Shared.Generator]; known {
			problems = append(problems, fmt.Errorf("%s and %s are of the same generator, %s", other, f.Name, f.Shared.Generator))
		}
		seen[f.Shared.Generator] = f.Name
	}
	return problems
}

// missing reports the runs that not all generators have.
func missing(files []File) []error {
	var problems []error
	for _, having := range files {
		for _, run := range having.Runs {
			for _, f := range files {
				problem := fmt.Errorf("%s has no run of %s", f.Name, title(run))
				known := slices.ContainsFunc(problems, func(said error) bool { return said.Error() == problem.Error() })
				if find(f, run) == nil && !known {
					problems = append(problems, problem)
				}
			}
		}
	}
	if len(problems) == 0 && len(files[0].Runs) == 0 {
		problems = append(problems, errors.New("nothing was measured"))
	}
	return problems
}
