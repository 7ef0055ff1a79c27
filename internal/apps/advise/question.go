// Package advise recommends a lock for a described contention. It plans a few runs, compares their figures, and returns
// one lock or an alternative to a lock, with the reasons. Only Question.Answer measures.
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
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Question describes the contention and the purpose of the lock.
type Question struct {
	For Purpose
	// Workload describes the contention. If the work of the holders is a counter, the protected resource is a value in
	// Redis. Unless Fence is workloads.FenceAll, the protected resource cannot check fencing tokens.
	Workload workloads.Spec
	Rounds   int                  // number of rounds
	Named    []strategies.Variant // strategies to compare; nil means the short list
	Redis    lockbench.StoreOptions
	Budget   time.Duration // limit for the time that Answer takes

	// Language is the language of the program that will use the lock; "" means any.
	Language string
	// Drivers run lock libraries in Language. If any of them can be measured, they replace the short list.
	Drivers []strategies.Variant
	// Absent lists the drivers that cannot be started, with the reasons.
	Absent []results.LeftOut

	fit   int    // number of candidates for which the budget suffices; 0 means all
	whole string // the budget that would suffice for all candidates
}

// Validate returns all errors in the question, joined. The errors name the options of lockbench advise.
func (q Question) Validate() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if q.For != Efficiency && q.For != Correctness {
		wrong("--for must be %s or %s, not %q", Efficiency, Correctness, q.For)
	}
	if q.Language != "" && !slices.Contains(Languages(), q.Language) {
		wrong("--language must be one of %s, not %q", strings.Join(Languages(), ", "), q.Language)
	}
	problems = append(problems, q.Workload.Validate(), q.Workload.Load())
	if q.Rounds < 1 {
		wrong("--runs must be at least 1, not %d", q.Rounds)
	}
	if q.Budget < leastBudget {
		wrong("--budget must be at least %v, not %v", leastBudget, q.Budget)
	}
	if candidates, out := q.candidates(); len(candidates) == 0 {
		for _, left := range out {
			wrong("--strategy: %s: %s", left.Strategy, left.Why)
		}
		wrong("--strategy: there is no lock to compare")
	}
	return errors.Join(problems...)
}

// Languages returns the allowed values of Language.
func Languages() []string { return []string{"go", "java", "python", "node"} }

// crowded reports whether an instance has several clients, so that a mutex within the instance can help.
func (q Question) crowded() bool { return q.Workload.ClientsPerInstance() > 1 }

var (
	either    = []Purpose{Efficiency, Correctness}
	efficient = []Purpose{Efficiency}
	correct   = []Purpose{Correctness}

	counting    = func(q Question) bool { return q.Workload.Work == workloads.WorkCounter }
	oneInstance = func(q Question) bool { return q.Workload.Instances == 1 }
	nodes       = func(q Question) bool { return strings.HasPrefix(q.Redis.Topology, "nodes:") }
)

// shortlist lists the strategies that are measured by default. The locks by different authors come first, with their
// best settings, and then other kinds of lock. If the budget is too small, the last strategies of the list are left
// out.
var shortlist = []struct {
	name     string
	purposes []Purpose
	when     func(Question) bool // nil means always
}{
	{atomic, either, counting},
	{"local", efficient, oneInstance},
	{"redsync:tuned=true", efficient, nil},
	{"fenced", correct, nil},
	{"handoff", either, nil},
	{"pubsub", efficient, nil},
	{"redlock", efficient, nodes},
	{"rueidislock", efficient, nil},
	{redisPy, efficient, func(q Question) bool { return q.Language == "python" }},
	{"spin", efficient, nil},
	{"gated:spin", efficient, Question.crowded},
	{"gated:fenced", correct, Question.crowded},
	{"cohort", either, Question.crowded},
}

const (
	// atomic is the strategy that increments a counter by one command, without a lock.
	atomic = "atomic"
	// redisPy is the strategy that polls as redis-py does by default.
	redisPy = "spin:backoff=fixed,base=100ms"
)

// oneCommand reports whether a strategy does the work of the question by one command instead of a lock.
func (q Question) oneCommand(info strategies.Info) bool { return info.Name == atomic && counting(q) }

