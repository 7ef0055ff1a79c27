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

// Bench carries command lines out.
type Bench struct {
	// Plan reads the words behind the program's name, as its command line does.
	Plan func(words []string) (lockbench.Plan, error)
	// Redis is where to measure: its Address, CAFile and Image. A claim that needs
	// other servers than these is inconclusive.
	Redis lockbench.StoreOptions
	// Run measures a plan; lockbench.Run.
	Run func(context.Context, lockbench.Plan) (*results.Report, error)
	// Generators has so many processes carry a command line out on one Redis at the same
	// time, and merges their reports.
	Generators func(ctx context.Context, words []string, processes int, redis lockbench.StoreOptions) (*results.Report, error)
	// Say tells what is being done; may be nil.
	Say func(format string, args ...any)

	done map[string]*measured // by command line
}

// measured is what a command line came to.
type measured struct {
	again  bool // for a claim that looks at every round
	report *results.Report
	err    error
}

// Check names every error in the claims' command lines, and in what is expected
// of them, with file and line.
func (b *Bench) Check(all []Claim) error {
	var problems []error
	for _, c := range all {
		for _, run := range c.Runs {
			plan, err := b.Plan(c.Words(run))
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

// shareable names what several processes cannot carry out together.
func shareable(plan lockbench.Plan) error {
	plan.Session, plan.Redis.Address, plan.Start = "together", "redis://localhost", time.Now()
	return plan.Validate()
}

// Expected is about how long the claims will take, runs that they share once.
func (b *Bench) Expected(all []Claim) time.Duration {
	var total time.Duration
	seen := map[string]bool{}
	for _, c := range all {
		for _, run := range c.Runs {
			command := c.Command(run)
			if plan, err := b.Plan(c.Words(run)); err == nil && !seen[command] {
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

// Test measures what each claim needs, and gives the verdicts. Command lines that
// claims share are carried out once. When ctx ends the claims not yet judged are
// left out and the document says Interrupted. The error is of having no Redis;
// the document then ends with the claim that met it.
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
		m = b.once(ctx, c.Words(run), run.Generators)
	}
	// What cannot be trusted is so because of the machine, whatever the figures are:
	// a second attempt favours no verdict.
	if m.invalid() && !m.again && m.err == nil && ctx.Err() == nil && c.strict(run) {
		b.say("figures that cannot be trusted, once more: %s", line)
		m = b.once(ctx, c.Words(run), run.Generators)
		m.again = true
	}
	if !c.strict(run) {
		b.sayLeftOut(run, m)
	}
	b.done[line] = m
	return m
}

// sayLeftOut tells why no figure is made of some of a run, which the document only counts.
func (b *Bench) sayLeftOut(run Run, m *measured) {
	if m.report == nil {
		return
	}
	for _, r := range m.report.Runs {
		if r.Valid() {
			continue
		}
		more := ""
		if others := len(r.Invalid) - 1; others > 0 { // of other processes, most often
			more = fmt.Sprintf("; and %d reasons more", others)
		}
		b.say("left out, %s: %s in round %d: %s%s", run.Name, title(r.Strategy, r.Point), r.Round, r.Invalid[0], more)
	}
}

func (b *Bench) once(ctx context.Context, words []string, generators int) *measured {
	m := &measured{}
	plan, err := b.Plan(words)
	if err == nil {
		plan.Redis.Address, plan.Redis.CAFile, plan.Redis.Image = b.Redis.Address, b.Redis.CAFile, b.Redis.Image
		if generators > 0 {
			m.report, err = b.Generators(ctx, words, generators, plan.Redis)
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
