package render

import (
	"fmt"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// heading writes what was measured, on what, and the baselines.
func (p *page) heading(r *results.Report) {
	parts := []string{r.Tool.Version, words.Count(r.Rounds, "run") + " of each strategy"}
	if len(r.Generators) == 0 && r.Workload.Seed != 0 { // each generator has its own seed
		parts = append(parts, fmt.Sprintf("seed %d", r.Workload.Seed))
	}
	if !r.Started.IsZero() {
		parts = append(parts, r.Started.UTC().Format("2006-01-02 15:04 MST"))
	}
	p.Entry("lockbench", words.Dotted(parts...))
	for _, line := range r.Conditions() {
		p.Entry(line[0], line[1])
	}
}
