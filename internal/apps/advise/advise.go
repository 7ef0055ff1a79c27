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
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/results/findings"
	"github.com/lockbench/lockbench/strategies"
)

// runner is the signature of lockbench.Run. Tests replace it with functions that return prepared reports.
type runner func(context.Context, lockbench.Plan) (*results.Report, error)

// Answer measures the candidates and returns the advice. While the budget lasts, it repeats the rounds in which a lock
// has no valid run, and adds rounds for locks that the first rounds do not separate. If ctx ends, the advice is marked
// Interrupted and recommends nothing. Answer returns an error only if Redis cannot be reached.
func (q Question) Answer(
	ctx context.Context, run runner, progress func(lockbench.Progress),
) (*Document, error) {
	begun, plan := time.Now(), q.Plan()
	end := begun.Add(q.Budget - windUp)
	measuring, done := context.WithDeadline(ctx, end)
	defer done()
	plan.Progress = progress
	report, err := run(measuring, plan)
	for err == nil || !errors.Is(err, lockbench.ErrUnreachable) {
		err = nil // about a strategy, which is in the report's LeftOut
		more := q.again(report, time.Until(end))
		if more == nil || measuring.Err() != nil {
			break
		}
		more.Progress = progress
		var added *results.Report
		added, err = run(measuring, *more)
		join(report, added)
	}
	a := q.advise(report)
	a.Started, a.Finished, a.Interrupted = begun, time.Now(), ctx.Err() != nil
	if measuring.Err() != nil && !a.Interrupted {
		a.Notes = append(a.Notes, results.BudgetEnded.Remark(minutes(q.Budget), "before all rounds were measured"))
	}
	if a.Interrupted || err != nil {
		a.Choice, a.Undecided = nil, nil
	}
	return a, err
}

const (
	// windUp is the part of the budget that is reserved for stopping a run that is still in progress.
	windUp = 5 * time.Second
	// startUp is the approximate time to start the servers for further rounds. again subtracts it from the remaining time.
	startUp = 3 * time.Second
	// mostTimes limits the number of rounds. After mostTimes × Question.Rounds rounds, no more rounds are added, even if
	// the ranking is still undecided.
	mostTimes = 8
)

// again returns a plan for more rounds of the locks that may be the best. It plans as many rounds as were invalid, or
// Question.Rounds if no round was invalid, but no more than fit in the remaining time (left). It returns nil if the
// ranking is decided, if more rounds would not decide it, or if no round fits in the remaining time.
func (q Question) again(report *results.Report, left time.Duration) *lockbench.Plan {
	if report == nil || q.tokenless() {
		return nil
	}
	lead, _ := q.standing(report.Summaries())
	wanted, lost := leaders{}, 0
	for _, d := range lead.doubts {
		if d.decisive() {
			wanted, lost = lead, max(lost, q.Rounds-d.rounds)
		}
	}
	for _, c := range lead.lost { // its new rounds must be paired with new rounds of the leaders
		if len(c.Runs) < 2*q.Rounds {
			if len(wanted.all) == 0 {
				wanted = lead
			}
			wanted.all, lost = append(slices.Clone(wanted.all), c), q.Rounds
		}
	}
	if len(wanted.all) == 0 || lastRound(report) >= mostTimes*q.Rounds {
		return nil
	}
	plan := q.Plan()
	plan.Strategies, plan.Rounds = nil, 1
	for _, c := range wanted.all {
		plan.Strategies = append(plan.Strategies, c.variant)
	}
	fit := int((left - startUp) / plan.Expected())
	if lost == 0 {
		lost = q.Rounds
	}
	if plan.Rounds = min(lost, fit); plan.Rounds < 1 {
		return nil
	}
	if plan.Workload.Seed != 0 {
		plan.Workload.Seed += int64(lastRound(report)) // shuffles the order of the locks differently
	}
	return &plan
}

// lastRound returns the highest round number in a report; 0 if the report has no runs.
func lastRound(r *results.Report) (last int) {
	for _, run := range r.Runs {
		last = max(last, run.Round)
	}
	return last
}

// join appends the runs of the second report, which contains further rounds, to the first report. The numbers of these
// rounds continue after the last round of the first report.
func join(report, more *results.Report) {
	if more == nil {
		return
	}
	before := lastRound(report)
	for _, run := range more.Runs {
		run.Round += before
		report.Runs = append(report.Runs, run)
	}
	report.LeftOut = append(report.LeftOut, more.LeftOut...)
}

