package command

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/strategies"
)

// read makes a plan of flags that have been parsed, and of the workload file that they
// name.
func (f *flags) read() (lockbench.Plan, []error) {
	faults := f.given.faults()
	if f.file != "" {
		faults = append(faults, each(f.given.readWorkload(f.file, &f.workload))...)
	}
	plan, err := f.plan()
	return plan, append(faults, each(err)...)
}

// plan is what the flags ask for, and every fault in it, each naming its flag.
func (f *flags) plan() (lockbench.Plan, error) {
	var faults []error
	points, err := f.workload.Points()
	faults = append(faults, each(err)...)
	if len(f.strategies) == 0 {
		f.strategies = defaultStrategies()
	}
	variants, err := strategies.ParseVariants(strings.Join(f.strategies, ","))
	for _, fault := range each(err) {
		faults = append(faults, fmt.Errorf("--strategy: %w", fault))
	}
	plan := lockbench.Plan{
		Strategies: variants,
		Workload:   points[0].Workload,
		Rounds:     f.rounds,
		Redis:      f.redis,
		Stores:     f.stores().complete(),
		Floors:     !f.noFloors,
		Session:    f.session,
		Start:      f.start,
	}
	if len(points) > 1 {
		plan.Sweep = points
	}
	for _, fault := range each(plan.Validate()) {
		// Where a strategy is unknown, it has been said.
		if len(variants) > 0 || !strings.HasPrefix(fault.Error(), "--strategy") {
			faults = append(faults, fault)
		}
	}
	return plan, errors.Join(faults...)
}

// shown is where Redis is, without who we are there.
func shown(r lockbench.StoreOptions) string {
	var places []string
	for address := range strings.SplitSeq(r.Address, ",") {
		u, err := url.Parse(address)
		switch {
		case strings.Contains(r.Address, "://") && (err != nil || u.Scheme == "" || strings.Contains(u.Path, "@")), strings.Count(address, "@") > 1:
			// It may be a password cut in two.
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
