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

// Bench carries out command lines.
type Bench struct {
	// Plan parses the words of a claim's line as the program's command line does, and refuses what a claim
	// may not choose.
	Plan func(words []string) (lockbench.Plan, error)
	// Redis is where to measure: its Address, CAFile and Image. A claim that needs other servers is
	// inconclusive.
	Redis lockbench.StoreOptions
	// Run measures a plan; usually lockbench.Run.
	Run func(context.Context, lockbench.Plan) (*results.Report, error)
	// Generators runs a command line in several processes on one Redis at the same time, and merges their
	// reports.
	Generators func(ctx context.Context, words []string, processes int, redis lockbench.StoreOptions) (*results.Report, error)
	// Say reports progress; may be nil.
	Say func(format string, args ...any)

	done map[string]*measured // by command line
}

// measured is the result of a command line.
type measured struct {
	again  bool // measured twice, for a claim that uses every round
	report *results.Report
	err    error
}

// Check returns all errors in the claims' command lines, and in their expectations, with file and line.
func (b *Bench) Check(all []Claim) error {
	var problems []error
	for _, c := range all {
		for _, run := range c.Runs {
			plan, err := b.plan(c, run)
			if err == nil && run.Generators > 0 {
				err = shareable(plan)
			}
			if err != nil {
				for line := range strings.Lines(err.Error()) {
					problems = append(problems, fmt.Errorf("%s:%d: %s: %s", c.File, run.line, run.Name, strings.TrimSpace(line)))
				}
				continue
			}
			for _, e := range c.expect {
				for _, o := range e.Figure.operands {
					if o.run != run.Name {
						continue
					}
					for _, title := range o.titles {
						if _, err := o.titled(title, plan.Titles()); err != nil {
							problems = append(problems, fmt.Errorf("%s:%d: %s: %w", c.File, e.line, e.Figure.Text, err))
						}
					}
				}
			}
		}
	}
	return errors.Join(problems...)
}

// shareable returns an error if several processes cannot run the plan together.
func shareable(plan lockbench.Plan) error {
	plan.Session, plan.Redis.Address, plan.Start = "together", "redis://localhost", time.Now()
	return plan.Validate()
}

// Expected is the approximate time of the claims; shared runs count once.
func (b *Bench) Expected(all []Claim) time.Duration {
	var total time.Duration
	seen := map[string]bool{}
	for _, c := range all {
		for _, run := range c.Runs {
			command := c.Command(run)
			if plan, err := b.plan(c, run); err == nil && !seen[command] {
				seen[command] = true
				if run.Generators > 0 { // their runs begin at fixed times
					plan.Start = time.Now()
				}
				total += plan.Expected()
			}
		}
	}
	return total
}

// Test measures what each claim needs and gives the verdicts. It carries out shared command lines once. When
// ctx ends, it leaves out the remaining claims and the document is Interrupted. The error means
// that there is no Redis; then the document ends with the claim that found this.
func (b *Bench) Test(ctx context.Context, all []Claim) (*Document, error) {
	document := &Document{Head: document.Begin(schema), Claims: []Result{}}
	b.done = map[string]*measured{}
	var failure error
	for i, c := range all {
		b.say("[%d/%d] %s: %s", i+1, len(all), c.Name(), c.Says)
		reports := map[string]*measured{}
		for _, run := range c.Runs {
			reports[run.Name] = b.measure(ctx, c, run)
			if document.Redis.Source == "" && reports[run.Name].report != nil {
				document.Redis, document.Environment = reports[run.Name].report.Redis, reports[run.Name].report.Environment
			}
			if err := reports[run.Name].err; errors.Is(err, lockbench.ErrUnreachable) {
				failure = err
			}
			if failure != nil || ctx.Err() != nil {
				break
			}
		}
		if ctx.Err() != nil {
			document.Interrupted = true
			break
		}
		document.Claims = append(document.Claims, c.judge(reports))
		if failure != nil {
			break
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
	// Whether figures can be trusted depends on the machine, not on the figures: a second attempt
	// favours no verdict.
	if m.invalid() && !m.again && m.err == nil && ctx.Err() == nil && c.strict(run) {
		b.say("figures that cannot be trusted, once more: %s", line)
		m = b.once(ctx, c, run)
		m.again = true
	}
	if !c.strict(run) {
		b.sayLeftOut(run, m)
	}
	b.done[line] = m
	return m
}

// sayLeftOut says why runs are left out; the document only counts them.
func (b *Bench) sayLeftOut(run Run, m *measured) {
	if m.report == nil {
		return
	}
	for _, r := range m.report.Runs {
		if r.Valid() {
			continue
		}
		b.say("left out, %s: %s in round %d: %s", run.Name, r.Title(), r.Round, strings.Join(r.Invalid, "; "))
	}
}

// plan returns a run's plan: what its line asks for, and what the experiment adds.
func (b *Bench) plan(c Claim, run Run) (lockbench.Plan, error) {
	plan, err := b.Plan(strings.Fields(run.Line))
	plan.Rounds, plan.Baselines = c.Rounds, false
	return plan, err
}

func (b *Bench) once(ctx context.Context, c Claim, run Run) *measured {
	m := &measured{}
	plan, err := b.plan(c, run)
	if err == nil {
		plan.Redis.Address, plan.Redis.CAFile, plan.Redis.Image = b.Redis.Address, b.Redis.CAFile, b.Redis.Image
		if run.Generators > 0 {
			m.report, err = b.Generators(ctx, c.Words(run), run.Generators, plan.Redis)
		} else {
			m.report, err = b.Run(ctx, plan)
		}
	}
	m.err = err
	return m
}

// invalid says whether some of its figures cannot be trusted.
func (m *measured) invalid() bool {
	return m.report != nil && slices.ContainsFunc(m.report.Runs, func(r results.Run) bool { return !r.Valid() })
}

func (b *Bench) say(format string, args ...any) {
	if b.Say != nil {
		b.Say(format, args...)
	}
}

// shown returns the figures of a run that the claim shows; nil if it shows none, or the run has no report.
func (c Claim) shown(m *measured) *Shown {
	if len(c.Shows) == 0 || m == nil || m.report == nil {
		return nil
	}
	s := &Shown{Runs: len(m.report.Runs), Strategies: []ShownStrategy{}}
	for _, run := range m.report.Runs {
		if !run.Complete() {
			s.LeftOut++
		}
		if run.MachineBound() {
			s.MachineBound++
		}
	}
	for _, summary := range m.report.Summaries() {
		one := ShownStrategy{Name: summary.Title()}
		for _, metric := range c.Shows {
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