// advise derives the advice from a report. If report is nil, because nothing could be measured, the advice has no
// ranking and no choice.
func (q Question) advise(report *results.Report) *Document {
	_, out := q.candidates()
	a := &Document{
		Head: document.Begin(schema), For: q.For, Language: q.Language, Workload: q.Workload, Rounds: q.Rounds,
		Saturated: q.saturation(), Ranking: []Row{}, LeftOut: out, Command: q.Command(),
	}
	if !q.showsWaits() {
		a.Notes = append(a.Notes, results.ShortWindows.Remark(q.Workload.Duration, q.round()))
	}
	if report == nil {
		return a
	}
	a.Environment, a.Redis, a.LeftOut = report.Environment, report.Redis, slices.Concat(out, report.LeftOut)
	for _, run := range report.Runs {
		if len(run.Safety.Broken) > 0 {
			a.Broken = append(a.Broken, run.Strategy)
		}
	}
	summaries := report.Summaries()
	for _, f := range findings.Of(summaries) {
		if f.Advice {
			note := f.Remark
			if note.Text = f.Text; len(f.Strategies) > 0 {
				note.Text = words.And(f.Strategies) + ": " + f.Text
			}
			a.Notes = append(a.Notes, note)
		}
	}
	lead, unfit := q.standing(summaries)
	for _, c := range lead.ranking {
		a.Ranking = append(a.Ranking, q.row(c, lead.ranking[0]))
	}
	for _, c := range unfit {
		a.Ranking = append(a.Ranking, q.row(c, c))
	}
	a.Choice, a.Undecided = q.choice(lead)
	return a
}

// choice returns the recommendation: the first lock of the ranking, or an alternative to a lock. If the rounds do not
// decide between several locks, it returns an Undecided instead. The recommendation is also nil if no strategy
// qualifies.
func (q Question) choice(lead leaders) (*Choice, *Undecided) {
	c, ranking, undecided := &Choice{}, lead.ranking, q.undecided(lead)
	switch {
	case len(ranking) == 0 && q.For == Correctness, q.tokenless():
		c.Name, c.Summary = ConsensusStore, "such as etcd or ZooKeeper: no lock in Redis survives every failover"
		c.RightIf = "the protected resource cannot check fencing tokens, or no measured lock has tokens"
	case len(ranking) == 0:
		return nil, undecided
	case !slices.ContainsFunc(ranking, func(c contender) bool { return !overloaded(c) }):
		c.Name = NoLock
		c.Summary = "no lock keeps up with the arrivals: split the resource into more keys, or do without a lock"
		c.RightIf = "the service has as many arrivals as described"
	case undecided != nil:
		return nil, undecided
	case q.oneCommand(ranking[0].info):
		c.Name, c.Summary = NoLock, "one command or Lua script does the work atomically"
		c.RightIf = "the whole work of a holder fits into one command or script"
	default:
		q.lock(c, ranking)
		c.Tied = q.equals(lead)
	}
	return c, nil
}

// lock fills in the choice c from the first lock of the ranking. It adds the second lock as the alternative, if the
// second lock is by another author and keeps up with the arrivals.
func (q Question) lock(c *Choice, ranking []contender) {
	first := ranking[0]
	c.Name, c.Summary, c.Take = first.Name, first.info.Summary, q.take(first)
	c.RightIf = "two holders at once only waste work, and the contention is as described"
	if q.For == Correctness {
		c.RightIf = "the protected resource keeps the highest fencing token, and refuses reads and writes with a lower one"
	}
	if len(ranking) > 1 && q.author(ranking[1]) != q.author(first) && !overloaded(ranking[1]) {
		c.Beside = &Beside{ranking[1].Name, q.take(ranking[1]), q.row(ranking[1], first).why(first.Name)}
	}
}

// ours is the prefix of the import paths of lockbench's own locks.
const ours = "github.com/lockbench/lockbench"

// author returns the author of a lock: the library that implements it, lockbench's module for lockbench's own locks, or
// the lock's package. The author of a lock behind a mutex (gated) is that of the lock itself.
func (q Question) author(c contender) string {
	switch l := q.library(c.info); {
	case l != nil:
		return l.Package
	case strings.HasPrefix(c.info.Package, ours+"/"):
		return ours
	}
	return c.info.Package
}

// take returns the package or library that a program must import to use a lock.
func (q Question) take(c contender) string {
	text, l := c.info.Package+" (Go)", q.users(c.info)
	switch {
	case gated(c.info):
		return ours + "/strategies/gated around " + text
	case l == nil && c.info.Nodes == 0 && q.Language != "" && q.Language != "go":
		return "a mutex of the process"
	case l == nil && strings.HasPrefix(text, ours):
		return text + "; lockbench knows of no other library with this lock"
	case l == nil:
		return text
	case l.Language == "Go" || c.info.Driver:
		return l.String()
	case q.Language != "":
		return l.String() + "; lockbench measured its own copy in Go"
	}
	return l.String() + ", or the same lock in " + text
}

