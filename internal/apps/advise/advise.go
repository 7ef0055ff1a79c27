package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/workloads"
)

// advise makes advice from what was measured.
func (q Question) advise(m measured) *Document {
	candidates, out := q.candidates()
	a := &Document{
		Head: document.Begin(schema), For: q.For, Workload: q.Workload, Rounds: q.Rounds,
		Ranking: []Row{}, LeftOut: out, Commands: []string{},
	}
	for _, r := range m.reports() {
		a.LeftOut = append(a.LeftOut, r.LeftOut...)
		for _, run := range r.Runs {
			if len(run.Safety.Broken) > 0 {
				a.Broken = append(a.Broken, run.Strategy)
			}
		}
	}
	field := contenders(m.Locks, candidates)
	unfit := func(c contender) bool { return q.unfit(c) != "" }
	ranking := ranked(q.criteria(), slices.DeleteFunc(slices.Clone(field), unfit))
	for i, c := range ranking {
		row := q.row(c, ranking[0])
		if i > 0 {
			row.Why = q.behind(c, ranking[0])
		}
		a.Ranking = append(a.Ranking, row)
	}
	for _, c := range field {
		if why := q.unfit(c); why != "" {
			row := q.row(c, c)
			row.Why = why
			a.Ranking = append(a.Ranking, row)
		}
	}
	a.Choice = q.choice(m, ranking)
	a.Notes = slices.Concat(q.alternatives(m, ranking), q.invalid(m.Locks), q.tooShort(), m.cautions())
	return a
}

// choice returns what to use: the first of the ranking, or something other than a lock; nil if nothing
// may be recommended.
func (q Question) choice(m measured, ranking []contender) *Choice {
	library := q.library(ranking)
	switch _, replaces := oneCommand(m.Update); {
	case q.For == Correctness && (len(ranking) == 0 || q.Workload.Fence != workloads.FenceAll) && m.Locks != nil:
		return &Choice{
			Name: ConsensusStore, Summary: "such as etcd or ZooKeeper: no lock in Redis survives every failover",
			RightIf: "what it protects cannot check fencing tokens, or no measured lock has any", Library: library,
		}
	case len(ranking) == 0:
		return nil
	case q.Workload.Work == workloads.WorkCounter && replaces:
		return &Choice{
			Name: NoLock, Summary: "one command or Lua script does the work at once",
			RightIf: "all that a holder does fits into one command or script", Library: library,
		}
	case !slices.ContainsFunc(ranking, func(c contender) bool { return !overloaded(c) }):
		return &Choice{
			Name:    NoLock,
			Summary: "no lock keeps up with the arrivals: split what it protects into more keys, or do without",
			RightIf: "there are as many arrivals as asked about", Library: library,
		}
	}
	first := ranking[0]
	c := &Choice{
		Name: first.Name, Summary: first.info.Summary, Take: take(first),
		RightIf: "two holders at once only waste work, and the contention is like the one asked about",
		Library: library,
	}
	if q.For == Correctness {
		c.RightIf = "what it protects keeps the highest fencing token, and refuses reads and writes with a lower one"
	}
	if first.info.Library != "" { // it is one
		c.Library = nil
	}
	return c
}

// take says what to import for a lock.
func take(c contender) string {
	text := c.info.Package + " (Go)"
	if c.info.Library != "" && len(c.info.Libraries) > 0 {
		text = c.info.Libraries[0].String()
	}
	if strings.HasPrefix(c.Name, "gated:") {
		text = "github.com/lockbench/lockbench/strategies/gated around " + text
	}
	return text
}

// library returns the best lock of the ranking that is a third-party library, or has the format of one.
func (q Question) library(ranking []contender) *Library {
	for _, c := range ranking {
		if len(c.info.Libraries) > 0 {
			return &Library{Strategy: c.Name, Library: c.info.Libraries[0]}
		}
	}
	return nil
}

// overloaded says whether a lock did not keep up with an open loop's arrivals in most of its rounds.
func overloaded(c contender) bool {
	late := 0
	for _, run := range c.Used {
		if run.Overloaded() {
			late++
		}
	}
	return late*2 > len(c.Used)
}

// alternatives returns what would help more than another lock.
func (q Question) alternatives(m measured, ranking []contender) []Sentence {
	var all []Sentence
	if len(ranking) > 0 {
		all = append(all, q.saturated(ranking[0])...)
	}
	if s, _ := oneCommand(m.Update); s.Text != "" {
		all = append(all, s)
	}
	return append(all, sharing(m.Shared)...)
}

