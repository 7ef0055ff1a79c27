package html

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
)

// finding is one plain sentence that the figures support.
type finding struct {
	Sort findings.Sort
	Text string
}

// found returns the findings of all families and of their files, the worst first.
func found(all []family, files []File) []finding {
	var list []finding
	add := func(from string, more []findings.Finding) {
		for _, f := range more {
			if f.Sort != "" {
				list = append(list, finding{f.Sort, from + f.String() + "."})
			}
		}
	}
	for i, f := range all {
		var summaries []results.Summary
		for _, a := range f.arenas {
			for _, c := range a.cells {
				summaries = append(summaries, c.Summary)
			}
		}
		from := ""
		if len(all) > 1 {
			from = numbered(i, "")
		}
		add(from, findings.Of(summaries))
	}
	for _, file := range files {
		from := ""
		if len(files) > 1 {
			from = file.Name + ": "
		}
		add(from, findings.OfReport(file.Report))
	}
	slices.SortStableFunc(list, func(a, b finding) int {
		return cmp.Compare(slices.Index(findings.Sorts(), a.Sort), slices.Index(findings.Sorts(), b.Sort))
	})
	return list
}
