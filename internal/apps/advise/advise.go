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
	"github.com/lockbench/lockbench/internal/words"
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
		Head: document.Begin(schema), For: q.For, Language: q.Language, Workload: q.Workload, Rounds: q.Rounds,
		Saturated: q.saturation(), Ranking: []Row{}, LeftOut: out, Command: q.Command(),
	}
	if !q.showsWaits() {
		a.Notes = append(a.Notes, fmt.Sprintf("windows of %v show no waits: to serve every client once takes %v",
			q.Workload.Duration, q.round()))
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
	var cautions []results.LeftOut
	for _, f := range findings.Of(summaries) {
		if f.Advice {
			cautions = append(cautions, results.LeftOut{Strategy: words.And(f.Strategies), Why: f.Text})
		}
	}
	a.Notes = append(a.Notes, grouped(cautions)...)
	ranking, unfit := q.contenders(summaries)
	for _, c := range ranking {
		a.Ranking = append(a.Ranking, q.row(c, ranking[0]))
	}
	for _, c := range unfit {
		a.Ranking = append(a.Ranking, q.row(c, c))
	}
	a.Choice = q.choice(ranking)
	return a
}

// choice returns what to use: the first of the ranking, or something other than a lock; nil if nothing
// may be recommended.
func (q Question) choice(ranking []contender) *Choice {
	c := &Choice{}
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
		q.lock(c, ranking)
	}
	return c
}

// lock makes the first of the ranking the choice, and puts the best lock of other authors beside it.
func (q Question) lock(c *Choice, ranking []contender) {
	first := ranking[0]
	c.Name, c.Summary, c.Take = first.Name, first.info.Summary, q.take(first)
	c.RightIf = "two holders at once only waste work, and the contention is like the one asked about"
	if q.For == Correctness {
		c.RightIf = "what it protects keeps the highest fencing token, and refuses reads and writes with a lower one"
	}
	if len(ranking) > 1 && q.author(ranking[1]) != q.author(first) && !overloaded(ranking[1]) {
		c.Beside = &Beside{ranking[1].Name, q.take(ranking[1]), q.row(ranking[1], first).why(first.Name)}
	}
}

// ours is what the import paths of lockbench's own locks begin with.
const ours = "github.com/lockbench/lockbench"

// author returns who has made a lock: its library, else the module or package. A mutex before it changes nothing.
func (q Question) author(c contender) string {
	switch l := q.library(c.info); {
	case l != nil:
		return l.Package
	case strings.HasPrefix(c.info.Package, ours+"/"):
		return ours
	}
	return c.info.Package
}

