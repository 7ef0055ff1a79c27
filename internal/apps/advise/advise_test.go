package advise

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all"
	"github.com/lockbench/lockbench/workloads"
)

// lock is what a strategy came to in every round, each of which varies it a little.
type lock struct {
	name    string
	served  float64 // a second
	wait    float64 // the p90 per client, ms
	starves bool    // the wait is a lower bound
	cpu     float64 // µs an acquisition
	change  func(*results.Run)
}

func asked(change func(*Question)) Question {
	w := workloads.Default()
	w.Clients, w.Instances, w.Hold = 50, 10, workloads.Fixed(5e6)
	q := Question{For: Efficiency, Workload: w, Rounds: 6}
	if change != nil {
		change(&q)
	}
	return q
}

// reported is a report of these locks, at a point of a sweep or none.
func reported(rounds int, point string, all ...lock) *results.Report {
	r := &results.Report{Rounds: rounds, Workload: asked(nil).Workload}
	for _, l := range all {
		r.Strategies = append(r.Strategies, results.Strategy{Name: l.name, Claims: []string{"exclusion"}, Capacity: 1})
	}
	for round := 1; round <= rounds; round++ {
		for i, l := range all {
			noise := []float64{1.02, 0.98, 1, 1.01, 0.99, 1}[(round+i)%6] // and not the same way for all
			run := results.Run{Strategy: l.name, Round: round, Point: point}
			run.Speed = results.Speed{PerSecond: l.served * noise, ServedPerSecond: l.served * noise, Acquisitions: int64(l.served), Utilisation: 0.5}
			run.Speed.Handoff.Count = int64(l.served)
			wait := &results.Bound{NS: int64(l.wait * 1e6 * noise), AtLeast: l.starves}
			run.Waiting.PerClient.P90, run.Waiting.PerAcquisition.P90, run.Waiting.PerAcquisition.P99 = wait, wait, wait
			run.Server.Window = &results.ServerDelta{
				Acquisitions: run.Speed.Acquisitions, Calls: new(run.Speed.Acquisitions * 5), IdleCPU: new(0.0),
				CPU: new(l.cpu * 1e-6 * float64(run.Speed.Acquisitions) * noise),
			}
			run.Server.Peak = &results.ServerPeak{Clients: new(int64(50))}
			run.Safety.LostUpdates = new(int64(0))
			if l.change != nil {
				l.change(&run)
			}
			r.Runs = append(r.Runs, run)
		}
	}
	return r
}

// one is a matrix of which nothing was repeated.
func one(r *results.Report) []*results.Report { return []*results.Report{r} }

// joined puts the runs of two points into one report.
func joined(a, b *results.Report) *results.Report {
	a.Points = []workloads.Point{{Label: alone}, {Label: shared, Workload: workloads.Spec{Coalesce: true}}}
	a.Runs = append(a.Runs, b.Runs...)
	return a
}

func broken(r *results.Run) { r.Safety.Broken, r.Safety.Overlaps = []string{"exclusion"}, 2 }

