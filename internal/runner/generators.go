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

// sessionName is what may stand in keys and in the names of connections.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// sharedSession are the errors of a plan that other generators are to share.
func (p Plan) sharedSession() []error {
	var problems []error
	if !p.Start.IsZero() && len(p.Strategies)*len(p.points())*p.Rounds > 1 &&
		slices.ContainsFunc(p.points(), func(point point) bool { return point.Workload.Iterations > 0 }) {
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
	if slices.ContainsFunc(p.points(), func(point point) bool { return point.Workload.Burst > 0 }) {
		problems = append(problems, errors.New("--session: --burst brings the clients of one generator together, not those of several"))
	}
	if slices.ContainsFunc(p.points(), func(point point) bool { return point.Workload.Counter == workloads.CounterApart }) {
		problems = append(problems, errors.New("--session: with --counter apart each generator would have counters of its own"))
	}
	if slices.ContainsFunc(p.points(), func(point point) bool { return len(point.Workload.Faults) > 0 }) {
		problems = append(problems, errors.New("--session: what --fault sets off in one generator, the others would not know of"))
	}
	return problems
}

// order is the seed that shuffles the runs: generators that share a session run
// the same ones at the same time, whatever their seeds.
func (p Plan) order() uint64 {
	if p.Session == "" {
		return uint64(p.points()[0].Workload.Seed)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.Session)) // never fails, by its documentation
	return h.Sum64()
}

// slot is how long after a run's beginning the next one begins, with Plan.Start.
// It has to be the same for all generators, so it does not depend on how long
// anything really takes: warm-up, window, three seconds for what comes between
// and a millisecond for each client's connection.
func slot(w workloads.Spec) time.Duration {
	return w.Expected() + 3*time.Second + time.Duration(w.Clients)*time.Millisecond
}
