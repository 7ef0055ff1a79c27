package command

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/strategies"
)

// read makes a plan from the parsed flags and the workload file that they name.
func (f *flags) read() (lockbench.Plan, []error) {
	problems := f.given.problems()
	if f.file != "" {
		problems = append(problems, flatten(f.given.readWorkload(f.file, &f.workload))...)
	}
	plan, err := f.plan()
	return plan, append(problems, flatten(err)...)
}

// plan returns what the flags ask for, and every error in them; each names its flag.
func (f *flags) plan() (lockbench.Plan, error) {
	var problems []error
	points, err := f.workload.Points()
	problems = append(problems, flatten(err)...)
	if len(f.strategies) == 0 {
		f.strategies = defaultStrategies()
	}
	variants, err := strategies.ParseVariants(strings.Join(f.strategies, ","))
	for _, problem := range flatten(err) {
		problems = append(problems, fmt.Errorf("--strategy: %w", problem))
	}
	plan := lockbench.Plan{
		Strategies: variants,
		Workload:   points[0].Workload,
		Rounds:     f.rounds,
		Redis:      f.redis,
		Stores:     f.stores().complete(),
		Baselines:  !f.noBaselines,
		Session:    f.session,
		Start:      f.start,
	}
	if len(points) > 1 {
		plan.Sweep = points
	}
	for _, problem := range flatten(plan.Validate()) {
		// An unknown strategy has been reported above.
		if len(variants) > 0 || !strings.HasPrefix(problem.Error(), "--strategy") {
			problems = append(problems, problem)
		}
	}
	return plan, errors.Join(problems...)
}

// shown says where Redis is, without user and password.
func shown(r lockbench.StoreOptions) string {
	var places []string
	for address := range strings.SplitSeq(r.Address, ",") {
		u, err := url.Parse(address)
		switch {
		case strings.Contains(r.Address, "://") && (err != nil || u.Scheme == "" || strings.Contains(u.Path, "@")), strings.Count(address, "@") > 1:
			// It may be part of a password.
			return "an address that cannot be read"
		case strings.Contains(address, "://"):
			address = u.Scheme + "://" + u.Host + u.Path
		default:
			address = address[strings.LastIndex(address, "@")+1:]
		}
		places = append(places, address)
	}
	if r.Topology != "" {
		return strings.Join(places, ", ") + ", " + r.Topology
	}
	return strings.Join(places, ", ")
}
