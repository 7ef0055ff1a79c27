package lockbench_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/workloads"
)

// together runs n generators concurrently. change receives the index and the plan of each generator. It may modify the
// plan, and returns the context in which that generator runs.
func together(
	t *testing.T, server *redistest.Server, n int, change func(int, *lockbench.Plan) context.Context,
) ([]*results.Report, []error) {
	t.Helper()
	reports, problems := make([]*results.Report, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		ctx := t.Context()
		p := plan(t, server.URL(), "spin,fenced", func(p *lockbench.Plan) {
			p.Rounds, p.Generators = 2, lockbench.Generators{Number: n, Index: i, Patience: time.Minute}
			p.Workload.Iterations, p.Workload.Duration = 0, workloads.Duration(300*time.Millisecond)
			p.Workload.Clients, p.Workload.Instances, p.Workload.Seed = 2, 1, 7
			p.Workload.Think = workloads.Fixed(time.Millisecond) // otherwise the clients keep the cores busy
			if change != nil {
				ctx = change(i, p)
			}
		})
		all.Go(func() { reports[i], problems[i] = lockbench.Run(ctx, p) })
	}
	all.Wait()
	return reports, problems
}

// Two generators together need more connections than maxclients allows, although each alone would fit. Run must return
// ErrConfig before any of them opens its connections.
func TestTooManyConnectionsForGenerators(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxclients", "100")
	_, problems := together(t, server, 2, func(_ int, p *lockbench.Plan) context.Context {
		p.Workload.Pool = 50
		return t.Context()
	})
	err := errors.Join(problems...)
	if !errors.Is(err, lockbench.ErrConfig) || !strings.Contains(err.Error(), "in 2 generators") {
		t.Errorf("two generators with 66 connections each, of 100: %v", err)
	}
}

