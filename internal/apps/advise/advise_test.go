package advise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
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

// like is a lock like all others.
func like(name string) lock { return lock{name, 100, 20, false, 50, nil} }

// with changes each of a lock's runs.
func (l lock) with(change func(*results.Run)) lock {
	l.change = change
	return l
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

// reported is a report of these locks.
func reported(rounds int, all ...lock) *results.Report {
	r := &results.Report{Rounds: rounds, Workload: asked(nil).Workload}
	for _, l := range all {
		r.Strategies = append(r.Strategies, results.Strategy{Name: l.name, Claims: []string{"exclusion"}, Capacity: 1})
	}
	for round := 1; round <= rounds; round++ {
		for i, l := range all {
			noise := []float64{1.02, 0.98, 1, 1.01, 0.99, 1}[(round+i)%6] // and not the same way for all
			run := results.Run{Strategy: l.name, Round: round}
			run.Speed = results.Speed{
				PerSecond: l.served * noise, ServedPerSecond: l.served * noise,
				Acquisitions: int64(l.served), Utilisation: 0.5,
			}
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

func broken(r *results.Run) { r.Safety.Broken, r.Safety.Overlaps = []string{"exclusion"}, 2 }

func TestChoices(t *testing.T) {
	t.Parallel()
	best := lock{"spin", 1000, 1, false, 1, nil}
	late, quick := lock{"spin", 100, 20, true, 50, overload}, lock{"handoff", 300, 20, false, 50, nil}
	alike := func(names ...string) (all []lock) {
		for _, name := range names {
			all = append(all, like(name))
		}
		return all
	}
	among := func(list string) func(*Question) { return func(q *Question) { q.Named = variants(list) } }
	correctly := func(q *Question) { q.For = Correctness }
	hurried := func(q *Question) { q.Workload.Rate = 1e4 }
	for _, test := range []struct {
		name           string
		question       func(*Question)
		locks          []lock
		choice, second string
	}{
		{
			"what serves more", nil,
			[]lock{like("spin"), {"pubsub", 200, 20, false, 50, nil}, {"handoff", 150, 20, false, 50, nil}},
			"pubsub", "handoff",
		},
		{
			"a little more counts for nothing, and the shorter waits decide", nil,
			[]lock{{"spin", 105, 100, false, 50, nil}, {"handoff", 100, 20, false, 90, nil}},
			"handoff", "spin",
		},
		{
			"starving waiters wait longer, how long is not known", nil,
			[]lock{{"spin", 105, 100, true, 50, nil}, {"handoff", 100, 20, false, 90, nil}},
			"handoff", "spin",
		},
		{
			"what Redis pays decides last", nil,
			[]lock{{"spin", 100, 20, false, 90, nil}, {"pubsub", 100, 20, false, 40, nil}},
			"pubsub", "spin",
		},
		{"fewer demands", among("pubsub,blpop,spin"), alike("pubsub", "blpop", "spin"), "spin", "pubsub"},
		{"the same demands: the order of the short list", nil, alike("cohort", "handoff"), "handoff", "cohort"},
		{"claims do not count", nil, alike("pubsub", "redsync:tuned=true"), "redsync:tuned=true", "pubsub"},
		{"nothing for our own", among("handoff,pubsub"), alike("handoff", "pubsub"), "pubsub", "handoff"},
		{
			"unless they are better", among("handoff,blpop"),
			[]lock{{"handoff", 120, 20, false, 50, nil}, like("blpop")},
			"handoff", "blpop",
		},
		{"a lock that broke its claim is not taken", nil, []lock{best.with(broken), like("pubsub")}, "pubsub", ""},
		{"nor one that nobody can trust", nil, []lock{best.with(func(r *results.Run) {
			r.Invalid = []string{"books"}
		}), like("pubsub")}, "pubsub", ""},
		{"nor one with errors", nil, []lock{best.with(func(r *results.Run) {
			r.Errors = []results.ErrorCount{{Error: "x", Count: 1}}
		}), like("pubsub")}, "pubsub", ""},
		{"what too few rounds tell counts for nothing", nil, []lock{like("spin"), (lock{
			"pubsub", 200, 20, false, 50, func(r *results.Run) {
				if r.Round > 4 {
					r.Invalid = []string{"books"}
				}
			},
		})}, "spin", "pubsub"},
		{"nothing is left", nil, []lock{best.with(broken)}, "", ""},
		{"a mutex for one instance", func(q *Question) { q.Workload.Instances = 1 }, []lock{
			{"local", 110, 20, false, 0, func(r *results.Run) { r.Server = results.Server{} }}, like("spin"),
		}, "local", "spin"},
		{"correctness wants tokens", correctly, []lock{best, like("fenced"), like("handoff")}, "fenced", "handoff"},
		{"and a consensus store without a resource that checks them", func(q *Question) {
			q.For, q.Workload.Fence = Correctness, workloads.FenceOff
		}, []lock{best, like("handoff")}, ConsensusStore, ""},
		{"or without a lock that has any", func(q *Question) {
			q.For, q.Named = Correctness, variants("spin")
		}, []lock{best}, ConsensusStore, ""},
		{"nobody keeps up", hurried, []lock{late, quick.with(overload)}, NoLock, "spin"},
		{"somebody keeps up", hurried, []lock{late, quick}, "handoff", "spin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := asked(test.question).advise(reported(6, test.locks...))
			sound(t, a)
			if got := named(a.Choice); got != test.choice {
				t.Errorf("it recommends %q, want %q", got, test.choice)
			}
			if got := second(a); got != test.second {
				t.Errorf("%q comes second, want %q", got, test.second)
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

// second is the lock that comes second; "" if it may not be recommended.
func second(a *Document) string {
	if len(a.Ranking) < 2 || !strings.Contains(a.Ranking[1].Why, a.Ranking[0].Name) {
		return ""
	}
	return a.Ranking[1].Name
}

// sound checks what every advice must have.
func sound(t *testing.T, a *Document) {
	t.Helper()
	if c := a.Choice; c != nil {
		if c.RightIf == "" || (c.Take == "") != (c.Name == NoLock || c.Name == ConsensusStore) {
			t.Errorf("the choice is %+v", c)
		}
		if c.Take != "" {
			info := variants(c.Name)[0].Info()
			if info.Caveat != "" || !info.Claims.Exclusion || a.For == Correctness && !info.Claims.Fencing ||
				c.Name != a.Ranking[0].Name {
				t.Errorf("it recommends %s", c.Name)
			}
		}
	}
	for i, c := range a.Ranking[min(1, len(a.Ranking)):] {
		if c.Why == "" {
			t.Errorf("%s is number %d without a reason", c.Name, i+2)
		}
	}
	for _, left := range a.LeftOut {
		if left.Why == "" {
			t.Errorf("%s is left out without a reason", left.Strategy)
		}
	}
}

func TestOneCommandInsteadOfALock(t *testing.T) {
	t.Parallel()
	quick := lock{atomic, 5000, 1, false, 1, nil}
	for _, test := range []struct {
		command lock
		choice  string
	}{
		{quick, NoLock},
		{quick.with(func(r *results.Run) { r.Safety.LostUpdates = new(int64(1)) }), "spin"},
		{lock{atomic, 50, 20, false, 1, nil}, "spin"},
	} {
		for _, purpose := range either {
			a := asked(func(q *Question) {
				q.For, q.Workload.Work = purpose, workloads.WorkCounter
				q.Named = variants("atomic,spin,fenced")
			}).advise(reported(6, test.command, like("spin"), like("fenced")))
			sound(t, a)
			want := test.choice
			if purpose == Correctness && want == "spin" {
				want = "fenced"
			}
			if named(a.Choice) != want {
				t.Errorf("%s: it recommends %q, want %q", purpose, named(a.Choice), want)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := fmt.Errorf("%w: away", lockbench.ErrUnreachable)
	for _, test := range []struct {
		name    string
		purpose Purpose
		ctx     context.Context
		err     error
		matrix  string
		choice  string
	}{
		{
			"efficiency", Efficiency, t.Context(), errors.New("of a strategy that was left out"),
			"atomic,redsync:tuned=true,spin,gated:spin,pubsub,handoff,cohort", NoLock,
		},
		{"correctness", Correctness, t.Context(), nil, "atomic,fenced,gated:fenced,handoff,cohort", NoLock},
		{"interrupted", Correctness, ctx, nil, "atomic,fenced,gated:fenced,handoff,cohort", ""},
		{"no Redis", Correctness, t.Context(), gone, "atomic,fenced,gated:fenced,handoff,cohort", ""},
	} {
		q := asked(func(q *Question) { q.For, q.Workload.Work = test.purpose, workloads.WorkCounter })
		a, err := q.Answer(test.ctx, func(_ context.Context, plan lockbench.Plan) (*results.Report, error) {
			cancel()
			if err := plan.Validate(); err != nil || names(plan.Strategies) != test.matrix {
				t.Errorf("%s: it measures %s: %v", test.name, names(plan.Strategies), err)
			}
			var locks []lock
			for _, v := range plan.Strategies {
				l := like(v.Name())
				if l.name == atomic {
					l.served = 500
				}
				locks = append(locks, l)
			}
			return reported(plan.Rounds, locks...), test.err
		}, nil)
		sound(t, a)
		if named(a.Choice) != test.choice || a.Interrupted != (test.ctx == ctx) || len(a.Ranking) == 0 ||
			(err != nil) != (test.err == gone) {
			t.Errorf("%s: %v, it recommends %q", test.name, err, named(a.Choice))
		}
	}
}

func TestCautions(t *testing.T) {
	t.Parallel()
	a := asked(nil).advise(reported(6, lock{"spin", 10, 20, false, 50, func(r *results.Run) {
		r.Labels = []string{"busy machine"}
		if r.Round == 1 {
			r.Invalid = []string{"books"}
		}
	}}))
	sound(t, a)
	want := []string{
		"spin: 1 of its 6 runs cannot be trusted and are left out: books.",
		"spin: busy machine (busy with something other than lockbench and Redis: measure on a quieter one).",
		"spin: 10 handoffs in a run, and a p99 of less than 100 is their maximum: a longer --duration has more.",
	}
	if !slices.Equal(a.Notes, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(a.Notes, "\n"), strings.Join(want, "\n"))
	}
}

// The document in testdata has every part.
func TestAdviceIsWritten(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("testdata/advice.json")
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	none := d
	none.Choice, none.Ranking, none.Interrupted, none.Rounds = nil, nil, true, 3
	for file, write := range map[string]func(*bytes.Buffer) error{
		"advice.txt":      func(b *bytes.Buffer) error { return document.WriteTable(b, &d, 120, false) },
		"advice.json":     func(b *bytes.Buffer) error { return document.WriteJSON(b, &d) },
		"advice.md":       func(b *bytes.Buffer) error { return document.WriteMarkdown(b, &d) },
		"advice-none.txt": func(b *bytes.Buffer) error { return document.WriteTable(b, &none, 120, false) },
	} {
		var written bytes.Buffer
		if err := write(&written); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/"+file, written.String())
	}
}

func TestUnsafeStrategiesAreNeverMeasured(t *testing.T) {
	t.Parallel()
	for _, purpose := range either {
		q := asked(func(q *Question) { q.For, q.Named = purpose, variants("all") })
		chosen, out := q.candidates()
		for _, v := range chosen {
			info := v.Info()
			if info.Caveat != "" || info.Capacity != 1 || !info.Claims.Exclusion || !info.Claims.Recovery {
				t.Errorf("%s is a candidate", v.Name())
			}
		}
		for _, name := range []string{"noop", "local", "atomic", "setnx", "setnx-expire", "semaphore"} {
			if !slices.ContainsFunc(out, func(l results.LeftOut) bool { return l.Strategy == name && l.Why != "" }) {
				t.Errorf("%s is not left out", name)
			}
		}
	}
}

func TestChoicesNameWhatToImport(t *testing.T) {
	t.Parallel()
	const ours, theirs = "github.com/lockbench/lockbench/strategies/", "github.com/go-redsync/redsync/v4"
	for _, test := range []struct {
		purpose    Purpose
		best, next string
		take       string
		other      string // the package of the best third-party library
	}{
		{Efficiency, "handoff", "redsync:tuned=true", ours + "handoff", theirs},
		{Efficiency, "redsync:tuned=true", "handoff", theirs, ""},
		{Efficiency, "gated:spin", "redsync:tuned=true", ours + "gated around " + ours + "polled", theirs},
		{Correctness, "fenced", "handoff", ours + "redisson", "org.redisson:redisson"},
	} {
		best := like(test.best)
		best.served *= 2
		a := asked(func(q *Question) { q.For = test.purpose }).
			advise(reported(6, best, like(test.next)))
		sound(t, a)
		other := ""
		if a.Choice.Library != nil {
			other = a.Choice.Library.Package
		}
		if !strings.HasPrefix(a.Choice.Take, test.take) || other != test.other {
			t.Errorf("%s: it says %q and %q, want %q and %q", test.best, a.Choice.Take, other, test.take, test.other)
		}
	}
}

func TestRedlockTakesIndependentNodes(t *testing.T) {
	t.Parallel()
	for topology, want := range map[string]bool{
		"": false, "single": false, "nodes:2": false, "nodes:3": true, "nodes:5": true,
		"replicas:3": false, "cluster:3": false,
	} {
		q := asked(func(q *Question) { q.Redis.Topology = topology })
		all, _ := q.candidates()
		if got := strings.Contains(names(all), "redlock"); got != want {
			t.Errorf("%q: it measures %s", topology, names(all))
		}
	}
}

// TestCommandsKeepSecrets and are read by a shell as they were meant.
func TestCommandsKeepSecrets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"auto": "", "redis://h:1/2?protocol=2": "--redis\nredis://h:1/2?protocol=2", "redis://u:geheim@h:1": "",
		"geheim@h:1": "", "redis://h?password=geheim": "",
	} {
		q := asked(func(q *Question) {
			q.Redis = lockbench.StoreOptions{Address: address, Topology: "nodes:3", CAFile: "a b's.pem"}
		})
		command := q.Command()
		shown := strings.Replace(command, "lockbench", "printf '%s\\n'", 1)
		output, err := exec.Command("sh", "-c", shown).Output()
		words := string(output)
		if err != nil || strings.Contains(command, "geheim") ||
			!strings.Contains(words, "--topology\nnodes:3\n--ca-file\na b's.pem\n") {
			t.Errorf("%v: %s", err, command)
		}
		if !strings.Contains(words, want) || strings.Contains(words, "--redis") != (want != "") {
			t.Errorf("%s: %s", address, command)
		}
	}
}

func TestWindowsServeEveryClientTwice(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(6, 21))
	short := 0
	for range 500 {
		q := asked(func(q *Question) {
			q.For = either[random.IntN(2)]
			w := &q.Workload
			w.Clients, w.Keys = 1+random.IntN(2000), 1+random.IntN(50)
			w.Instances = min(w.Clients, 1+random.IntN(10))
			w.Hold = workloads.Fixed(time.Duration(random.IntN(20)) * time.Millisecond)
		}).Sized(false, false)
		w := q.Workload
		window, want := time.Duration(w.Duration), 2*time.Duration(w.Clients)*w.Hold.Mean()/time.Duration(w.Keys)
		switch {
		case window < leastWindow || time.Duration(w.Warmup) < leastWarmup:
			t.Fatalf("%v after %v is too short", window, w.Warmup)
		case q.Plan().Expected() > allowed && window > leastWindow:
			t.Fatalf("it takes %v", q.Plan().Expected())
		case q.Needed == 0 && window+10*time.Millisecond < want:
			t.Fatalf("%s: %v is less than %v, and it does not say so", w.Describe(), window, want)
		case q.Needed > 0:
			short++
			if q.Needed+10*time.Millisecond < want || q.Needed <= window {
				t.Fatalf("%s: it says that %v is needed, and that is %v", w.Describe(), q.Needed, want)
			}
		}
	}
	if short < 25 || short > 475 {
		t.Errorf("%d of 500 questions have too short a window: the test looks at one kind only", short)
	}
}
