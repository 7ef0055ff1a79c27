package advise

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all/goredis"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/workloads"
)

// rueidislock is in shortlist, but its Redis client takes a long time to compile. These tests open no lock, so they
// register only its name and claims.
func init() {
	strategies.Register(strategies.Info{
		Name: "rueidislock", Capacity: 1, Nodes: 1, BlackBox: true, Library: "github.com/redis/rueidis",
		Claims: strategies.Claims{Exclusion: true, Recovery: true, Watchdog: true},
	}, struct{}{}, func(strategies.Config, struct{}) (strategies.Locker, error) { return nil, errors.ErrUnsupported })
}

// lock is a strategy with invented figures, which the function reported varies by up to 2 % from round to round.
type lock struct {
	name    string
	served  float64 // per second
	wait    float64 // p90 per client, ms
	starves bool    // the wait is only a lower bound
	cpu     float64 // µs per acquisition
	change  func(*results.Run)
}

func like(name string) lock { return lock{name, 100, 20, false, 50, nil} }

// with returns a copy of the lock with the given change. The function reported applies the change to each run of the
// lock.
func (l lock) with(change func(*results.Run)) lock {
	l.change = change
	return l
}

func newQuestion(change func(*Question)) Question {
	w := workloads.Default()
	w.Clients, w.Instances, w.Hold = 50, 10, workloads.Fixed(5e6)
	q := Question{For: Efficiency, Workload: w, Rounds: 6, Budget: 3 * time.Minute}
	if change != nil {
		change(&q)
	}
	return q
}