// Generator 0 must report the sum of the records of all generators. Each other generator must return a report of its
// own clients.
func TestSumOfGenerators(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	reports, problems := together(t, server, 3, nil)
	if err := errors.Join(problems...); err != nil {
		t.Fatal(err)
	}
	sum := reports[0]
	if sum.Shared != nil || len(sum.Generators) != 3 || len(sum.Runs) != 4 || sum.Workload.Clients != 6 {
		t.Fatalf("%d generators, %d runs, %d clients, %+v", len(sum.Generators), len(sum.Runs), sum.Workload.Clients,
			sum.Shared)
	}
	parts := map[string]int64{}
	for i, report := range reports[1:] {
		own := sum.Generators[i+1]
		if report.Shared == nil || report.Shared.Generator != i+1 || own.Seed != int64(7+i+1) ||
			own.UncertaintyNS <= 0 {
			t.Errorf("generator %d: %+v, %+v", i+1, report.Shared, own)
		}
		for j, run := range report.Runs {
			if run.Title() != sum.Runs[j].Title() {
				t.Errorf("run %d is of %s and of %s", j, run.Title(), sum.Runs[j].Title())
			}
			parts[own.Generator] += run.Speed.Acquisitions
		}
	}
	var all int64
	for _, run := range sum.Runs {
		all += run.Speed.Acquisitions
		// A hold counts in the window in which it ends, so one hold per generator may cross each edge of the window. The
		// numbers of acquisitions and holds may therefore differ by one for each of the three generators.
		crossing := run.Speed.Acquisitions - run.Speed.Hold.Count
		if run.Record.Clients != 6 || max(crossing, -crossing) > 3 || run.Speed.Handoff.Count > 0 {
			t.Errorf("%s: %d clients, %d acquisitions, %d holds, %d handoffs", run.Title(), run.Record.Clients,
				run.Speed.Acquisitions, run.Speed.Hold.Count, run.Speed.Handoff.Count)
		}
	}
	for i, own := range sum.Generators {
		if got, known := parts[own.Generator]; known && got != own.Acquisitions || own.Acquisitions == 0 {
			t.Errorf("generator %d: %d acquisitions of its own, %d in the sum", i, got, own.Acquisitions)
		}
		all -= own.Acquisitions
	}
	if all != 0 {
		t.Errorf("the sum has %d more acquisitions than its parts", all)
	}
	if left := server.Client(t).Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// lasting makes a run last 5 s at a low CPU load, which leaves the test time to stop a generator during the run.
func lasting(p *lockbench.Plan) {
	p.Workload.Duration, p.Workload.Think = workloads.Duration(5*time.Second), workloads.Fixed(20*time.Millisecond)
}

// The test stops one of three generators during the second run. The others must end and report which one was stopped.
// The second run must be invalid, and the first run must stay valid. Generator 0 must report the sum of all generators
// or, if it was stopped itself, only its own records.
func TestStoppedGenerator(t *testing.T) {
	t.Parallel()
	for _, stopped := range []int{0, 2} {
		t.Run(fmt.Sprint("generator ", stopped), func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			reports, problems := together(t, server, 3, func(i int, p *lockbench.Plan) context.Context {
				p.Progress = func(now lockbench.Progress) {
					if i == 1 && now.Run == 2 && now.Phase == "measure" {
						stop()
					}
				}
				if lasting(p); i == stopped {
					return ctx
				}
				return t.Context()
			})
			name := fmt.Sprintf("generator %d was stopped", stopped)
			for i, problem := range problems {
				if i == stopped {
					if problem != nil || !reports[i].Interrupted {
						t.Errorf("the stopped generator: %v", problem)
					}
				} else if !errors.Is(problem, lockbench.ErrGenerator) || problem.Error() != name {
					t.Errorf("generator %d: %v", i, problem)
				}
				if (reports[i].Shared == nil) != (i == 0) {
					t.Errorf("generator %d reports: %+v", i, reports[i].Shared)
				}
			}
			sum := reports[0]
			if len(sum.Runs) != 2 || !sum.Runs[0].Valid() || sum.Runs[0].Record.Clients != 6 || sum.Runs[1].Valid() {
				t.Errorf("%d runs of %d generators, %q", len(sum.Runs), len(sum.Generators), sum.Error)
			}
			if stopped > 0 && (sum.Error != name || !slices.Contains(sum.Runs[1].Invalid.Texts(), name)) {
				t.Errorf("%q, invalid %q", sum.Error, sum.Runs[1].Invalid)
			}
			if left := server.Client(t).Keys(t.Context(), "lockbench:{*").Val(); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}

// If all generators are stopped, or Redis dies, generator 0 must still report the complete earlier runs and its own
// part of the last run.
func TestReportAfterAllGeneratorsStop(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"stopped": false, "Redis dies": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if kill {
				stop = server.Kill
			}
			once := sync.OnceFunc(stop)
			reports, problems := together(t, server, 2, func(i int, p *lockbench.Plan) context.Context {
				lasting(p)
				p.Progress = func(now lockbench.Progress) {
					if now.Run == 2 && now.Phase == "measure" {
						once()
					}
				}
				return ctx
			})
			for i, problem := range problems {
				if errors.Is(problem, lockbench.ErrUnreachable) != kill || !kill && problem != nil {
					t.Errorf("generator %d: %v", i, problem)
				}
			}
			sum := reports[0]
			if sum.Shared != nil || sum.Interrupted == kill || sum.Unreachable != kill || len(sum.Generators) == 0 ||
				len(sum.Runs) != 2 || sum.Runs[0].Record.Clients != 4 || sum.Runs[1].Valid() {
				t.Errorf("%d runs of %d generators, %q", len(sum.Runs), len(sum.Generators), sum.Error)
			}
			if reports[1].Shared == nil {
				t.Error("generator 1 returned a report too")
			}
		})
	}
}

