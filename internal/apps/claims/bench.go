package claims

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
)

// Bench runs the command lines of claims and judges the claims.
type Bench struct {
	// Plan parses the command line of a run, as lockbench does. It returns an error for options that a claim must not set.
	Plan func(words []string) (lockbench.Plan, error)
	// Redis contains the Address, CAFile and Image of the servers. A claim that needs other servers is inconclusive.
	Redis lockbench.StoreOptions
	// Run measures a plan; usually lockbench.Run.
	Run func(context.Context, lockbench.Plan) (*results.Report, error)
	// Generators runs a command line in n processes on one Redis at the same time, and merges their reports.
	Generators func(ctx context.Context, words []string, n int, redis lockbench.StoreOptions) (*results.Report, error)
	// Say reports progress; nil reports none.
	Say func(format string, args ...any)
	// Ended, if not nil, is called after each verdict with the document of all claims judged so far.
	Ended func(*Document)

	done map[string]*measured // by command line
}

// measured is the result of running a command line. It is nil if the command line did not run.
type measured struct {
	again  bool // this is the second attempt
	report *results.Report
	err    error
}

// plan returns the plan that the run's command line describes, with the claim's number of rounds and without baselines.
func (b *Bench) plan(c Claim, run Run) (lockbench.Plan, error) {
	plan, err := b.Plan(strings.Fields(run.Line))
	plan.Rounds, plan.Baselines = c.Rounds, false
	return plan, err
}

// Check returns all errors in the claims' command lines, joined. A figure that names a strategy which is not in the run
// is also an error.
func (b *Bench) Check(all []Claim) error {
	var problems []error
	for _, c := range all {
		for _, run := range c.Runs {
			plan, err := b.plan(c, run)
			if err == nil {
				_, err = resolveTitles(c.operands(run, false), plan.Titles())
			}
			if err == nil {
				continue
			}
			for line := range strings.Lines(err.Error()) {
				problems = append(problems, fmt.Errorf("%s: %s: %s", c.File, run.Name, strings.TrimSpace(line)))
			}
		}
	}
	return errors.Join(problems...)
}

// Expected returns the approximate time that testing the claims takes. Runs that several claims share count once.
func (b *Bench) Expected(all []Claim) time.Duration {
	var total time.Duration
	seen := map[string]bool{}
	for _, c := range all {
		for _, run := range c.Runs {
			command := c.Command(run)
			plan, err := b.plan(c, run)
			if err != nil || seen[command] {
				continue
			}
			seen[command] = true
			plan.Generators.Number = c.Generators
			total += plan.Expected()
		}
	}
	return total
}

// Test runs the command lines of each claim and judges the claim. It runs a command line that several claims share only
// once. When ctx ends, it leaves out the remaining claims and the document is Interrupted. If Redis cannot be reached,
// Test returns an error, and the last claim in the document is the claim whose run failed.
func (b *Bench) Test(ctx context.Context, all []Claim) (*Document, error) {
	document := &Document{Head: document.Begin(schema), Claims: []Result{}}
	b.done = map[string]*measured{}
	var failure error
	for i, c := range all {
		b.say("[%d/%d] %s: %s", i+1, len(all), c.Name(), c.Says)
		runs := map[string]*measured{}
		for _, run := range c.Runs {
			m := b.measure(ctx, c, run)
			runs[run.Name] = m
			if document.Redis.Source == "" && m.report != nil {
				document.Redis, document.Environment = m.report.Redis, m.report.Environment
			}
			if errors.Is(m.err, lockbench.ErrUnreachable) {
				failure = m.err
			}
			if failure != nil || ctx.Err() != nil {
				break
			}
		}
		if ctx.Err() != nil {
			document.Interrupted = true
			break
		}
		if document.Claims = append(document.Claims, c.judge(runs)); failure != nil {
			break
		}
		if b.Ended != nil {
			soFar := *document
			soFar.Claims, soFar.Finished = slices.Clone(document.Claims), time.Now()
			b.Ended(&soFar)
		}
	}
	document.Finished = time.Now()
	return document, failure
}

