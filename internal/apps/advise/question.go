// Package advise turns a description of a contention into a short matrix of runs, and their figures
// into advice: one lock, or none, with the reasons. Only Question.Answer runs anything.
package advise

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Question says what a lock is needed for.
type Question struct {
	For Purpose
	// Workload is the contention. If its work is a counter, the resource is a value in Redis; unless
	// Fence is workloads.FenceAll, the resource cannot check tokens.
	Workload workloads.Spec
	Rounds   int                  // of each run
	Named    []strategies.Variant // to compare; nil means the short list
	Redis    lockbench.StoreOptions

	// Needed is the window that would serve every client twice, if there is no time for it; else 0.
	Needed time.Duration
}

// Validate returns all errors, joined.
func (q Question) Validate() error {
	var problems []error
	if q.For != Efficiency && q.For != Correctness {
		problems = append(problems, fmt.Errorf("--for must be %s or %s, not %q", Efficiency, Correctness, q.For))
	}
	problems = append(problems, q.Workload.Validate(), q.Workload.Load())
	if q.Rounds < 1 {
		problems = append(problems, fmt.Errorf("--runs must be at least 1, not %d", q.Rounds))
	}
	if candidates, out := q.candidates(); len(candidates) == 0 {
		for _, left := range out {
			problems = append(problems, fmt.Errorf("--strategy: %s: %s", left.Strategy, left.Why))
		}
		problems = append(problems, errors.New("--strategy: there is no lock to compare"))
	}
	return errors.Join(problems...)
}

// crowded says whether clients of one instance wait for each other.
func (q Question) crowded() bool { return q.Workload.ClientsPerInstance() > 1 }

var (
	either    = []Purpose{Efficiency, Correctness}
	efficient = []Purpose{Efficiency}
	correct   = []Purpose{Correctness}

	counting    = func(q Question) bool { return q.Workload.Work == workloads.WorkCounter }
	oneInstance = func(q Question) bool { return q.Workload.Instances == 1 }
	nodes       = func(q Question) bool { return strings.HasPrefix(q.Redis.Topology, "nodes:") }
)

// shortlist is what is measured by default: one strategy of each kind, the simplest first, and for each
// purpose at least one third-party library, or its format, with its best settings.
var shortlist = []struct {
	name     string
	purposes []Purpose
	when     func(Question) bool // nil means always
}{
	{atomic, either, counting},
	{"local", efficient, oneInstance},
	{"redsync:tuned=true", efficient, nil},
	{"spin", efficient, nil},
	{"gated:spin", efficient, Question.crowded},
	{"pubsub", efficient, nil},
	{"fenced", correct, nil},
	{"gated:fenced", correct, Question.crowded},
	{"redlock", efficient, nodes},
	{"handoff", either, nil},
	{"cohort", either, Question.crowded},
}

// atomic is the name of the strategy that does a counter's work in one command, without a lock.
const atomic = "atomic"

// oneCommand says whether a strategy is one command instead of a lock, and does what was asked for.
func (q Question) oneCommand(info strategies.Info) bool { return info.Name == atomic && counting(q) }

// listed returns the place of a lock on the short list; the others come after it.
func listed(name string) int {
	for at, entry := range shortlist {
		if entry.name == name {
			return at
		}
	}
	return len(shortlist)
}

// misplaced says why a strategy cannot run on the requested servers, as far as that is known without
// them; "" if it can.
func (q Question) misplaced(info strategies.Info) string {
	kind, err := store.Lookup(store.Redis)
	if err != nil {
		return ""
	}
	return kind.Layout(store.Options{Address: q.Redis.Address, Topology: q.Redis.Topology}).Unfit(info)
}

// candidates returns the strategies to measure, and why others that were wanted are left out.
func (q Question) candidates() ([]strategies.Variant, []results.LeftOut) {
	var chosen []strategies.Variant
	var out []results.LeftOut
	for _, v := range q.wanted() {
		if why := cmp.Or(q.unsafe(v.Info()), q.misplaced(v.Info())); why != "" {
			out = append(out, results.LeftOut{Strategy: v.Name(), Why: why})
			continue
		}
		chosen = append(chosen, v)
	}
	return chosen, out
}

// wanted returns the named strategies, or those of the short list that this program has.
func (q Question) wanted() []strategies.Variant {
	if q.Named != nil {
		return q.Named
	}
	var all []strategies.Variant
	for _, e := range shortlist {
		if !slices.Contains(e.purposes, q.For) || e.when != nil && !e.when(q) {
			continue
		}
		if some, err := strategies.ParseVariants(e.name); err == nil {
			all = append(all, some...)
		}
	}
	return all
}