// reported returns a report in which each lock has one run per round, with figures close to the figures of the lock.
func reported(rounds int, all ...lock) *results.Report {
	r := &results.Report{Rounds: rounds, Workload: newQuestion(nil).Workload}
	for _, l := range all {
		r.Strategies = append(r.Strategies, results.Strategy{Name: l.name, Claims: []string{"exclusion"}, Capacity: 1})
	}
	for round := 1; round <= rounds; round++ {
		for i, l := range all {
			noise := []float64{1.02, 0.98, 1, 1.01, 0.99, 1}[(round+i)%6] // different for each lock
			run := results.Run{Strategy: l.name, Round: round}
			run.Speed = results.Speed{
				PerSecond: l.served * noise, ServedPerSecond: l.served * noise,
				Acquisitions: int64(l.served), Utilisation: 0.5,
			}
			run.Speed.Handoff.Count = int64(l.served)
			wait := &results.Bound{NS: int64(l.wait * 1e6 * noise), AtLeast: l.starves}
			run.Waiting.PerClient.P90, run.Waiting.PerAcquisition.P90, run.Waiting.PerAcquisition.P99 = wait, wait, wait
			run.Server.Window = &results.ServerDelta{
				Acquisitions: run.Speed.Acquisitions, Calls: new(run.Speed.Acquisitions * 5), Seconds: 1,
				IdleCPU: new(0.0),
				CPU:     new(l.cpu * 1e-6 * float64(run.Speed.Acquisitions) * noise),
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

func broken(r *results.Run) { r.Safety.Broken, r.Safety.Overlaps = results.PlainTexts("exclusion"), 2 }

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
			[]lock{{"spin", 100, 20, false, 900, nil}, {"pubsub", 100, 20, false, 400, nil}},
			"pubsub", "spin",
		},
		{
			"but not below 5 % of a core", nil,
			[]lock{{"spin", 100, 20, false, 450, nil}, {"pubsub", 100, 20, false, 40, nil}},
			"spin", "pubsub",
		},
		{
			"nor do waits that are short compared with the hold", nil,
			[]lock{{"spin", 100, 0.45, false, 50, nil}, {"pubsub", 100, 0.1, false, 50, nil}},
			"spin", "pubsub",
		},
		{
			"the second is of other authors", nil,
			[]lock{{"handoff", 300, 20, false, 50, nil}, {"cohort", 250, 20, false, 50, nil}, like("pubsub")},
			"handoff", "pubsub",
		},
		{
			"a mutex before a lock makes it no other author's", correctly,
			[]lock{{"fenced", 300, 20, false, 50, nil}, {"gated:fenced", 250, 20, false, 50, nil}, like("handoff")},
			"fenced", "handoff",
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
		{"one without a valid run may be the best", nil, []lock{best.with(func(r *results.Run) {
			r.Invalid = results.PlainTexts("books")
		}), like("pubsub")}, "", ""},
		{"nor one with errors", nil, []lock{best.with(func(r *results.Run) {
			r.Errors = []results.ErrorCount{{Error: "x", Count: 1}}
		}), like("pubsub")}, "pubsub", ""},
		{"too few rounds decide nothing", nil, []lock{like("spin"), (lock{
			"pubsub", 200, 20, false, 50, func(r *results.Run) {
				if r.Round > 4 {
					r.Invalid = results.PlainTexts("books")
				}
			},
		})}, "", "pubsub"},
		{"nothing is left", nil, []lock{best.with(broken)}, "", ""},
		{"a mutex for one instance", func(q *Question) { q.Workload.Instances = 1 }, []lock{
			{"local", 120, 20, false, 0, func(r *results.Run) { r.Server = results.Server{} }}, like("spin"),
		}, "local", "spin"},
		{"correctness wants tokens", correctly, []lock{best, like("fenced"), like("handoff")}, "fenced", "handoff"},
		{"and a consensus store without a resource that checks them", func(q *Question) {
			q.For, q.Workload.Fence = Correctness, workloads.FenceOff
		}, []lock{best, like("handoff")}, ConsensusStore, ""},
		{"or without a lock that has any", func(q *Question) {
			q.For, q.Named = Correctness, variants("spin")
		}, []lock{best}, ConsensusStore, ""},
		{"no lock keeps up", hurried, []lock{late, quick.with(overload)}, NoLock, "spin"},
		{"one lock keeps up", hurried, []lock{late, quick}, "handoff", "spin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			a := newQuestion(test.question).advise(reported(6, test.locks...))
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

func overload(r *results.Run) { r.Labels = results.Remarks{results.Overloaded.Remark("9", "all")} }

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

// second returns the name of the second lock in the ranking. It returns "" if there is no second lock or if that lock
// cannot be recommended.
func second(a *Document) string {
	if len(a.Ranking) < 2 || a.Ranking[1].Unfit != "" {
		return ""
	}
	return a.Ranking[1].Name
}

// sound reports an error if the advice recommends an unsafe lock or a lock that is not the first of the ranking. It
// also reports one if the choice has no condition, or if a strategy in LeftOut has no reason.
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
	for _, left := range a.LeftOut {
		if left.Why.Text == "" {
			t.Errorf("%s is left out without a reason", left.Strategy)
		}
	}
}

func TestCommandRecommendedInsteadOfLock(t *testing.T) {
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
			a := newQuestion(func(q *Question) {
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
			"atomic,redsync:tuned=true,handoff,pubsub,rueidislock,spin,gated:spin,cohort", NoLock,
		},
		{"correctness", Correctness, t.Context(), nil, "atomic,fenced,handoff,gated:fenced,cohort", NoLock},
		{"interrupted", Correctness, ctx, nil, "atomic,fenced,handoff,gated:fenced,cohort", ""},
		{"no Redis", Correctness, t.Context(), gone, "atomic,fenced,handoff,gated:fenced,cohort", ""},
	} {
		q := newQuestion(func(q *Question) { q.For, q.Workload.Work = test.purpose, workloads.WorkCounter })
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
	busy := func(r *results.Run) { r.Labels = results.Remarks{results.BusyMachine.Remark()} }
	a := newQuestion(nil).advise(reported(6, like("spin").with(func(r *results.Run) {
		if busy(r); r.Round == 1 {
			r.Invalid = results.PlainTexts("books")
		}
	}), like("pubsub").with(busy)))
	sound(t, a)
	want := []string{
		"spin: 1 of its 6 runs cannot be trusted and are left out: books",
		"spin and pubsub: busy machine (with other processes: use a quieter machine)",
	}
	if !slices.Equal(a.Notes.Texts(), want) {
		t.Errorf("got\n%s\nwant\n%s", a.Notes.String(), strings.Join(want, "\n"))
	}
}

// read returns the document in testdata. Each of its fields is set.
func read(t *testing.T) *Document {
	t.Helper()
	content, err := os.ReadFile("testdata/advice.json")
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(content, &d); err != nil {
		t.Fatal(err)
	}
	return &d
}

func laid(t *testing.T, d *Document, p *layout.Page) string {
	t.Helper()
	var written strings.Builder
	d.Lay(p)
	if err := p.Save(&written, "advice"); err != nil {
		t.Fatal(err)
	}
	return written.String()
}

func TestAdviceOutput(t *testing.T) {
	t.Parallel()
	d := read(t)
	var encoded bytes.Buffer
	if err := json.NewEncoder(&encoded).Encode(d); err != nil {
		t.Fatal(err)
	}
	var again Document
	if err := json.Unmarshal(encoded.Bytes(), &again); err != nil || !reflect.DeepEqual(&again, d) {
		t.Errorf("it is read as\n%+v, %v", again, err)
	}
	golden.Compare(t, "testdata/advice.txt", laid(t, d, &layout.Page{}))
	golden.Compare(t, "testdata/advice.md", laid(t, d, &layout.Page{Markdown: true}))
	none := *d
	none.Choice, none.Ranking, none.Saturated, none.Interrupted, none.Rounds = nil, nil, nil, true, 3
	golden.Compare(t, "testdata/advice-none.txt", laid(t, &none, &layout.Page{}))
	d.Brief = true
	for _, wide := range []int{60, 80, 120} {
		golden.Compare(t, fmt.Sprintf("testdata/advice-%d.txt", wide), laid(t, d, &layout.Page{Wide: wide}))
	}
	d.Choice, d.Undecided = nil, &Undecided{
		Between: []string{"handoff", "pubsub"}, Take: []string{"the one", "the other"},
		Why: []string{d.Ranking[2].Why}, Ask: "lockbench advise --strategy handoff,pubsub --runs 24",
	}
	golden.Compare(t, "testdata/advice-undecided.txt", laid(t, d, &layout.Page{Wide: 80}))
}

// TestReasonsAreNotTruncated adds more locks, notes and reasons than fit on a screen. At every width, the page must
// contain each lock and the full text of each reason.
func TestReasonsAreNotTruncated(t *testing.T) {
	t.Parallel()
	d := read(t)
	d.Brief = true
	wanted := []string{"no lock serves more than"}
	for i := range 15 { // more rows and notes than a screen has room for
		row := d.Ranking[1]
		row.Name = fmt.Sprintf("spin:backoff=fixed,base=%dms", i)
		d.Ranking = append(d.Ranking, row)
		unfit := Row{Name: fmt.Sprintf("unfit-%d", i), Unfit: strings.Repeat("of many words ", 20) + fmt.Sprint("end-", i)}
		d.Ranking = append(d.Ranking, unfit)
		note := fmt.Sprintf("%s note-%d", strings.Repeat("of many words ", 30), i)
		d.Notes = append(d.Notes, results.PlainText(note))
		why := results.PlainText(fmt.Sprint("no time left-", i))
		d.LeftOut = append(d.LeftOut, results.LeftOut{Strategy: row.Name, Why: why})
		wanted = append(wanted, row.Name, fmt.Sprint("end-", i), fmt.Sprint("note-", i), fmt.Sprint("left-", i))
	}
	for _, wide := range []int{60, 80, 120} {
		text := laid(t, d, &layout.Page{Wide: wide})
		joined := strings.Join(strings.Fields(text), " ")
		for _, want := range wanted {
			if !strings.Contains(joined, want) {
				t.Errorf("at %d columns there is no %q", wide, want)
			}
		}
		if strings.Contains(text, "…") {
			t.Errorf("at %d columns something is cut:\n%s", wide, text)
		}
		for line := range strings.Lines(text) {
			if layout.TextWidth(strings.TrimSuffix(line, "\n")) > wide {
				t.Errorf("a line is wider than %d columns: %s", wide, line)
			}
		}
	}
}

func TestUnsafeStrategiesAreNeverMeasured(t *testing.T) {
	t.Parallel()
	for _, purpose := range either {
		q := newQuestion(func(q *Question) { q.For, q.Named = purpose, variants("all") })
		chosen, out := q.candidates()
		for _, v := range chosen {
			info := v.Info()
			if info.Caveat != "" || info.Capacity != 1 || !info.Claims.Exclusion || !info.Claims.Recovery {
				t.Errorf("%s is a candidate", v.Name())
			}
		}
		for _, name := range []string{"noop", "local", "atomic", "setnx", "setnx-expire", "semaphore"} {
			if !slices.ContainsFunc(out, func(l results.LeftOut) bool { return l.Strategy == name && l.Why.Text != "" }) {
				t.Errorf("%s is not left out", name)
			}
		}
	}
}

func TestChoicesNameImports(t *testing.T) {
	t.Parallel()
	const polled, redisson = ours + "/strategies/polled", "org.redisson:redisson getLock (Java)"
	const theirs = "github.com/go-redsync/redsync/v4 Redsync.NewMutex WithRetryDelayFunc"
	for _, test := range []struct {
		purpose        Purpose
		language       string
		best, next     string
		take, nextTake string
	}{
		{Efficiency, "", "handoff", "redsync:tuned=true", ours + "/strategies/handoff (Go); lockbench", theirs},
		{Efficiency, "", "redsync:tuned=true", "handoff", theirs, ours + "/strategies/handoff (Go)"},
		{Efficiency, "", "gated:spin", "handoff", ours + "/strategies/gated around " + polled, ""},
		{Efficiency, "", "pubsub", "spin", redisson + ", or the same lock in " + ours, ours},
		{Efficiency, "go", "pubsub", "redsync:tuned=true", ours + "/strategies/redisson (Go)", theirs},
		{Efficiency, "java", "pubsub", "handoff", redisson + "; lockbench measured", ""},
		{Correctness, "", "fenced", "handoff", "org.redisson:redisson getFencedLock (Java)", ours},
	} {
		best := like(test.best)
		best.served *= 2
		a := newQuestion(func(q *Question) { q.For, q.Language = test.purpose, test.language }).
			advise(reported(6, best, like(test.next)))
		sound(t, a)
		nextTake := ""
		if a.Choice.Beside != nil {
			nextTake = a.Choice.Beside.Take
		}
		if !strings.HasPrefix(a.Choice.Take, test.take) || !strings.HasPrefix(nextTake, test.nextTake) ||
			(nextTake == "") != (test.nextTake == "") {
			t.Errorf("%s: it says %q and %q, want %q and %q",
				test.best, a.Choice.Take, nextTake, test.take, test.nextTake)
		}
	}
}

func TestLanguagesHaveLibraries(t *testing.T) {
	t.Parallel()
	open := func(goredis.Config) (strategies.Locker, error) { return nil, errors.ErrUnsupported }
	made := func(name string, fencing bool) strategies.Variant {
		return strategies.Unlisted(strategies.Info{
			Name: name, Capacity: 1, Nodes: 1, Driver: true,
			Claims:    strategies.Claims{Exclusion: true, Recovery: true, Fencing: fencing},
			Libraries: []strategies.Library{{Language: "Java", Package: "x"}},
		}, open)
	}
	for _, test := range []struct {
		language string
		purpose  Purpose
		rate     workloads.Rate
		drivers  []strategies.Variant
		want     string
	}{
		{"go", Correctness, 0, nil, "fenced,handoff,gated:fenced,cohort"},
		{"java", Efficiency, 0, nil, "pubsub"},
		{"java", Correctness, 0, nil, "fenced"},
		{"python", Efficiency, 0, nil, redisPy},
		{"node", Efficiency, 0, nil, ""},
		{"java", Efficiency, 0, []strategies.Variant{made("one", false), made("two", true)}, "one,two"},
		{"java", Correctness, 0, []strategies.Variant{made("one", false), made("two", true)}, "two"},
		{"java", Correctness, 0, []strategies.Variant{made("one", false)}, "fenced"},
		{"java", Efficiency, 9, []strategies.Variant{made("one", false)}, "pubsub"}, // which drivers cannot
	} {
		q := newQuestion(func(q *Question) {
			q.Language, q.For, q.Workload.Rate, q.Drivers = test.language, test.purpose, test.rate, test.drivers
		})
		all, _ := q.candidates()
		if names(all) != test.want || (q.Validate() == nil) != (test.want != "") {
			t.Errorf("%s for %s measures %s, want %s: %v",
				test.language, test.purpose, names(all), test.want, q.Validate())
		}
	}
}

func TestRedlockNeedsIndependentNodes(t *testing.T) {
	t.Parallel()
	for topology, want := range map[string]bool{
		"": false, "single": false, "nodes:2": false, "nodes:3": true, "nodes:5": true,
		"replicas:3": false, "cluster:3": false,
	} {
		q := newQuestion(func(q *Question) { q.Redis.Topology = topology })
		all, _ := q.candidates()
		if got := strings.Contains(names(all), "redlock"); got != want {
			t.Errorf("%q: it measures %s", topology, names(all))
		}
	}
}

// TestCommandsKeepSecrets tests that proposed commands contain no secret, and that a shell parses them correctly.
func TestCommandsKeepSecrets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"auto": "", "redis://h:1/2?protocol=2": "--redis\nredis://h:1/2?protocol=2", "redis://u:geheim@h:1": "",
		"geheim@h:1": "", "redis://h?password=geheim": "",
	} {
		q := newQuestion(func(q *Question) {
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
	all, fewer, refused := 0, 0, 0
	for range 500 {
		asked := newQuestion(func(q *Question) {
			q.For = either[random.IntN(2)]
			w := &q.Workload
			w.Clients, w.Keys = 1+random.IntN(2000), 1+random.IntN(50)
			w.Instances = min(w.Clients, 1+random.IntN(10))
			w.Hold = workloads.Fixed(time.Duration(random.IntN(20)) * time.Millisecond)
		})
		q, err := asked.Sized(false, false)
		if err != nil {
			refused++
			text := err.Error()
			budget, wrong := time.ParseDuration(strings.Fields(text[strings.LastIndex(text, "--budget "):])[1])
			asked.Budget = budget
			if q, err = asked.Sized(false, false); wrong != nil || err != nil {
				t.Fatalf("%s: also with that: %v", text, err)
			}
		}
		w := q.Workload
		window, want := time.Duration(w.Duration), 2*time.Duration(w.Clients)*w.Hold.Mean()/time.Duration(w.Keys)
		chosen, out := q.candidates()
		wanted, _ := asked.candidates()
		switch {
		case window < leastWindow || time.Duration(w.Warmup) < leastWarmup || window+10*time.Millisecond < want:
			t.Fatalf("%s: %v after %v is too short", w.Describe(), window, w.Warmup)
		case q.Plan().Expected() > q.Budget-reserve:
			t.Fatalf("%s: it takes %v", w.Describe(), q.Plan().Expected())
		case len(chosen) < min(fewest, len(wanted)) || len(chosen)+len(out) != len(wanted):
			t.Fatalf("of %d locks it measures %d and leaves out %v", len(wanted), len(chosen), out)
		case len(out) == 0:
			all++
			continue
		}
		fewer++
		_, said, _ := strings.Cut(out[0].Why.Text, "; --budget ")
		said, _, _ = strings.Cut(said, " ")
		if asked.Budget, err = time.ParseDuration(said); err != nil {
			t.Fatal(err)
		}
		if q, err = asked.Sized(false, false); err != nil || q.fit != len(wanted) {
			t.Fatalf("%v has time for %d of %d: %v", asked.Budget, q.fit, len(wanted), err)
		}
	}
	if min(all, fewer, refused) < 10 {
		t.Errorf("%d questions have time for all locks, %d for fewer, %d for none", all, fewer, refused)
	}
}

// A trace is replayed once, to its end. So Sized must set the window to the length of the trace for any number of
// clients.
func TestTraceWindowIsItsLength(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(file, []byte(workloads.TraceHeader+"\n0,a,1ms\n4,b,1ms\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var d workloads.Draft
	if err := d.Give("arrivals", "file:"+file); err != nil {
		t.Fatal(err)
	}
	points, err := d.Points()
	if err != nil {
		t.Fatal(err)
	}
	q, err := newQuestion(func(q *Question) { q.Workload = points[0].Workload }).Sized(false, false)
	if w := q.Workload; err != nil || w.Duration != workloads.Duration(8*time.Second) ||
		w.Warmup != workloads.Duration(leastWarmup) {
		t.Errorf("%s: %v", w.Describe(), err)
	}
}

func TestShortWindowsCannotShowLongWaits(t *testing.T) {
	t.Parallel()
	q, err := newQuestion(func(q *Question) {
		q.Workload.Clients, q.Workload.Duration = 2000, workloads.Duration(time.Second)
	}).Sized(true, false)
	if err != nil {
		t.Fatal(err)
	}
	a := q.advise(reported(6, lock{"pubsub", 100, 20, false, 50, nil}, lock{"handoff", 100, 200, false, 50, nil}))
	for _, row := range a.Ranking {
		if row.figure("wait_per_client_p90").Value != nil || row.Behind != "" {
			t.Errorf("a window of %v shows a wait of 10 s: %+v", q.Workload.Duration, row)
		}
	}
	if len(a.Notes) == 0 || !strings.Contains(a.Notes[0].Text, "too short to show waits") {
		t.Errorf("there is no note: %q", a.Notes)
	}
}

// TestSaturationIsDetected tests that saturation is reported without a measurement, and that the proposed loads do not
// saturate a lock.
func TestSaturationIsDetected(t *testing.T) {
	t.Parallel()
	both := []string{"--rate 29/s", "--think 7s"}
	for _, test := range []struct {
		change func(*workloads.Spec)
		most   float64 // 0 if the load does not saturate a lock
		ask    []string
	}{
		{nil, 50, both},
		{func(w *workloads.Spec) { w.Think = workloads.Fixed(3 * time.Second) }, 50, both},
		{func(w *workloads.Spec) { w.Rate = 60 }, 50, []string{"--rate 29/s"}},
		{func(w *workloads.Spec) { w.Keys = 4 }, 200, []string{"--rate 110/s", "--think 1.7s"}},
		{
			func(w *workloads.Spec) { w.Hold = workloads.Fixed(time.Millisecond) },
			1000,
			[]string{"--rate 300/s", "--think 670ms"},
		},
		{func(w *workloads.Spec) { w.Keys = 400 }, 0, nil},
		{func(w *workloads.Spec) { w.Rate = 45 }, 0, nil},
		{func(w *workloads.Spec) { w.Think = workloads.Fixed(5 * time.Second) }, 0, nil},
		{func(w *workloads.Spec) { w.Clients = 1 }, 0, nil}, // a single client never waits
		{func(w *workloads.Spec) { w.Hold = workloads.Dist{} }, 0, nil},
	} {
		q := newQuestion(func(q *Question) {
			q.Workload.Clients, q.Workload.Hold = 200, workloads.Fixed(20*time.Millisecond)
			if test.change != nil {
				test.change(&q.Workload)
			}
		})
		s := q.saturation()
		if (s != nil) != (test.most > 0) {
			t.Errorf("%s: %+v", q.Workload.Describe(), s)
		}
		if s == nil {
			continue
		}
		if math.Abs(s.MostPerSecond-test.most) > 1e-9 || len(s.Ask) != len(test.ask) {
			t.Errorf("%s: %+v, want %v and %v", q.Workload.Describe(), s, test.most, test.ask)
			continue
		}
		for i, ask := range s.Ask {
			option, value, _ := strings.Cut(test.ask[i], " ")
			calm := q
			calm.Workload.Rate, calm.Workload.Think = 0, workloads.Dist{}
			set := calm.Workload.Think.UnmarshalText
			if option == "--rate" {
				set = calm.Workload.Rate.UnmarshalText
			}
			if err := set([]byte(value)); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(ask, test.ask[i]) || strings.Contains(ask, "--duration") || calm.saturation() != nil {
				t.Errorf("%s: it proposes %s, want %s", q.Workload.Describe(), ask, test.ask[i])
			}
		}
	}
}