func (b *Bench) measure(ctx context.Context, c Claim, run Run) *measured {
	line := c.Command(run)
	m, there := b.done[line]
	if !there {
		m = b.once(ctx, c, run)
	}
	strict := len(c.operands(run, true)) > 0
	// An invalid run is due to the machine and not to the run's figures, so a second attempt favours no verdict.
	if strict && m.invalid() && !m.again && m.err == nil && ctx.Err() == nil {
		b.say("invalid runs, second attempt: %s", line)
		m = b.once(ctx, c, run)
		m.again = true
	}
	b.done[line] = m
	return m
}

func (b *Bench) once(ctx context.Context, c Claim, run Run) *measured {
	plan, err := b.plan(c, run)
	if err != nil {
		return &measured{err: err}
	}
	m := &measured{}
	at := b.Redis
	// A claim can set only these options of the servers. The user sets all other options.
	at.Topology, at.Durability = plan.Redis.Topology, plan.Redis.Durability
	plan.Redis = at
	if c.Generators > 0 {
		m.report, m.err = b.Generators(ctx, c.Words(run), c.Generators, plan.Redis)
	} else {
		m.report, m.err = b.Run(ctx, plan)
	}
	return m
}

func (b *Bench) say(format string, args ...any) {
	if b.Say != nil {
		b.Say(format, args...)
	}
}

// runs returns the runs of the report; nil if nothing was measured.
func (m *measured) runs() []results.Run {
	if m == nil || m.report == nil {
		return nil
	}
	return m.report.Runs
}

// invalid reports whether any run is invalid.
func (m *measured) invalid() bool {
	return slices.ContainsFunc(m.runs(), func(r results.Run) bool { return !r.Valid() })
}

// titles returns the distinct titles of the runs in the report, sorted.
func (m *measured) titles() []string {
	var all []string
	for _, run := range m.runs() {
		all = append(all, run.Title())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// resolveTitles returns the titles of the strategies that the operands name. It returns an error for the first operand
// that does not name exactly one strategy.
func resolveTitles(operands []operand, titles []string) (used map[string]bool, failure error) {
	used = map[string]bool{}
	for _, o := range operands {
		for _, title := range o.titles {
			found, err := titled(title, titles)
			if err != nil && failure == nil {
				failure = err
			}
			used[found] = true
		}
	}
	return used, failure
}

// lacks reports whether a strategy that the operands name has fewer runs than the given number of rounds.
func (m *measured) lacks(operands []operand, rounds int) bool {
	used, _ := resolveTitles(operands, m.titles())
	for title := range used {
		there := 0
		for _, run := range m.runs() {
			if run.Title() == title {
				there++
			}
		}
		if there < rounds {
			return true
		}
	}
	return false
}

// shown returns the figures of every strategy in the report, for the metrics in names. It returns nil if names is empty
// or nothing was measured.
func (m *measured) shown(names []Text) *Shown {
	if len(names) == 0 || len(m.runs()) == 0 {
		return nil
	}
	s := &Shown{Runs: len(m.runs()), Strategies: []ShownStrategy{}}
	for _, run := range m.runs() {
		if !run.Complete() {
			s.LeftOut++
		}
		if run.MachineBound() {
			s.MachineBound++
		}
	}
	for _, summary := range m.report.Summaries() {
		one := ShownStrategy{Name: summary.Title()}
		for _, name := range names {
			metric, _ := results.FindMetric(string(name)) // Parse has rejected unknown metrics
			f := document.Figure{Metric: metric.Name, Unit: metric.Unit}
			if !summary.Invalid {
				f.Value = summary.Figure(metric)
			}
			one.Figures = append(one.Figures, f)
		}
		s.Strategies = append(s.Strategies, one)
	}
	return s
}
