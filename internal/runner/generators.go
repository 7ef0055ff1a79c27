package runner

import (
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/workloads"
)

// sessionName is what reports may call a session.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// sharedSession returns the errors of a plan with a shared session.
func (p Plan) sharedSession() []error {
	var problems []error
	if !p.Start.IsZero() && len(p.Strategies)*len(p.points())*p.Rounds > 1 &&
		slices.ContainsFunc(p.points(), func(point workloads.Point) bool { return point.Workload.Iterations > 0 }) {
		problems = append(problems, errors.New("--start-at cannot tell when the second run is to begin if --iterations ends the first"))
	}
	if p.Session == "" {
		return problems
	}
	if !sessionName.MatchString(p.Session) {
		problems = append(problems, fmt.Errorf("--session must be up to 32 letters, digits, - and _, not %q", p.Session))
	}
	ours := func(name string) bool { return p.Stores[name].Started() }
	if names := p.storesNeeded(); len(names) == 0 || slices.ContainsFunc(names, ours) {
		problems = append(problems, errors.New("--session needs --redis with the address of a server that all generators reach"))
	}
	for _, v := range p.Strategies {
		if !engine.NeedsStore(v.Info(), p.points()[0].Workload) {
			problems = append(problems, fmt.Errorf("--session: %s does not use Redis, so that generators would not meet", v.Name()))
		}
	}
	if slices.ContainsFunc(p.points(), func(point workloads.Point) bool { return point.Workload.Burst > 0 }) {
		problems = append(problems, errors.New("--session: --burst brings the clients of one generator together, not those of several"))
	}
	if slices.ContainsFunc(p.points(), func(point workloads.Point) bool { return point.Workload.Counter == workloads.CounterApart }) {
		problems = append(problems, errors.New("--session: with --counter apart each generator would have counters of its own"))
	}
	if slices.ContainsFunc(p.points(), func(point workloads.Point) bool { return len(point.Workload.Faults) > 0 }) {
		problems = append(problems, errors.New("--session: what --fault sets off in one generator, the others would not know of"))
	}
	return problems
}

// order returns the seed for the order of the runs. Generators that share a session have the same
// order, whatever their seeds.
func (p Plan) order() uint64 {
	if p.Session == "" {
		return uint64(p.points()[0].Workload.Seed)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Session)) // never fails, by its documentation
	return h.Sum64()
}

// slot is the time between the starts of two runs, with Plan.Start. It must be the same for all
// generators, so it does not depend on measured times: warm-up, window, three seconds for the
// rest and a millisecond for each client's connection.
func slot(w workloads.Spec) time.Duration {
	return w.Expected() + 3*time.Second + time.Duration(w.Clients)*time.Millisecond
}
