package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/results"
)

// show prints what would be done.
func (a *app) show(plan lockbench.Plan, outputs []output[*results.Report], thresholds []string) error {
	var names, places []string
	for _, v := range plan.Strategies {
		names = append(names, v.Name())
	}
	for _, o := range outputs {
		places = append(places, o.String())
	}
	w := plan.Workload
	sweep := ""
	for _, point := range plan.Sweep {
		sweep += ", " + point.Label
	}
	loop := "closed: a client acquires again once it has released"
	if w.Rate > 0 {
		loop = "open: clients arrive whatever becomes of the earlier ones"
	}
	baselines := "not measured"
	if plan.Baselines {
		baselines = "measured first"
	}
	var wrong []string
	for _, fault := range w.Faults {
		wrong = append(wrong, fault.String())
	}
	for _, line := range [][2]string{
		{"strategies", strings.Join(names, ", ")},
		{"runs", fmt.Sprintf("%d of each strategy, %d in all, shuffled by %s", plan.Rounds, plan.Rounds*len(names)*max(1, len(plan.Sweep)), seed(w.Seed))},
		{"sweep", strings.TrimPrefix(sweep, ", ")},
		{"workload", w.Describe()},
		{"connections", fmt.Sprintf("%d of each instance", w.PoolSize())},
		{"loop", loop},
		{"faults", strings.Join(wrong, ", ")},
		{"baselines", baselines},
		{"together", otherGenerators(plan)},
		{"redis", shown(plan.Redis)},
		{"stores", otherStores(plan)},
		{"output", strings.Join(places, ", ")},
		{"thresholds", strings.Join(thresholds, ", ")},
		{"expected", duration(plan)},
	} {
		if line[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(a.stdout, "%-12s%s\n", line[0], line[1]); err != nil {
			return &exit{ExitFailure, fmt.Errorf("print the plan: %w", err)}
		}
	}
	return nil
}

// otherStores says where the strategies' stores other than Redis are.
func otherStores(plan lockbench.Plan) string {
	var places []string
	for _, v := range plan.Strategies {
		name := v.Info().Store
		at := plan.Stores[name]
		at.Address = cmp.Or(at.Address, "started")
		place := name + " " + shown(at)
		if name != "" && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	return strings.Join(places, ", ")
}

// seed names the seed, or says that it will be drawn.
func seed(n int64) string {
	if n == 0 {
		return "a seed that is drawn"
	}
	return fmt.Sprintf("seed %d", n)
}

// otherGenerators names the session and the start that other generators share.
func otherGenerators(plan lockbench.Plan) string {
	var parts []string
	if plan.Session != "" {
		parts = append(parts, "session "+plan.Session)
	}
	if !plan.Start.IsZero() {
		parts = append(parts, "from "+plan.Start.Format(time.RFC3339))
	}
	return strings.Join(parts, ", ")
}

// duration says about how long the plan takes. How long iterations take is not known
// before the run.
func duration(plan lockbench.Plan) string {
	about := "about " + plan.Expected().Round(time.Second).String()
	if plan.Workload.Iterations > 0 {
		return about + ", and what the acquisitions take"
	}
	return about
}
