package findings

import (
	"fmt"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// OfReport returns the findings about a report apart from its figures: what is missing, and the
// thresholds.
func OfReport(r *results.Report) []Finding {
	var found []Finding
	add := func(kind Kind, text string, strategies ...string) {
		found = append(found, Finding{Kind: kind, Text: text, Strategies: strategies})
	}
	for _, left := range r.LeftOut {
		add(Kind{Sort: LeftOut, Note: "left out"}, left.Why, left.Strategy)
	}
	for _, warning := range r.Warnings {
		add(Kind{Note: "warning"}, warning)
	}
	for _, v := range r.Thresholds {
		if v.Passed {
			add(Kind{Note: "passed"}, v.String())
		} else {
			add(Kind{Sort: Crossed, Note: "! CROSSED"}, v.String())
		}
	}
	windows := 0
	for _, run := range r.Runs {
		if run.WindowNS > 0 {
			windows++
		}
	}
	measured := fmt.Sprintf("%d of %s measured", windows, words.Count(len(r.Strategies)*r.Rounds, "run"))
	if r.Interrupted {
		add(Kind{Sort: NotTrusted, Note: "! STOPPED"}, "interrupted: "+measured)
	}
	if r.Error != "" {
		add(Kind{Sort: NotTrusted, Note: "! ERROR"}, fmt.Sprintf("%s (%s)", r.Error, measured))
	}
	if len(r.Runs) == 0 {
		add(Kind{Sort: NotTrusted, Note: "! EMPTY"}, "nothing was measured")
	}
	return found
}