// take says what to import for a lock.
func (q Question) take(c contender) string {
	text, l := c.info.Package+" (Go)", q.users(c.info)
	switch {
	case gated(c.info):
		return ours + "/strategies/gated around " + text
	case l == nil && c.info.Nodes == 0 && q.Language != "" && q.Language != "go":
		return "a mutex of the process"
	case l == nil && strings.HasPrefix(text, ours):
		return text + ", which is in use nowhere else that lockbench knows of"
	case l == nil:
		return text
	case l.Language == "Go" || c.info.Driver:
		return l.String()
	case q.Language != "":
		return l.String() + ", of which lockbench's copy in Go was measured"
	}
	return l.String() + ", or the same lock in " + text
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

// criterion is a metric that counts.
type criterion struct {
	metric string
	// A lock does not lose by it to another one while its figure of size is below least.
	size  string
	least float64
}

const (
	// leastCPU is the percentage of a core below which the cost for the server does not count.
	leastCPU = 5
	// leastWait is the part of the mean hold below which a wait does not count.
	leastWait = 0.1
)

// criteria returns what counts, the most important first: clients served, long waits, and the cost for the server.
func (q Question) criteria() []criterion {
	all := []criterion{{metric: "served_per_s"}}
	if q.showsWaits() {
		// Not the 99th percentile: in such short windows it is often only a lower bound.
		waits := "wait_per_client_p90"
		if q.Workload.Rate > 0 { // clients are slots there
			waits = "wait_p90"
		}
		all = append(all, criterion{waits, waits, leastWait * float64(q.Workload.Hold.Mean())})
	}
	return append(all, criterion{"redis_cpu_per_acq", "redis_cpu", leastCPU})
}

// showsWaits says whether a window is long enough for a wait of the usual length.
func (q Question) showsWaits() bool { return time.Duration(q.Workload.Duration) >= q.round() }

// advantage says how many times as good a is as b by a metric, over paired rounds; nil if that is not known.
func advantage(metric string, a, b contender) *results.Ratio {
	m, _ := results.FindMetric(metric)
	if m.Better == results.Lower {
		return b.Against(a.Summary, m)
	}
	return a.Against(b.Summary, m)
}

// beats says whether a is clearly better than b by a criterion: the ratio's interval excludes 1, and its median
// is at least matters. With too few planned rounds for an interval, a must be better in all of them.
func (q Question) beats(by criterion, a, b contender) bool {
	if by.size != "" {
		if size := b.figure(by.size).Value; size == nil || size.Value < by.least {
			return false
		}
	}
	r := advantage(by.metric, a, b)
	return r != nil && (r.Interval || r.Rounds >= q.Rounds) && r.Low > 1 && !r.AtMost && r.Median >= matters
}

// ranked orders a field, the best first. The second is the best of other authors than the first, if there are any:
// a variant of the first is no second opinion.
func (q Question) ranked(field []contender) (all []contender) {
	for len(field) > 0 {
		rest := field
		if len(all) == 1 {
			rest = slices.DeleteFunc(slices.Clone(field), func(c contender) bool {
				return q.author(c) == q.author(all[0]) || q.oneCommand(all[0].info)
			})
		}
		if len(rest) == 0 {
			rest = field
		}
		best := q.choose(rest)
		all = append(all, best)
		field = slices.DeleteFunc(slices.Clone(field), func(c contender) bool { return c.Name == best.Name })
	}
	return all
}

// choose returns the contender to take. For each criterion it removes those that another one beats; of the
// rest it takes the one that needs the least, and of equals one that others use. field must not be empty.
func (q Question) choose(field []contender) contender {
	for _, by := range q.criteria() {
		stay := slices.DeleteFunc(slices.Clone(field), func(x contender) bool {
			return slices.ContainsFunc(field, func(other contender) bool { return q.beats(by, other, x) })
		})
		if len(stay) > 0 { // otherwise each is beaten by another
			field = stay
		}
	}
	unused := func(c contender) int {
		if q.users(c.info) == nil {
			return 1
		}
		return 0
	}
	return slices.MinFunc(field, func(a, b contender) int {
		return cmp.Or(
			cmp.Compare(a.info.Nodes, b.info.Nodes),
			cmp.Compare(a.info.Connections.PerWaiter, b.info.Connections.PerWaiter),
			cmp.Compare(a.info.Connections.PerInstance, b.info.Connections.PerInstance),
			cmp.Compare(unused(a), unused(b)),
			cmp.Compare(a.order, b.order),
		)
	})
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
	row := Row{Name: c.Name, Claims: c.info.Claims.List(), Verdict: c.Verdict(), Unfit: q.unfit(c)}
	if l := q.users(c.info); l != nil {
		row.Library = l.String()
	}
	for _, by := range q.criteria() {
		figure := Figure{Figure: c.figure(by.metric)}
		if c.Name != first.Name {
			figure.Ratio = advantage(by.metric, first, c)
			if row.Behind == "" && q.beats(by, first, c) {
				row.Behind = by.metric
			}
		}
		row.Figures = append(row.Figures, figure)
	}
	for _, name := range []string{"redis_cpu", "commands_per_acq", "violations"} {
		row.Figures = append(row.Figures, Figure{Figure: c.figure(name)})
	}
	return row
}
