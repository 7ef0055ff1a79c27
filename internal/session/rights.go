package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// refusals collects the rights and commands that the servers refuse, and the results of trying the strategies.
type refusals struct {
	try      bool // whether to try the strategies that lack nothing
	tried    int
	able     int // strategies that could acquire and release
	failures []error
	next     []string
	missing  map[string]store.Missing // by server
}

// permitted finds every right and command that lockbench or a strategy needs and a server refuses. Without this check
// the run would fail later, possibly only when a client waits. If try is set, permitted also tries each strategy that
// lacks nothing. A strategy is left out if the server does not support an operation that it needs.
func (s *session) permitted(ctx context.Context, symptom *results.Symptom, try bool) error {
	r := &refusals{try: try, missing: map[string]store.Missing{}}
	for _, p := range s.servers {
		for _, need := range s.needs(p) {
			if need.Costs != "" { // only a figure would be missing: see figures
				continue
			}
			if err := s.recordRefusals(ctx, r, p.name, need.By, need.Rights); err != nil {
				return err
			}
		}
	}
	r.try = try && len(r.failures) == 0 // if lockbench itself lacks a right, no strategy can connect
	for _, v := range s.plan.Strategies {
		name := s.plan.storeOf(v)
		if name == "" || s.unfit(v) != "" {
			continue
		}
		before := len(r.failures)
		err := s.recordRefusals(ctx, r, name, v.Name(), v.Info().Rights)
		if err == nil && r.try && len(r.failures) == before {
			err = s.try(ctx, r, v)
		}
		if err != nil || ctx.Err() != nil {
			return err
		}
	}
	s.sum(symptom, r)
	for _, p := range s.servers {
		r.next = append(r.next, remedies(p.server, r.missing[p.name])...)
	}
	symptom.Next = append(symptom.Next, r.next...)
	return nil
}

// recordRefusals records which of the given rights the server refuses. part names what needs these rights: lockbench or
// a strategy.
func (s *session) recordRefusals(
	ctx context.Context, r *refusals, server, part string, rights strategies.Rights,
) error {
	found, err := s.missing(ctx, server, rights)
	if n := len(found.Rights); n > 0 {
		right := map[bool]string{true: "the right", false: "the rights"}[n == 1]
		r.failures = append(r.failures, fmt.Errorf("%s needs %s %s", part, right, strings.Join(found.Rights, " ")))
	}
	if len(found.Commands) > 0 {
		r.failures = append(r.failures, fmt.Errorf("%s needs %s, which the server does not have", part,
			strings.Join(found.Commands, ", ")))
	}
	all := r.missing[server]
	all.Add(found)
	r.missing[server] = all
	return err
}

// sum writes the findings in r to the symptom.
func (s *session) sum(symptom *results.Symptom, r *refusals) {
	var out []string
	var left []results.LeftOut
	locks := 0
	for _, v := range s.plan.Strategies {
		switch why := s.unfit(v); {
		case why != "":
			left = append(left, results.LeftOut{Strategy: v.Name(), Why: results.Unfit.Remark(why)})
			out = append(out, v.Name()+" is left out: "+why)
		case v.Info().Driver:
			out = append(out, v.Name()+" starts: its first run tries the lock")
		case s.plan.storeOf(v) != "":
			locks++
		}
	}
	count := fmt.Errorf("%d of %d strategies could acquire and release a lock", r.able, locks)
	switch {
	case len(r.failures) > 0:
		if locks > 0 {
			trouble(symptom, count)
		}
		for _, failure := range r.failures {
			trouble(symptom, failure)
		}
	case len(left) == len(s.plan.Strategies):
		trouble(symptom, noneFits(left))
	default:
		if r.tried > 0 && locks > 0 {
			say(symptom, "%v", count)
		}
		for _, text := range out {
			say(symptom, "%s", text)
		}
	}
}