// unsafe says why a strategy must not be recommended, by its own description; "" if it may be.
func (q Question) unsafe(info strategies.Info) string {
	switch {
	case q.oneCommand(info):
		return ""
	case info.Caveat != "":
		return "unsafe: " + info.Caveat
	case info.Capacity != 1 || !info.Claims.Exclusion:
		admitted := "everybody"
		if info.Capacity > 0 {
			admitted = fmt.Sprintf("%d at a time", info.Capacity)
		}
		return "no lock: it claims " + info.Claims.String() + ", and admits " + admitted
	case info.MaxInstances > 0 && q.Workload.Instances > info.MaxInstances:
		return fmt.Sprintf("it claims %s across %d instance, there are %d",
			info.Claims, info.MaxInstances, q.Workload.Instances)
	case !info.Claims.Recovery && info.Nodes > 0:
		return "a dead holder keeps it for ever: it claims " + info.Claims.String()
	}
	return ""
}

// names lists strategies in the form of --strategy.
func names(all []strategies.Variant) string {
	var parts []string
	for _, v := range all {
		parts = append(parts, v.Name())
	}
	return strings.Join(parts, ",")
}

// Plan returns what the question has measured.
func (q Question) Plan() lockbench.Plan {
	candidates, _ := q.candidates()
	return lockbench.Plan{Strategies: candidates, Workload: q.Workload, Rounds: q.Rounds, Redis: q.Redis}
}

// Command returns the shell command that measures the same again. It contains no secret: if the address of
// Redis has one, a comment says where to put the address.
func (q Question) Command() string {
	plan, remark := q.Plan(), ""
	line := slices.Concat([]string{"lockbench", "--strategy", names(plan.Strategies)},
		workloads.Arguments([]workloads.Point{{Workload: plan.Workload}}),
		[]string{"--runs", strconv.Itoa(plan.Rounds)})
	address := q.Redis.Address
	if strings.Contains(address, "@") || strings.Contains(address, "password") {
		address, remark = "", "  # with the address of Redis, which has a secret, in LOCKBENCH_REDIS"
	} else if address == "auto" {
		address = ""
	}
	for _, option := range [][2]string{
		{"--redis", address}, {"--topology", q.Redis.Topology},
		{"--ca-file", q.Redis.CAFile}, {"--image", q.Redis.Image},
	} {
		if option[1] != "" {
			line = append(line, option[:]...)
		}
	}
	for i, word := range line {
		line[i] = words.Quoted(word)
	}
	return strings.Join(line, " ") + " --no-baselines" + remark
}

const (
	// turns is how often each client can be served in a window: with one turn, a client that is served
	// once less than the others looks like one that starves. After half a turn the waits grow no more.
	turns = 2
	// leastWindow and leastWarmup belong to the shortest runs.
	leastWindow, leastWarmup = 500 * time.Millisecond, 200 * time.Millisecond
	// passing is the approximate time of a lock from one holder to the next.
	passing = time.Millisecond
	// arrivals is the number of arrivals in an open loop that a 90th percentile needs, for one turn.
	arrivals = 50

	// most is the time limit of an answer, and allowed the part of it for runs; the rest is for start
	// and clean-up.
	most, allowed = 3 * time.Minute, most - 15*time.Second
)

// round is about how long it takes to serve every client once under constant contention: clients × mean
// hold ÷ keys, or with a most wanted key, clients × its share × mean hold; but at least what one
// client alone needs.
func round(w workloads.Spec) time.Duration {
	_ = w.Load() // Validate has reported its errors
	hold := w.Hold.Mean() + passing
	if w.Rate > 0 {
		return max(hold, time.Duration(arrivals/float64(w.Rate)*float64(time.Second)))
	}
	crowd := float64(w.Clients) * w.KeyDist.Hottest(w.Keys)
	return max(hold+w.Think.Mean(), time.Duration(crowd*float64(hold)))
}

// Sized returns the question with windows and warm-ups, unless given, that are long enough to see which
// clients starve, and short enough for an answer within three minutes.
func (q Question) Sized(givenWindow, givenWarmup bool) Question {
	one := round(q.Workload)
	window, warmup := max(leastWindow, scaled(one, turns)), max(leastWarmup, scaled(one, 0.5))
	for part := 1.0; ; part *= 0.95 {
		if !givenWindow {
			q.Workload.Duration = workloads.Duration(max(leastWindow, scaled(window, part)))
		}
		if !givenWarmup {
			q.Workload.Warmup = workloads.Duration(max(leastWarmup, scaled(warmup, part)))
		}
		if givenWindow || q.Plan().Expected() <= allowed || time.Duration(q.Workload.Duration) <= leastWindow {
			break
		}
	}
	if !givenWindow && time.Duration(q.Workload.Duration) < window {
		q.Needed = window
	}
	return q
}

// scaled returns a part of a time, rounded to 10 ms.
func scaled(t time.Duration, part float64) time.Duration {
	return time.Duration(float64(t) * part).Round(10 * time.Millisecond)
}
