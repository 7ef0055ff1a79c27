package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// parseThresholds reads what --threshold was given and names every fault. One
// about a strategy that the plan does not have could never be passed.
func parseThresholds(given []string, plan lockbench.Plan) ([]results.Threshold, error) {
	var thresholds []results.Threshold
	var faults []error
	for _, text := range given {
		t, err := results.ParseThreshold(text)
		for _, fault := range each(err) {
			faults = append(faults, fmt.Errorf("--threshold: %w", fault))
		}
		about := func(v strategies.Variant) bool { return t.Matches(v.Name()) }
		if err == nil && len(plan.Strategies) > 0 && !slices.ContainsFunc(plan.Strategies, about) {
			faults = append(faults, fmt.Errorf("--threshold: %q is about %s, which is not run", text, t.Strategy))
		}
		thresholds = append(thresholds, t)
	}
	return thresholds, errors.Join(faults...)
}