// try runs engine.Job.Try for a strategy and records the result in r. It returns an error only if the server does not
// reply.
func (s *session) try(ctx context.Context, r *refusals, v strategies.Variant) error {
	server, name := s.server(v), s.plan.storeOf(v)
	job := engine.Job{
		Strategy: v, Workload: s.report.Workload, Target: server,
		Session: s.own, // not the shared s.id: other generators try at the same time
	}
	for _, point := range s.plan.points() {
		if point.Workload.Work == workloads.WorkCounter { // this point needs the most operations
			job.Workload = point.Workload
		}
	}
	job.Hub = s.hub(v, job.Workload)
	r.tried++
	failures := job.Try(ctx)
	switch all := errors.Join(failures...); {
	case all == nil && v.Info().Driver:
	case all == nil:
		r.able++
	case ctx.Err() != nil: // the end of ctx caused the failures
	case errors.Is(all, errors.ErrUnsupported):
		s.unsupported[v.Name()] = all.Error()
	default:
		if gone := server.Ping(ctx); gone != nil {
			return gone
		}
		r.failures = append(r.failures, failures...)
		kind, err := store.Lookup(name)
		needer, ok := kind.(store.Needer)
		if ok && err == nil && server.Unauthorised(server.Refused(all)) {
			r.next = needer.Needs("lockbench")
		}
	}
	return nil
}

// remedies returns the steps that give a server's user the missing rights and commands.
func remedies(server store.Server, missing store.Missing) (next []string) {
	if e, ok := server.(store.Examiner); ok && len(missing.Rights) > 0 {
		next = append(next, "have an administrator run "+e.Grant(missing.Rights)+
			"; lockbench list NAME prints all that a strategy needs")
	}
	if len(missing.Commands) > 0 {
		next = append(next, "restore "+strings.Join(missing.Commands, ", ")+
			" on the server (rename-command?), or choose strategies that do not need it: lockbench list NAME prints the "+
			"commands of each; if the server is a proxy, such as twemproxy, give the address of the Redis behind it")
	}
	return next
}

// missing returns which of the given rights the server of a store refuses; none if the store cannot report refused
// rights.
func (s *session) missing(ctx context.Context, name string, rights strategies.Rights) (store.Missing, error) {
	e, ok := s.named(name).(store.Examiner)
	if !ok {
		return store.Missing{}, nil
	}
	return e.Missing(ctx, rights, engine.Prefix, "{"+s.own+":0:1}") // like the keys of engine.Job.Try
}

// needs returns the rights that lockbench itself needs on a server.
func (s *session) needs(p namedServer) []store.Need {
	e, ok := p.server.(store.Examiner)
	if !ok {
		return nil
	}
	uses := store.Uses{
		Baselines: s.plan.Baselines, Generators: s.plan.Generators.several() && p.name == store.Redis,
	}
	fences := func(v strategies.Variant) bool { return v.Info().Claims.Fencing }
	for _, point := range s.plan.points() {
		w := point.Workload
		if w.Work == workloads.WorkCounter && s.countersAt(w) == p.name {
			uses.Counter = true
			uses.Fenced = uses.Fenced || w.Fence != workloads.FenceOff && slices.ContainsFunc(s.plan.Strategies, fences)
		}
		if p.name == store.Redis {
			uses.Faults = append(uses.Faults, w.Faults...)
		}
	}
	return e.Needs(uses)
}

// figures adds to the symptom which figures the servers cannot provide, and why.
func (s *session) figures(ctx context.Context, symptom *results.Symptom) error {
	for _, p := range s.servers {
		var lacking store.Missing
		for _, need := range s.needs(p) {
			if need.Costs == "" {
				continue
			}
			missing, err := s.missing(ctx, p.name, need.Rights)
			if err != nil {
				return err
			}
			if all := slices.Concat(missing.Rights, missing.Commands); len(all) > 0 {
				say(symptom, "without %s %s", strings.Join(all, " "), need.Costs)
				symptom.State = results.Note
				lacking.Add(missing)
			}
		}
		if len(lacking.Rights)+len(lacking.Commands) > 0 { // for missing commands alone there is no GRANT to suggest
			symptom.Next = append(symptom.Next, remedies(p.server, store.Missing{Rights: lacking.Rights})...)
			continue
		}
		switch reading, err := p.server.Read(ctx); {
		case err != nil:
			return err
		case reading.CPU != nil && reading.Commands != nil:
			say(symptom, "%s reports CPU and commands", p.name)
		default:
			say(symptom, "%s does not report both CPU and commands: the report shows a dash for missing figures", p.name)
		}
	}
	return nil
}