func TestChoices(t *testing.T) {
	t.Parallel()
	const far = 1000
	for _, test := range []struct {
		name             string
		question         func(*Question)
		locks            []lock
		choice, runnerUp string
	}{
		{"what serves more", nil, []lock{{"spin", 100, 10, false, 50, nil}, {"pubsub", 200, 10, false, 50, nil}, {"handoff", 150, 10, false, 50, nil}}, "pubsub", "handoff"},
		{"a little more counts for nothing, and the shorter waits decide", nil, []lock{{"spin", 105, 100, false, 50, nil}, {"handoff", 100, 20, false, 90, nil}}, "handoff", "spin"},
		{"starving waiters wait longer, how long is not known", nil, []lock{{"spin", 105, 100, true, 50, nil}, {"handoff", 100, 20, false, 90, nil}}, "handoff", "spin"},
		{"what Redis pays decides last", nil, []lock{{"spin", 100, 20, false, 90, nil}, {"pubsub", 100, 20, false, 40, nil}}, "pubsub", "spin"},
		{"not told apart: fewer demands", func(q *Question) { q.Named = variants("pubsub,blpop,spin") }, []lock{{"pubsub", 100, 20, false, 50, nil}, {"blpop", 100, 20, false, 50, nil}, {"spin", 100, 20, false, 50, nil}}, "spin", "pubsub"},
		{"and demands neither: the simpler", nil, []lock{{"cohort", 100, 20, false, 50, nil}, {"handoff", 100, 20, false, 50, nil}}, "handoff", "cohort"},
		{"claims do not count", nil, []lock{{"pubsub", 100, 20, false, 50, nil}, {"redsync:tuned=true", 100, 20, false, 50, nil}}, "redsync:tuned=true", "pubsub"},
		{"our own come last, whatever others ask for", func(q *Question) { q.Named = variants("handoff,blpop") }, []lock{{"handoff", 100, 20, false, 50, nil}, {"blpop", 100, 20, false, 50, nil}}, "blpop", "handoff"},
		{"unless they are better", func(q *Question) { q.Named = variants("handoff,blpop") }, []lock{{"handoff", 120, 20, false, 50, nil}, {"blpop", 100, 20, false, 50, nil}}, "handoff", "blpop"},
		{"a lock that broke its claim is not taken", nil, []lock{{"spin", far, 1, false, 1, broken}, {"pubsub", 100, 20, false, 50, nil}}, "pubsub", ""},
		{"nor one that nobody can trust", nil, []lock{{"spin", far, 1, false, 1, func(r *results.Run) { r.Invalid = []string{"books"} }}, {"pubsub", 100, 20, false, 50, nil}}, "pubsub", ""},
		{"nor one with errors", nil, []lock{{"spin", far, 1, false, 1, func(r *results.Run) { r.Errors = []results.ErrorCount{{Error: "x", Count: 1}} }}, {"pubsub", 100, 20, false, 50, nil}}, "pubsub", ""},
		{"what too few rounds tell counts for nothing", nil, []lock{{"spin", 100, 20, false, 50, nil}, {"pubsub", 200, 20, false, 50, func(r *results.Run) {
			if r.Round > 4 {
				r.Invalid = []string{"books"}
			}
		}}}, "spin", "pubsub"},
		{"nothing is left", nil, []lock{{"spin", far, 1, false, 1, broken}}, "", ""},
		{"a mutex for one instance", func(q *Question) { q.Workload.Instances = 1 }, []lock{{"local", 110, 20, false, 0, func(r *results.Run) { r.Server = results.Server{} }}, {"spin", 105, 20, false, 50, nil}}, "local", "spin"},
		{"correctness wants tokens", func(q *Question) { q.For = Correctness }, []lock{{"spin", far, 1, false, 1, nil}, {"fenced", 100, 20, false, 50, nil}, {"handoff", 100, 20, false, 50, nil}}, "fenced", "handoff"},
		{"and a consensus store without a resource that checks them", func(q *Question) { q.For, q.Workload.Fence = Correctness, workloads.FenceOff }, []lock{{"spin", far, 1, false, 1, nil}, {"handoff", 100, 20, false, 50, nil}}, ConsensusStore, "handoff"},
		{"or without a lock that has any", func(q *Question) { q.For = Correctness; q.Named = variants("spin") }, []lock{{"spin", far, 1, false, 1, nil}}, ConsensusStore, ""},
		{"nobody keeps up", func(q *Question) { q.Workload.Rate = 1e4 }, []lock{{"spin", 100, 20, true, 50, overload}, {"handoff", 300, 20, true, 50, overload}}, NoLock, "handoff"},
		{"somebody keeps up", func(q *Question) { q.Workload.Rate = 1e4 }, []lock{{"spin", 100, 20, true, 50, overload}, {"handoff", 300, 20, false, 50, nil}}, "handoff", "spin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := asked(test.question).advise(measured{Locks: one(reported(6, "", test.locks...))})
			sound(t, a)
			if got := named(a.Choice); got != test.choice {
				t.Errorf("it recommends %q, want %q", got, test.choice)
			}
			if got := named(a.RunnerUp); got != test.runnerUp {
				t.Errorf("the runner-up is %q, want %q", got, test.runnerUp)
			}
		})
	}
}