// Two generators increment one shared counter. With noop, which excludes no client, updates must be lost; with spin,
// none. A figure that no generator measured must be –, not 0.
func TestLostUpdatesAcrossGenerators(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	figure := func(run results.Run, name string) string {
		m := results.MustMetric(name)
		return m.Of(run).Text(m.Unit)
	}
	counting := func(_ int, p *lockbench.Plan) context.Context {
		variants, err := strategies.ParseVariants("spin,noop")
		if err != nil {
			t.Fatal(err)
		}
		p.Strategies, p.Rounds, p.Workload.Work = variants, 1, workloads.WorkCounter
		return t.Context()
	}
	reports, problems := together(t, server, 2, counting)
	if err := errors.Join(problems...); err != nil {
		t.Fatal(err)
	}
	for _, run := range reports[0].Runs {
		lost := run.Safety.LostUpdates
		if lost == nil || (*lost > 0) != (run.Strategy == "noop") {
			t.Errorf("%s: %s lost updates of %v, counted %v", run.Strategy, figure(run, "lost_updates"),
				run.Record.Increments, run.Record.Counted)
		}
		if got := figure(run, "violations"); run.Strategy == "spin" && got != "0" {
			t.Errorf("spin: %s violations", got)
		}
	}
	reports, problems = together(t, server, 2, func(_ int, p *lockbench.Plan) context.Context { // holds of 0
		p.Rounds = 1
		return t.Context()
	})
	if err := errors.Join(problems...); err != nil {
		t.Fatal(err)
	}
	for _, run := range reports[0].Runs {
		for _, name := range []string{
			"violations", "overlaps", "max_holders", "largest_bypass", "lost_updates", "overtaken",
		} {
			if got := figure(run, name); got != "–" {
				t.Errorf("%s: %s %s, which no generator measured", run.Strategy, got, name)
			}
		}
	}
}

// homely is a lock that excludes only clients of the same generator. Each generator also counts its own fencing tokens.
type homely struct {
	taken chan struct{}
	token int64
}

func (h *homely) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	select {
	case h.taken <- struct{}{}:
		h.token++
		return homelyLease{h, h.token}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *homely) Close() error { return nil }

type homelyLease struct {
	lock  *homely
	token int64
}

func (l homelyLease) FencingToken() int64 { return l.token }

func (l homelyLease) Release(context.Context) error {
	<-l.lock.taken
	return nil
}

// The merged report must detect that clients of different generators held a lock at the same time, which no single
// generator can see. It must report no overlap for a lock that excludes all clients.
func TestOverlapsAcrossGenerators(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	claims := strategies.Claims{Exclusion: true, Fencing: true}
	lock := strategies.Unlisted(strategies.Info{Name: "homely", Capacity: 1, Nodes: 1, Claims: claims},
		func(strategies.ConfigOf[goredis.Node]) (*homely, error) {
			return &homely{taken: make(chan struct{}, 1)}, nil
		})
	reports, problems := together(t, server, 2, func(_ int, p *lockbench.Plan) context.Context {
		p.Strategies, p.Rounds = append(p.Strategies, lock), 1
		p.Workload.Hold = workloads.Fixed(20 * time.Millisecond)
		return t.Context()
	})
	if err := errors.Join(problems...); err != nil {
		t.Fatal(err)
	}
	for _, run := range reports[1].Runs {
		if s := run.Safety; s.Overlaps > 0 || s.FencingRegression > 0 || s.MaxHolders > 1 || run.Record.Leases == nil {
			t.Errorf("%s: generator 1 alone reports %+v, with %d bytes of leases", run.Strategy, s, len(run.Record.Leases))
		}
	}
	for _, run := range reports[0].Runs {
		var got []string
		for _, name := range []string{"violations", "overlaps", "max_holders", "fencing_regressions"} {
			m := results.MustMetric(name)
			got = append(got, m.Of(run).Text(m.Unit))
		}
		n := run.Safety
		t.Logf("%s: %q, %d acquisitions, %d overlaps of %v in all, %d tokens, clocks within %v", run.Strategy, got,
			run.Speed.Acquisitions, n.Overlaps, time.Duration(n.OverlapNS), n.FencingRegression,
			time.Duration(run.Record.UncertaintyNS))
		tokens := map[string]string{"spin": "–", "fenced": "0"}[run.Strategy]
		switch {
		case run.Strategy != "homely":
			if want := []string{"0", "0", "1.00", tokens}; !slices.Equal(got, want) || run.Record.Leases != nil {
				t.Errorf("%s: %q, want %q", run.Strategy, got, want)
			}
		case n.Overlaps == 0 || n.OverlapNS == 0 || n.MaxHolders != 2 || n.FencingRegression == 0 || len(n.Broken) != 2:
			t.Errorf("homely: %q, %+v of %d acquisitions", got, n, run.Speed.Acquisitions)
		}
	}
}