// misplaced returns the reason why a strategy cannot run on the requested servers. It knows only reasons that can be
// found before the servers start, and returns "" if there is none.
func (q Question) misplaced(info strategies.Info) string {
	if problems := engine.Undriven(info, q.Workload); info.Driver && len(problems) > 0 {
		return problems[0].Error()
	}
	kind, err := store.Lookup(store.Redis)
	if err != nil {
		return ""
	}
	return kind.Layout(store.Options{Address: q.Redis.Address, Topology: q.Redis.Topology}).Unfit(info)
}

// candidates returns the strategies to measure, and the strategies to leave out, with the reasons.
func (q Question) candidates() (chosen []strategies.Variant, out []results.LeftOut) {
	consider := func(all []strategies.Variant) {
		for _, v := range all {
			why := cmp.Or(q.unsafe(v.Info()), q.unusable(v.Info()), q.misplaced(v.Info()))
			if why == "" && q.fit > 0 && len(chosen) == q.fit {
				why = fmt.Sprintf("--budget %s is too short; --budget %s suffices for all", minutes(q.Budget), q.whole)
			}
			if why == "" {
				chosen = append(chosen, v)
			} else {
				out = append(out, results.LeftOut{Strategy: v.Name(), Why: results.Unfit.Remark(why)})
			}
		}
	}
	if q.Named != nil {
		consider(q.Named)
		return chosen, out
	}
	out = append(out, q.Absent...)
	if consider(q.Drivers); len(chosen) == 0 {
		listed, lacking := q.listed()
		consider(listed)
		out = append(out, lacking...)
	}
	return chosen, out
}

// listed returns the strategies of the short list that apply to the question, and the strategies of that list that this
// program was built without.
func (q Question) listed() (all []strategies.Variant, lacking []results.LeftOut) {
	for _, e := range shortlist {
		if !slices.Contains(e.purposes, q.For) || e.when != nil && !e.when(q) {
			continue
		}
		some, err := strategies.ParseVariants(e.name)
		if err != nil {
			without := results.Unfit.Remark("this program was built without it")
			lacking = append(lacking, results.LeftOut{Strategy: e.name, Why: without})
		}
		all = append(all, some...)
	}
	return all, lacking
}

// library returns a library by another author that implements this lock in the requested language; nil if there is
// none.
func (q Question) library(info strategies.Info) *strategies.Library {
	for _, l := range info.Libraries {
		if q.Language == "" || strings.EqualFold(q.Language, l.Language) {
			return &l
		}
	}
	return nil
}

// users is like library, but returns nil for a gated lock, because no library puts a mutex in front of this lock.
func (q Question) users(info strategies.Info) *strategies.Library {
	if gated(info) {
		return nil
	}
	return q.library(info)
}

// gated reports whether a strategy is a lock behind a mutex within the process.
func gated(info strategies.Info) bool { return strings.HasPrefix(info.Name, "gated:") }

// unsafe returns the reason in a strategy's claims or caveat that forbids recommending it; "" if there is none.
func (q Question) unsafe(info strategies.Info) string {
	switch {
	case q.oneCommand(info):
		return ""
	case info.Caveat != "":
		return "unsafe: " + info.Caveat
	case info.Capacity != 1 || !info.Claims.Exclusion:
		admitted := "any number of clients"
		if info.Capacity > 0 {
			admitted = fmt.Sprintf("%d at a time", info.Capacity)
		}
		return "not a lock: the strategy claims " + info.Claims.String() + ", and admits " + admitted
	case info.MaxInstances > 0 && q.Workload.Instances > info.MaxInstances:
		return fmt.Sprintf("the lock claims %s within at most %d application instance(s), but the workload has %d",
			info.Claims, info.MaxInstances, q.Workload.Instances)
	case !info.Claims.Recovery && info.Nodes > 0:
		return "a dead holder keeps the lock forever: the lock claims only " + info.Claims.String()
	case q.For == Correctness && !info.Claims.Fencing:
		return fmt.Sprintf("the lock claims %s, but no fencing tokens", info.Claims)
	}
	return ""
}

// unusable returns why a program in the requested language cannot use a lock; "" if it can.
func (q Question) unusable(info strategies.Info) string {
	ours := q.Language == "" || q.Language == "go" || info.Nodes == 0 || q.oneCommand(info)
	if ours || q.users(info) != nil {
		return ""
	}
	return "no library for " + q.Language + " implements it"
}