// overloaded reports whether, in more than half of its valid runs, a lock was too slow for the arrivals of an open
// loop.
func overloaded(c contender) bool {
	late := 0
	for _, run := range c.Used {
		if run.Overloaded() {
			late++
		}
	}
	return late*2 > len(c.Used)
}

// contender is a measured strategy, with its figures and its claims.
type contender struct {
	results.Summary
	variant strategies.Variant
	info    strategies.Info
	order   int // index among the candidates
}

// figure returns the contender's figure of the named metric over all its rounds. The Value of the figure is nil if it
// is not known.
func (c contender) figure(name string) document.Figure {
	m, _ := results.FindMetric(name)
	return document.Figure{Metric: name, Unit: m.Unit, Value: c.Figure(m)}
}

// showsWaits reports whether the window is at least as long as q.round(), so that waits of the expected length end
// within the window.
func (q Question) showsWaits() bool { return time.Duration(q.Workload.Duration) >= q.round() }

// unfit returns the reason why a contender must not be recommended, from its claims or its figures. It returns "" if
// there is no such reason.
func (q Question) unfit(c contender) string {
	wrong, served, failures := c.figure("violations"), c.figure("served_per_s"), c.figure("errors")
	if q.oneCommand(c.info) { // an atomic command needs no exclusion
		wrong = c.figure("lost_updates")
	}
	switch {
	case q.unsafe(c.info) != "":
		return q.unsafe(c.info)
	case wrong.Value == nil || wrong.Value.Value > 0:
		return wrong.Metric + ": " + wrong.Value.Text(wrong.Unit)
	case c.Invalid:
		return untrusted(c)
	case failures.Value != nil && failures.Value.Value > 0:
		return "errors: " + failures.Value.Text(failures.Unit)
	case served.Value == nil || served.Value.Value == 0:
		return "it served no client"
	}
	return ""
}

// untrusted returns the reason for not recommending a contender that has no valid run. The text quotes the reason why
// the contender's first run is invalid.
func untrusted(c contender) string {
	return fmt.Sprintf("none of its %d runs is valid: %s", len(c.Runs), c.Runs[0].Invalid)
}

// standing ranks the measured candidates that can be recommended, and returns all others as unfit. An unfit contender
// without a valid run is also in lead.lost, because new rounds may show that it is the best.
func (q Question) standing(summaries []results.Summary) (lead leaders, unfit []contender) {
	candidates, _ := q.candidates()
	var field, lost []contender
	for _, s := range summaries {
		at := slices.IndexFunc(candidates, func(v strategies.Variant) bool { return v.Name() == s.Name })
		if at < 0 {
			continue
		}
		c := contender{Summary: s, variant: candidates[at], info: candidates[at].Info(), order: at}
		switch why := q.unfit(c); {
		case why == "":
			field = append(field, c)
		case why == untrusted(c):
			lost = append(lost, c)
			fallthrough
		default:
			unfit = append(unfit, c)
		}
	}
	lead = q.lead(field)
	lead.lost = lost
	return lead, unfit
}

// row returns the row of the contender c in the ranking, which compares c with first.
func (q Question) row(c, first contender) Row {
	row := Row{
		Name: c.Name, Claims: c.info.Claims.List(), Verdict: c.Verdict(), Unfit: q.unfit(c), Rounds: len(c.Used),
	}
	if l := q.users(c.info); l != nil {
		row.Library = l.String()
	}
	for _, by := range q.criteria() {
		figure := Figure{Figure: document.Figure{Metric: by.metric, Value: c.starving()}}
		if by.metric != without {
			figure.Figure = c.figure(by.metric)
		}
		if c.Name != first.Name {
			d := q.duel(by, first, c)
			figure.Ratio = d.ratio
			if row.Behind == "" && row.Open == "" {
				switch d.is {
				case better:
					row.Behind, row.Why = by.metric, d.text
				case open:
					row.Open, row.Why = by.metric, d.text
				case equal, worse:
				}
			}
		}
		row.Figures = append(row.Figures, figure)
	}
	for _, name := range []string{"redis_cpu", "commands_per_acq", "violations"} {
		row.Figures = append(row.Figures, Figure{Figure: c.figure(name)})
	}
	return row
}
