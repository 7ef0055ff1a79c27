package lockbench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// session is the state of a plan while it runs.
type session struct {
	plan        Plan
	id          string
	generator   string    // its name among those that share the session; "" if it is alone
	start       time.Time // of the next run's warm-up; zero means at once
	servers     []place   // of the stores that strategies use, Redis first
	strategies  []strategies.Variant
	unsupported map[string]string // what the servers lack, by strategy
	report      *results.Report
	before      *results.Reading
	begun       int // runs begun
	granted     int64
	failures    []error // errors that left strategies out
}

// open opens the stores that the strategies need.
func open(ctx context.Context, plan Plan) (*session, error) {
	s := &session{
		plan: plan, id: store.NewRunID(), start: plan.Start, strategies: slices.Clone(plan.Strategies),
		unsupported: map[string]string{},
	}
	if plan.Session != "" {
		s.id, s.generator = store.SessionID(plan.Session), s.id
	}
	s.report = &results.Report{
		Schema:   results.Schema,
		Tool:     results.Tool{Name: "lockbench", Version: Version(), Commit: commit()},
		Started:  time.Now(),
		Redis:    results.Redis{Source: "none", Why: "no strategy talks to Redis"},
		Workload: plan.points()[0].Workload,
		Points:   plan.Sweep,
		Rounds:   plan.Rounds,
		Warnings: plan.Warnings(),
		Runs:     []results.Run{},
	}
	s.progress("", 0, "start", 0, nil)
	if err := s.openStores(ctx); err != nil {
		return nil, errors.Join(append([]error{err}, s.closeStores(context.WithoutCancel(ctx))...)...)
	}
	// This must follow openStores, which may pin the generator.
	s.report.Environment = measure.Environment()
	for _, p := range s.servers {
		if cpus := p.server.GeneratorCPUs(); cpus != nil {
			s.report.Environment.PinnedCPUs = cpus
		}
	}
	if s.generator != "" {
		s.report.Shared = &results.Shared{Session: plan.Session, Generator: s.generator}
		for _, p := range s.servers {
			s.report.Shared.RedisRuns = append(s.report.Shared.RedisRuns, p.server.RunIDs()...)
		}
	}
	s.before = s.read(ctx)
	return s, nil
}

// read reads Redis's counters; nil if that fails or there is no Redis.
func (s *session) read(ctx context.Context) *results.Reading {
	redis := s.named(store.Redis)
	if redis == nil {
		return nil
	}
	reading, err := redis.Read(ctx)
	if err != nil {
		return nil
	}
	return &reading
}

// last takes the last reading. It does not wait long for servers that stopped answering.
func (s *session) last(ctx context.Context, err error) *results.Reading {
	if errors.Is(err, store.ErrUnreachable) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
	}
	return s.read(ctx)
}

// progress reports what the session is doing; last is the last second of the window, if there is one.
func (s *session) progress(strategy string, round int, phase string, run int, last *results.Slice) {
	if s.plan.Progress == nil {
		return
	}
	runs := len(s.strategies) * len(s.plan.points()) * s.plan.Rounds
	all := s.plan.Expected()
	s.plan.Progress(Progress{
		Run: run, Runs: runs, Strategy: strategy, Round: round, Phase: phase, Last: last,
		Remaining: max(0, all-all*time.Duration(max(run-1, 0))/time.Duration(max(runs, 1))),
	})
}

// finish closes the servers and completes the report.
func (s *session) finish(ctx context.Context, err error) (*results.Report, error) {
	if after := s.last(ctx, err); after != nil && s.before != nil {
		s.report.Server = after.Since(*s.before, s.granted)
	}
	for _, problem := range s.closeStores(ctx) {
		s.report.Warnings = append(s.report.Warnings, untrusted.Printable(problem.Error()))
	}
	if err != nil {
		s.report.Error = untrusted.Printable(err.Error())
		s.report.Unreachable = errors.Is(err, store.ErrUnreachable)
	}
	s.report.Finished = time.Now()
	return s.report, err
}

// sessionName is what reports may call a session.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

// sharedSession returns the errors of a plan with a shared session.
func (p Plan) sharedSession() []error {
	var problems []error
	if !p.Start.IsZero() && len(p.Strategies)*len(p.points())*p.Rounds > 1 &&
		slices.ContainsFunc(p.points(), func(point workloads.Point) bool { return point.Workload.Iterations > 0 }) {
		problems = append(problems,
			errors.New("--start-at cannot tell when the second run is to begin if --iterations ends the first"))
	}
	if p.Session == "" {
		return problems
	}
	refuse := func(is func(workloads.Spec) bool, why string) {
		if slices.ContainsFunc(p.points(), func(point workloads.Point) bool { return is(point.Workload) }) {
			problems = append(problems, errors.New("--session: "+why))
		}
	}
	if !sessionName.MatchString(p.Session) {
		problems = append(problems, fmt.Errorf("--session must be up to 32 letters, digits, - and _, not %q",
			p.Session))
	}
	ours := func(name string) bool { return p.at(name).Started() }
	if names := p.storesNeeded(); len(names) == 0 || slices.ContainsFunc(names, ours) {
		problems = append(problems,
			errors.New("--session needs --redis with the address of a server that all generators reach"))
	}
	for _, v := range p.Strategies {
		if !engine.NeedsStore(v.Info(), p.points()[0].Workload) {
			problems = append(problems,
				fmt.Errorf("--session: %s does not use Redis, so that generators would not meet", v.Name()))
		}
	}
	refuse(func(w workloads.Spec) bool { return w.Burst > 0 },
		"--burst brings the clients of one generator together, not those of several")
	refuse(func(w workloads.Spec) bool { return w.Counter == workloads.CounterApart },
		"with --counter apart each generator would have counters of its own")
	refuse(func(w workloads.Spec) bool { return len(w.Faults) > 0 },
		"what --fault sets off in one generator, the others would not know of")
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