// names joins the names of strategies with commas, as --strategy expects them.
func names(all []strategies.Variant) string {
	var parts []string
	for _, v := range all {
		parts = append(parts, v.Name())
	}
	return strings.Join(parts, ",")
}

// Plan returns the measurement that answers the question.
func (q Question) Plan() lockbench.Plan {
	candidates, _ := q.candidates()
	return lockbench.Plan{Strategies: candidates, Workload: q.Workload, Rounds: q.Rounds, Redis: q.Redis}
}

// Command returns the shell command that repeats the measurement of Plan.
func (q Question) Command() string {
	plan := q.Plan()
	return q.shell("lockbench", plan.Workload, [2]string{"--strategy", names(plan.Strategies)},
		[2]string{"--runs", strconv.Itoa(plan.Rounds)}) + " --no-baselines" + q.secret()
}

// secret returns a shell comment that tells the user to set LOCKBENCH_REDIS if the address of Redis contains a secret,
// because shell leaves out such an address. Without a secret, it returns "".
func (q Question) secret() string {
	if address := q.Redis.Address; strings.Contains(address, "@") || strings.Contains(address, "password") {
		return "  # set LOCKBENCH_REDIS to the address of Redis, which contains a secret"
	}
	return ""
}

// shell returns a shell command with the workload, the servers, and the options that have a value. It leaves out the
// address of Redis if the address contains a secret.
func (q Question) shell(command string, w workloads.Spec, options ...[2]string) string {
	address := q.Redis.Address
	if address == "auto" || q.secret() != "" {
		address = ""
	}
	line := command
	add := func(word string) { line += " " + words.Quoted(word) }
	put := func(options ...[2]string) {
		for _, option := range options {
			if option[1] != "" {
				add(option[0])
				add(option[1])
			}
		}
	}
	put(options...)
	for _, word := range workloads.Arguments([]workloads.Point{{Workload: w}}) {
		add(word)
	}
	put([2]string{"--redis", address}, [2]string{"--topology", q.Redis.Topology},
		[2]string{"--ca-file", q.Redis.CAFile}, [2]string{"--cert", q.Redis.CertFile}, [2]string{"--key", q.Redis.KeyFile},
		[2]string{"--image", q.Redis.Image})
	return line
}

const (
	// turns is the number of times that each client can be served in a window. With one turn, a client that is served one
	// time fewer than the others would look like a client that starves. warmup is the length of the warm-up as a fraction
	// of the window. It covers half a turn, after which the waits no longer grow.
	turns, warmup = 2, 0.25
	// leastWindow and leastWarmup are the shortest window and warm-up that Sized sets.
	leastWindow, leastWarmup = 500 * time.Millisecond, 200 * time.Millisecond
	// longestWindow keeps the sum of all windows far below the largest time.Duration.
	longestWindow = 24 * time.Hour
	// passing is the assumed time between the release by one holder and the grant to the next.
	passing = time.Millisecond
	// arrivals is the minimum number of acquisitions in a window that makes the 90th percentile of the waits meaningful.
	arrivals = 50

	// reserve is the part of the budget for starting the servers and for cleaning up. The runs must not use it.
	// leastBudget is the smallest allowed budget.
	reserve, leastBudget = 15 * time.Second, 30 * time.Second
	// fewest is the smallest number of locks for a ranking. Sized returns an error if the budget is too small to measure
	// this number of locks.
	fewest = 2
	// bearable is the highest utilisation of a lock at which waits stay short.
	bearable = 0.6
)

// round returns the approximate minimum length of a window. In an open loop, it is the time of 50 arrivals (the
// constant arrivals). In a closed loop with constant contention, it is the time to serve every client once: clients ×
// share of the most requested key × mean hold. In a closed loop whose clients seldom wait, it is the time of 50
// acquisitions, but at most one cycle of acquire, hold, release and think.
func (q Question) round() time.Duration {
	w := q.Workload
	_ = w.Load() // Validate has reported its errors
	hold := w.Hold.Mean() + passing
	if w.Rate > 0 {
		return max(hold, time.Duration(arrivals/float64(w.Rate)*float64(time.Second)))
	}
	turn := time.Duration(float64(w.Clients) * w.KeyDist.Hottest(w.Keys) * float64(hold))
	if cycle := hold + w.Think.Mean(); turn < cycle {
		return max(hold, min(cycle, arrivals*cycle/time.Duration(w.Clients)))
	}
	return turn
}

