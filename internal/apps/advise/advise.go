package advise

import (
	"cmp"
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
	"github.com/lockbench/lockbench/strategies"
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
	summaries := report.Summaries()
	for _, f := range findings.Of(summaries) {
		if f.Advice {
			a.Notes = append(a.Notes, f.String()+".")
		}
	}
	ranking, unfit := q.contenders(summaries)
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

// matters is the least ratio of medians at which a difference counts.
const matters = 1.1

// contender is a measured strategy.
type contender struct {
	results.Summary
	variant strategies.Variant
	info    strategies.Info
	order   int // in which the strategies were named
}

// figure returns a metric of the contender.
func (c contender) figure(name string) document.Figure {
	m, _ := results.FindMetric(name)
	return document.Figure{Metric: name, Unit: m.Unit, Value: c.Figure(m)}
}

// criteria returns the metrics that count, the most important first: clients served, long waits, and the cost
// for the server.
func (q Question) criteria() []string {
	// Not the 99th percentile: in such short windows it is often only a lower bound.
	waits := "wait_per_client_p90"
	if q.Workload.Rate > 0 { // clients are slots there
		waits = "wait_p90"
	}
	return []string{"served_per_s", waits, "redis_cpu_per_acq"}
}

// advantage says how many times as good a is as b by a metric, over paired rounds; nil if that is not known.
func advantage(metric string, a, b contender) *results.Ratio {
	m, _ := results.FindMetric(metric)
	if m.Better == results.Lower {
		return b.Against(a.Summary, m)
	}
	return a.Against(b.Summary, m)
}

// better says whether a is clearly better than b by a metric: the ratio's interval excludes 1, and its median
// is at least matters. With too few planned rounds for an interval, a must be better in all of them.
func better(metric string, rounds int, a, b contender) bool {
	r := advantage(metric, a, b)
	return r != nil && (r.Interval || r.Rounds >= rounds) && r.Low > 1 && !r.AtMost && r.Median >= matters
}

// ranked orders a field, the best first.
func (q Question) ranked(field []contender) []contender {
	var all []contender
	for rest := field; len(rest) > 0; {
		best := q.choose(rest)
		all = append(all, best)
		rest = slices.DeleteFunc(slices.Clone(rest), func(c contender) bool { return c.Name == best.Name })
	}
	return all
}

// choose returns the contender to take. For each criterion it removes those that another one beats; of the
// rest it takes the one that needs the least. field must not be empty.
func (q Question) choose(field []contender) contender {
	for _, metric := range q.criteria() {
		stay := slices.DeleteFunc(slices.Clone(field), func(x contender) bool {
			return slices.ContainsFunc(field, func(other contender) bool { return better(metric, q.Rounds, other, x) })
		})
		if len(stay) > 0 { // otherwise each is beaten by another
			field = stay
		}
	}
	return slices.MinFunc(field, func(a, b contender) int {
		return cmp.Or(
			cmp.Compare(a.info.Nodes, b.info.Nodes),
			cmp.Compare(a.info.Connections.PerWaiter, b.info.Connections.PerWaiter),
			cmp.Compare(a.info.Connections.PerInstance, b.info.Connections.PerInstance),
			cmp.Compare(listed(a.Name), listed(b.Name)),
			cmp.Compare(a.order, b.order),
		)
	})
}

// behind says why a contender is not first.
func (q Question) behind(c, first contender) string {
	for _, metric := range q.criteria() {
		if better(metric, q.Rounds, first, c) {
			return fmt.Sprintf("%s is %s times as good by %s", first.Name, advantage(metric, first, c), metric)
		}
	}
	return fmt.Sprintf("no figure separates it from %s, which comes first by what it needs", first.Name)
}

// unfit says why a contender must not be recommended, by its claims or its figures; "" if it may be.
func (q Question) unfit(c contender) string {
	wrong, served, failures := c.figure("violations"), c.figure("served_per_s"), c.figure("errors")
	if q.oneCommand(c.info) { // it excludes nobody, and need not
		wrong = c.figure("lost_updates")
	}
	switch {
	case q.unsafe(c.info) != "":
		return q.unsafe(c.info)
	case q.For == Correctness && !c.info.Claims.Fencing && !q.oneCommand(c.info):
		return fmt.Sprintf("it claims %s, and no fencing tokens", c.info.Claims)
	case wrong.Value == nil || wrong.Value.Value > 0:
		return wrong.Metric + ": " + wrong.Value.Text(wrong.Unit)
	case c.Invalid:
		return fmt.Sprintf("none of its %d runs is valid: %s", len(c.Runs), strings.Join(c.Runs[0].Invalid, "; "))
	case failures.Value != nil && failures.Value.Value > 0:
		return "errors: " + failures.Value.Text(failures.Unit)
	case served.Value == nil || served.Value.Value == 0:
		return "it served no client"
	}
	return ""
}

// contenders returns the candidates that were measured: those that may be recommended, the best first, and the
// others.
func (q Question) contenders(summaries []results.Summary) (ranking, unfit []contender) {
	candidates, _ := q.candidates()
	for _, s := range summaries {
		at := slices.IndexFunc(candidates, func(v strategies.Variant) bool { return v.Name() == s.Name })
		if at < 0 {
			continue
		}
		c := contender{Summary: s, variant: candidates[at], info: candidates[at].Info(), order: at}
		if q.unfit(c) == "" {
			ranking = append(ranking, c)
		} else {
			unfit = append(unfit, c)
		}
	}
	return q.ranked(ranking), unfit
}

// row returns a contender's row of the ranking.
func (q Question) row(c, first contender) Row {
	row := Row{Name: c.Name, Claims: c.info.Claims.List(), Verdict: c.Verdict()}
	for _, metric := range q.criteria() {
		figure := Figure{Figure: c.figure(metric)}
		if c.Name != first.Name {
			figure.Ratio = advantage(metric, first, c)
		}
		row.Figures = append(row.Figures, figure)
	}
	for _, name := range []string{"commands_per_acq", "violations"} {
		row.Figures = append(row.Figures, Figure{Figure: c.figure(name)})
	}
	return row
}
