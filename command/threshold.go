package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// parseThresholds parses the values of --threshold and names every error. It refuses a
// threshold for a strategy that the plan does not have.
func parseThresholds(given []string, plan lockbench.Plan) ([]results.Threshold, error) {
	var thresholds []results.Threshold
	var problems []error
	for _, text := range given {
		t, err := results.ParseThreshold(text)
		for _, problem := range flatten(err) {
			problems = append(problems, fmt.Errorf("--threshold: %w", problem))
		}
		about := func(v strategies.Variant) bool { return t.Matches(v.Name()) }
		if err == nil && len(plan.Strategies) > 0 && !slices.ContainsFunc(plan.Strategies, about) {
			problems = append(problems, fmt.Errorf("--threshold: %q is about %s, which is not run", text, t.Strategy))
		}
		thresholds = append(thresholds, t)
	}
	return thresholds, errors.Join(problems...)
}
