package advise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/workloads"
)

// Answer measures the candidates with a function such as lockbench.Run, and makes the advice. When ctx
// ends, the advice is Interrupted and has no choice. The error means that there is no Redis.
func (q Question) Answer(
	ctx context.Context, run func(context.Context, lockbench.Plan) (*results.Report, error),
	progress func(lockbench.Progress),
) (*Document, error) {
	begun, plan := time.Now(), q.Plan()
	plan.Progress = progress
	report, err := run(ctx, plan)
	if report != nil && !errors.Is(err, lockbench.ErrUnreachable) {
		err = nil // of a strategy in the report's LeftOut
	}
	a := q.advise(report)
	a.Started, a.Finished, a.Interrupted = begun, time.Now(), ctx.Err() != nil
	if a.Interrupted || err != nil {
		a.Choice = nil
	}
	return a, err
}

// advise makes advice from what was measured; report is nil if that is nothing.
func (q Question) advise(report *results.Report) *Document {
	_, out := q.candidates()
	a := &Document{
		Head: document.Begin(schema), For: q.For, Workload: q.Workload, Rounds: q.Rounds,
		Ranking: []Row{}, LeftOut: out, Command: q.Command(),
	}
	if q.Needed > 0 {
		a.Notes = append(a.Notes, fmt.Sprintf("The windows are %v, so that the answer comes within three minutes; "+
			"to serve every client twice they need --duration %v.", q.Workload.Duration, q.Needed))
	}
	if report == nil {
		return a
	}
	a.Environment, a.Redis, a.LeftOut = report.Environment, report.Redis, append(out, report.LeftOut...)
	for _, run := range report.Runs {
		if len(run.Safety.Broken) > 0 {
			a.Broken = append(a.Broken, run.Strategy)
		}
	}
	for _, f := range findings.Of(report.Summaries()) {
		if f.Advice {
			a.Notes = append(a.Notes, f.String()+".")
		}
	}
	ranking, unfit := q.contenders(report)
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
	a.Choice = q.choice(ranking)
	return a
}

// choice returns what to use: the first of the ranking, or something other than a lock; nil if nothing
// may be recommended.
func (q Question) choice(ranking []contender) *Choice {
	c := &Choice{Library: library(ranking)}
	switch {
	case q.For == Correctness && (len(ranking) == 0 || q.Workload.Fence != workloads.FenceAll):
		c.Name, c.Summary = ConsensusStore, "such as etcd or ZooKeeper: no lock in Redis survives every failover"
		c.RightIf = "what it protects cannot check fencing tokens, or no measured lock has any"
	case len(ranking) == 0:
		return nil
	case q.oneCommand(ranking[0].info):
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