// saturated says that under this question a client always wants the lock, so that the mean wait does not
// depend on the lock.
func (q Question) saturated(first contender) []Sentence {
	w := q.Workload
	crowd := float64(w.Clients) * w.KeyDist.Hottest(w.Keys)
	held := first.figure("utilisation")
	if w.Rate > 0 || !w.Think.IsZero() || w.Timeout != nil || crowd < 2 || held.Value == nil {
		return nil
	}
	_ = w.Load() // Validate has reported its errors
	wait := results.Figure{Value: crowd * float64(w.Hold.Mean())}
	return []Sentence{{
		Text: fmt.Sprintf("This workload saturates the lock: %s held it %s of the time, and the mean wait is at least "+
			"%s under any lock. Give the real request rate: --rate, or --think for a client's pause.",
			first.Name, held.Value.Text(held.Unit), wait.Text(results.Nanoseconds)),
		Evidence: []findings.Evidence{held},
	}}
}

// find returns a strategy in a report.
func find(r *results.Report, point string, wanted func(name string) bool) (contender, bool) {
	for _, s := range summaries(r) {
		if wanted(s.Name) && s.Point == point && !s.Invalid {
			return contender{Summary: s}, true
		}
	}
	return contender{}, false
}

// oneCommand compares one command with a lock that does the same, and says whether the command is clearly
// better and equally safe.
func oneCommand(r *results.Report) (Sentence, bool) {
	atomic, known := find(r, "", func(name string) bool { return name == "atomic" })
	lock, also := find(r, "", func(name string) bool { return name != "atomic" })
	if !known || !also {
		return Sentence{}, false
	}
	speed := criterion{name: "acq_per_s", rounds: r.Rounds}
	many, lost := atomic.figure("acq_per_s"), atomic.figure("lost_updates")
	if many.Ratio = speed.advantage(atomic, lock); many.Ratio == nil || lost.Value == nil {
		return Sentence{}, false
	}
	many.Than = lock.Name
	return Sentence{
		Text: fmt.Sprintf("One command or Lua script made %s updates, %s times as many as under %s; updates lost: %s.",
			many.Value.Text(many.Unit), many.Ratio, lock.Name, lost.Value.Text(lost.Unit)),
		Evidence: []findings.Evidence{many, lost},
	}, speed.better(atomic, lock) && lost.Value.Value == 0
}

// sharing says how much it helps if waiters of an instance share an acquisition; nothing if it does not.
func sharing(r *results.Report) []Sentence {
	either := func(string) bool { return true }
	apiece, known := find(r, alone, either)
	together, also := find(r, shared, either)
	if !known || !also {
		return nil
	}
	served := criterion{name: "served_per_s", rounds: r.Rounds}
	if !served.better(together, apiece) {
		return nil
	}
	more := together.figure("served_per_s")
	more.Than, more.Ratio = apiece.Name+" "+alone, served.advantage(together, apiece)
	return []Sentence{{
		Text: fmt.Sprintf("Waiters that share one acquisition (singleflight) were served %s, "+
			"%s times as often as with a lease each.", more.Value.Text(more.Unit), more.Ratio),
		Evidence: []findings.Evidence{more},
	}}
}

// tooShort says that windows are too short, and how long they should be.
func (q Question) tooShort() []Sentence {
	if q.needed == 0 {
		return nil
	}
	return []Sentence{{
		Text: fmt.Sprintf("The windows are %v, so that the answer comes within three minutes; "+
			"to serve every client twice they need --duration %v.", q.Workload.Duration, q.needed),
		Evidence: []findings.Evidence{{
			Metric: "window", Unit: results.Nanoseconds, Value: &results.Figure{Value: float64(q.Workload.Duration)},
		}},
	}}
}

// cautions returns what to know about the figures of the locks.
func (m measured) cautions() []Sentence {
	var said []Sentence
	for _, f := range findings.Of(summaries(m.Locks)) {
		if f.Advice != "" {
			said = append(said, Sentence{Text: f.String() + ".", Evidence: f.Evidence})
		}
	}
	return said
}

// invalid says how many rounds have only valid runs, if there are too few. It ignores locks that failed, or
// without any valid run.
func (q Question) invalid(r *results.Report) []Sentence {
	if r == nil {
		return nil
	}
	count := map[int]int{}
	locks := 0
	for _, s := range r.Summaries() {
		out := slices.ContainsFunc(r.LeftOut, func(left results.LeftOut) bool { return left.Strategy == s.Name })
		good := slices.DeleteFunc(slices.Clone(s.Runs), func(r results.Run) bool { return !r.Complete() })
		if out || len(good) == 0 {
			continue
		}
		locks++
		for _, run := range good {
			count[run.Round]++
		}
	}
	valid := 0
	for _, n := range count {
		if n == locks {
			valid++
		}
	}
	if locks == 0 || valid >= q.Rounds {
		return nil
	}
	return []Sentence{{
		Text: fmt.Sprintf("Rounds with valid runs alone: %d of %d. Ask again on a quieter machine.",
			valid, q.Rounds),
		Evidence: []findings.Evidence{{Metric: "rounds", Value: &results.Figure{Value: float64(valid)}}},
	}}
}