func overload(r *results.Run) { r.Labels = []string{"overloaded: 9 waited"} }

func variants(list string) []strategies.Variant {
	all, err := strategies.ParseVariants(list)
	if err != nil {
		panic(err)
	}
	return all
}

func named(c *Choice) string {
	if c == nil {
		return ""
	}
	return c.Name
}

// sound holds the advice against what every advice must be.
func sound(t *testing.T, a *Document) {
	t.Helper()
	all := slices.Concat(a.Before, a.Cautions, a.Assumes)
	if (a.Headline == nil) != (a.Choice == nil) || a.Headline != nil && (a.Headline.Name != a.Choice.Name || a.Headline.RightIf == "") {
		t.Errorf("the headline of %q is %+v", named(a.Choice), a.Headline)
	}
	var page strings.Builder
	if err := WriteTable(&page, a, false); err != nil || strings.Contains(page.String(), "equal") {
		t.Errorf("%v, or it calls something equal:\n%s", err, page.String())
	}
	for _, c := range []*Choice{a.Choice, a.RunnerUp} {
		if c == nil {
			continue
		}
		all = append(all, c.Reasons...)
		if c.Name == NoLock || c.Name == ConsensusStore {
			continue
		}
		v := variants(c.Name)[0]
		if info := v.Info(); info.Caveat != "" || !info.Claims.Exclusion || a.For == Correctness && !info.Claims.Fencing {
			t.Errorf("it recommends %s", c.Name)
		}
	}
	for _, s := range all {
		rests := slices.ContainsFunc(s.Evidence, func(e findings.Evidence) bool { return e.Value != nil || len(e.Claims) > 0 })
		if !rests || !strings.HasSuffix(s.Text, ".") {
			t.Errorf("%q rests on nothing: %+v", s.Text, s.Evidence)
		}
		for _, e := range s.Evidence {
			for _, claim := range e.Claims {
				if !strings.Contains(s.Text, claim) {
					t.Errorf("%q does not say that it claims %s", s.Text, claim)
				}
			}
		}
	}
	for _, c := range a.Measured {
		if (c.Out == "") != (c.Name == named(a.Choice) || c.Name == named(a.RunnerUp)) && named(a.Choice) != NoLock {
			t.Errorf("%s is out because %q", c.Name, c.Out)
		}
	}
	for _, left := range a.LeftOut {
		if left.Why == "" {
			t.Errorf("%s is left out for nothing", left.Strategy)
		}
	}
}

