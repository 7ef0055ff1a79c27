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
	_, out := q.candidates()
	a := &Document{
		Head: document.Begin(schema), For: q.For, Workload: q.Workload, Rounds: q.Rounds,
		Ranking: []Row{}, LeftOut: out, Commands: []string{}, Notes: q.notes(m),
	}
	for _, r := range []*results.Report{m.Locks, m.Update} {
		if r == nil {
			continue
		}
		a.LeftOut = append(a.LeftOut, r.LeftOut...)
		for _, run := range r.Runs {
			if len(run.Safety.Broken) > 0 {
				a.Broken = append(a.Broken, run.Strategy)
			}
		}
	}
	ranking, unfit := q.contenders(m.Locks)
	for i, c := range ranking {
		row := q.row(c, ranking[0])
		if i > 0 {
			row.Why = q.behind(c, ranking[0])
		}
		a.Ranking = append(a.Ranking, row)
	}
	for _, c := range unfit {
		row := q.row(c, c)
		row.Why = q.unfit(c)
		a.Ranking = append(a.Ranking, row)
	}
	a.Choice = q.choice(m, ranking)
	return a
}

// choice returns what to use: the first of the ranking, or something other than a lock; nil if nothing
// may be recommended.
func (q Question) choice(m measured, ranking []contender) *Choice {
	c := &Choice{Library: library(ranking)}
	switch _, replaces := oneCommand(m.Update); {
	case q.For == Correctness && (len(ranking) == 0 || q.Workload.Fence != workloads.FenceAll) && m.Locks != nil:
		c.Name, c.Summary = ConsensusStore, "such as etcd or ZooKeeper: no lock in Redis survives every failover"
		c.RightIf = "what it protects cannot check fencing tokens, or no measured lock has any"
	case len(ranking) == 0:
		return nil
	case q.Workload.Work == workloads.WorkCounter && replaces:
		c.Name, c.Summary = NoLock, "one command or Lua script does the work at once"
		c.RightIf = "all that a holder does fits into one command or script"
	case !slices.ContainsFunc(ranking, func(c contender) bool { return !overloaded(c) }):
		c.Name = NoLock
		c.Summary = "no lock keeps up with the arrivals: split what it protects into more keys, or do without"
		c.RightIf = "there are as many arrivals as asked about"
	default:
		q.lock(c, ranking[0])
	}
	return c
}

// lock makes a lock the choice.
func (q Question) lock(c *Choice, first contender) {
	c.Name, c.Summary, c.Take = first.Name, first.info.Summary, take(first)
	c.RightIf = "two holders at once only waste work, and the contention is like the one asked about"
	if q.For == Correctness {
		c.RightIf = "what it protects keeps the highest fencing token, and refuses reads and writes with a lower one"
	}
	if first.info.Library != "" { // it is one
		c.Library = nil
	}
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
func library(ranking []contender) *Library {
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

// notes returns what would help more than another lock, and what to know about the figures.
func (q Question) notes(m measured) []string {
	var all []string
	if note, _ := oneCommand(m.Update); note != "" {
		all = append(all, note)
	}
	if q.Needed > 0 {
		all = append(all, fmt.Sprintf("The windows are %v, so that the answer comes within three minutes; "+
			"to serve every client twice they need --duration %v.", q.Workload.Duration, q.Needed))
	}
	for _, f := range findings.Of(summaries(m.Locks)) {
		if f.Advice {
			all = append(all, f.String()+".")
		}
	}
	return all
}

// oneCommand compares one command with a lock that does the same, and says whether the command is clearly
// better and equally safe.
func oneCommand(r *results.Report) (note string, replaces bool) {
	var command, lock contender
	for _, s := range summaries(r) {
		switch {
		case s.Invalid:
			return "", false
		case s.Name == "atomic":
			command.Summary = s
		default:
			lock.Summary = s
		}
	}
	if command.Name == "" || lock.Name == "" {
		return "", false
	}
	const speed = "acq_per_s"
	many, lost, times := command.figure(speed), command.figure("lost_updates"), advantage(speed, command, lock)
	if times == nil || lost.Value == nil {
		return "", false
	}
	note = fmt.Sprintf("One command or Lua script made %s updates, %s times as many as under %s; updates lost: %s.",
		many.Value.Text(many.Unit), times, lock.Name, lost.Value.Text(lost.Unit))
	return note, better(speed, r.Rounds, command, lock) && lost.Value.Value == 0
}