// Sized returns the question with a window and a warm-up that are long enough to show waits and starvation, unless the
// user gave them. It keeps as many locks as can be measured within the budget. It returns an error if the budget
// suffices for fewer than two locks.
func (q Question) Sized(givenWindow, givenWarmup bool) (Question, error) {
	w := &q.Workload
	traced := w.Arrivals.Trace() != nil
	if !givenWindow && !traced { // a trace is played once, to its end
		w.Duration = workloads.Duration(max(leastWindow, scaled(q.round(), turns)))
	}
	if !givenWarmup && traced {
		w.Warmup = workloads.Duration(leastWarmup)
	} else if !givenWarmup {
		w.Warmup = workloads.Duration(max(leastWarmup, scaled(time.Duration(w.Duration), warmup)))
	}
	if !givenWindow && time.Duration(w.Duration) > longestWindow {
		return q, fmt.Errorf("serving every client twice needs a window of %v, but the longest allowed window is %v: "+
			"give --duration, shorter holds or fewer clients", w.Duration, longestWindow)
	}
	all, _ := q.candidates()
	q.whole = q.needs()
	for q.fit = len(all); q.Plan().Expected()+reserve > q.Budget; q.fit-- {
		if q.fit <= fewest {
			windows := fmt.Sprintf("windows of %v", w.Duration)
			if !givenWindow {
				windows += ", which serve every client twice"
			}
			return q, fmt.Errorf("--budget: %s is too short for %s: --budget %s suffices for %s",
				minutes(q.Budget), windows, q.needs(), words.Count(q.fit, "lock"))
		}
	}
	return q, nil
}

// needs returns the budget that suffices for the plan, in whole minutes.
func (q Question) needs() string {
	return minutes((q.Plan().Expected() + reserve + time.Minute).Truncate(time.Minute))
}

// minutes formats a duration. It leaves out "0s" after whole minutes.
func minutes(d time.Duration) string { return strings.Replace(d.String(), "m0s", "m", 1) }

// saturation returns a Saturation if the load keeps every lock busy all the time, and nil otherwise. Its commands
// propose an arrival rate, and for a closed loop also a think time, at which a lock is busy for 60 % of the time (the
// constant bearable).
func (q Question) saturation() *Saturation {
	w := q.Workload
	hold, share := w.Hold.Mean().Seconds(), w.KeyDist.Hottest(w.Keys)
	most, turn := 1/(share*hold), float64(w.Clients)*share*hold
	closed := w.Rate == 0
	if hold == 0 || !closed && float64(w.Rate) < most || closed && turn <= hold+w.Think.Mean().Seconds() {
		return nil
	}
	ask := func() string {
		return q.shell("lockbench advise", w, [2]string{"--for", q.purpose()}, [2]string{"--language", q.Language},
			[2]string{"--strategy", names(q.Named)}) + q.secret()
	}
	w.Duration, w.Warmup, w.Think = workloads.Default().Duration, workloads.Default().Warmup, workloads.Dist{}
	busy := share * (hold + passing.Seconds()) // seconds for which an acquisition keeps the most requested key busy
	w.Rate = workloads.Rate(rounded(bearable / busy))
	s := &Saturation{MostPerSecond: most, Ask: []string{ask()}}
	if closed {
		think := rounded(float64(w.Clients)*busy/bearable - hold)
		w.Rate, w.Think = 0, workloads.Fixed(time.Duration(think*1e9).Round(time.Millisecond))
		s.TurnNS, s.Ask = int64(turn*1e9), append(s.Ask, ask())
	}
	return s
}

// rounded rounds a number to two significant digits.
func rounded(x float64) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
	return short
}

// scaled returns t × part, rounded to a multiple of 10 ms.
func scaled(t time.Duration, part float64) time.Duration {
	return time.Duration(float64(t) * part).Round(10 * time.Millisecond)
}