func TestWhatComesBeforeALock(t *testing.T) {
	t.Parallel()
	m := measured{
		Locks:  one(reported(6, "", lock{"spin", 100, 20, false, 50, nil}, lock{"gated:spin", 100, 20, false, 10, nil})),
		Update: reported(6, "", lock{"atomic", 5000, 1, false, 1, nil}, lock{"gated:spin", 400, 1, false, 1, nil}),
		Shared: joined(reported(3, alone, lock{"gated:spin", 100, 1, false, 1, nil}), reported(3, shared, lock{"gated:spin", 400, 1, false, 1, nil})),
	}
	full := func(r *results.Run) { r.Speed.Utilisation = 0.97 }
	rare := func(r *results.Run) { r.Speed.Handoff.Count = 1 }
	for _, test := range []struct {
		name     string
		question func(*Question)
		change   func(*measured)
		want     []string
		not      []string
		choice   string
	}{
		{"doing without, sharing, a mutex", nil, nil, []string{
			"needs no lock: 5.00 k/s updates", "let them share one acquisition", "A mutex in each instance in front of spin, for 5 clients an instance", "50.0 µs (better)",
		}, []string{"consensus", "hardly contended", "no other lock"}, "gated:spin"},
		{"a value in Redis, said once", func(q *Question) { q.Workload.Work = workloads.WorkCounter }, nil, nil, []string{"needs no lock"}, NoLock},
		{"one command loses updates", func(q *Question) { q.Workload.Work = workloads.WorkCounter }, func(m *measured) {
			m.Update = reported(6, "", lock{"atomic", 5000, 1, false, 1, func(r *results.Run) { r.Safety.LostUpdates = new(int64(1)) }}, lock{"gated:spin", 400, 1, false, 1, nil})
		}, nil, nil, "gated:spin"},
		{"sharing brings nothing", nil, func(m *measured) {
			m.Shared = joined(reported(3, alone, lock{"gated:spin", 100, 1, false, 1, nil}), reported(3, shared, lock{"gated:spin", 101, 1, false, 1, nil}))
		}, nil, []string{"share one"}, "gated:spin"},
		{"always held", nil, func(m *measured) { m.Locks = one(reported(6, "", lock{"spin", 100, 20, false, 50, full})) }, []string{"held 97.0 % of the time"}, nil, "spin"},
		{"hardly contended", nil, func(m *measured) { m.Locks = one(reported(6, "", lock{"spin", 100, 20, false, 50, rare})) }, []string{"somebody waited at 6 of 600 releases"}, nil, "spin"},
		{"correctness", func(q *Question) { q.For = Correctness }, func(m *measured) {
			m.Locks = one(reported(6, "", lock{"spin", 100, 20, false, 50, nil}, lock{"handoff", 100, 20, false, 50, nil}))
			m.Shared = nil
			m.Paused = reported(2, "", lock{"spin", 100, 1, false, 1, func(r *results.Run) { r.Safety.LostUpdates = new(int64(3)) }}, lock{"handoff", 100, 1, false, 1, nil})
		}, []string{"None of these claims to survive the failover", "updates lost: 6 under spin", "0 under handoff"}, nil, "handoff"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			measured := m
			if test.change != nil {
				test.change(&measured)
			}
			a := asked(test.question).advise(measured)
			sound(t, a)
			if named(a.Choice) != test.choice {
				t.Errorf("it recommends %q, want %q", named(a.Choice), test.choice)
			}
			var text string
			for _, s := range a.Before {
				text += s.Text + "\n"
			}
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q:\n%s", want, text)
				}
			}
			for _, not := range test.not {
				if strings.Contains(text, not) {
					t.Errorf("it says %q:\n%s", not, text)
				}
			}
		})
	}
}

func TestCautions(t *testing.T) {
	t.Parallel()
	a := asked(nil).advise(measured{
		Locks: one(reported(6, "", lock{"spin", 10, 20, false, 50, func(r *results.Run) {
			r.Labels = []string{"busy machine"}
			if r.Round == 1 {
				r.Invalid = []string{"books"}
			}
		}})),
		Update: reported(1, "", lock{"atomic", 1000, 20, false, 50, func(r *results.Run) { r.Labels = []string{"steal 9.0%", "redis-bound"} }}),
	})
	sound(t, a)
	var got []string
	for _, s := range a.Cautions {
		got = append(got, s.Text)
	}
	want := []string{
		"Rounds in which every run can be trusted: 5 of 6. Ask again on a quieter machine.",
		"spin: 1 of its 6 runs cannot be trusted and are left out: books.",
		"spin: busy machine (busy with something other than lockbench and Redis: measure on a quieter one).",
		"spin: 10 handoffs in a run, and a p99 of less than 100 is their maximum: a longer --duration has more.",
		"Of one command instead of a lock, atomic: steal 9.0% (of all cores, by other machines on the same hardware).",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
