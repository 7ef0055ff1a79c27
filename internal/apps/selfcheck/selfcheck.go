// Package selfcheck tests the harness on this machine. Each check runs the real engine on a case with a known result.
package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Options select the checks and the server.
type Options struct {
	Redis    lockbench.StoreOptions // Redis has the address, certificates, password and image of one node
	Only     []string               // names of checks; empty means all
	Effort   Effort
	Progress func(what string) // may be nil

	// Change alters every job before it runs. Only tests set it, to plant faults.
	Change func(engine.Job) engine.Job
}

// Effort determines how long the checks take.
type Effort struct {
	Stalled time.Duration // window of the run in which the server stalls for a tenth of the window
	Window  time.Duration // window of the other runs
}

// Full returns the effort of the selfcheck command, which takes about half a minute.
func Full() Effort { return Effort{Stalled: 10 * time.Second, Window: 2 * time.Second} }

// checks lists all checks in the order in which Run runs them.
var checks = []struct {
	name, shows string
	run         func(*session, context.Context, *Check) error
}{
	{"omission", "a stall of the server shows in the percentiles of an open loop", (*session).omission},
	{"holds", "holds have the requested length, and the records match the lock's own clock", (*session).holds},
	{"audit", "the audit counts every overlap of two holders", (*session).audit},
	{"outside", "the report agrees with a second reader of INFO", (*session).outside},
}

// Names returns the names of all checks, in the order in which Run runs them.
func Names() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// Validate returns all errors that can be found without a server, joined.
func (o Options) Validate() error {
	problems := []error{o.Redis.Validate()}
	for _, name := range o.Only {
		if !slices.Contains(Names(), name) {
			known := strings.Join(Names(), ", ")
			problems = append(problems, fmt.Errorf("--only: there is no check %q (checks: %s)", name, known))
		}
	}
	return errors.Join(problems...)
}

// session is the state of a running selfcheck. runs counts its jobs, whose numbers must differ.
type session struct {
	Options
	id     string
	server *servers.Server
	runs   int
}

// Run runs the checks one after the other. A check that cannot run is inconclusive. When ctx ends, Run leaves out the
// remaining checks. It returns an error only if Redis cannot be reached or closed.
func Run(ctx context.Context, options Options) (*Document, error) {
	s := &session{Options: options, id: store.NewRunID()}
	d := &Document{Head: document.Begin(schema), Checks: []Check{}}
	s.say("start")
	server, err := redis.Open(ctx, s.id, store.Options{
		Address: s.Redis.Address, Topology: "single", CAFile: s.Redis.CAFile, Image: s.Redis.Image,
		CertFile: s.Redis.CertFile, KeyFile: s.Redis.KeyFile, Password: s.Redis.Password,
	})
	if err != nil {
		return nil, err
	}
	s.server = server
	d.Redis, d.Environment = server.Describe(), measure.Environment()
	for _, c := range checks {
		if len(s.Only) > 0 && !slices.Contains(s.Only, c.name) {
			continue
		}
		under := &Check{Name: c.name, Shows: c.shows}
		began := time.Now()
		err := c.run(s, ctx, under)
		if ctx.Err() != nil {
			d.Interrupted = true
			break
		}
		if err != nil {
			under.unsure("%v", err)
		}
		under.Seconds = time.Since(began).Seconds()
		under.conclude()
		d.Checks = append(d.Checks, *under)
	}
	d.Finished = time.Now()
	return d, server.Close(context.WithoutCancel(ctx))
}

func (s *session) say(what string) {
	if s.Progress != nil {
		s.Progress(what)
	}
}

// workload returns the default workload without warm-up, with this window and these numbers of clients and instances.
// The checks change it further.
func workload(clients, instances int, window time.Duration) workloads.Spec {
	w := workloads.Default()
	w.Clients, w.Instances = clients, instances
	w.Warmup, w.Duration = 0, workloads.Duration(window)
	return w
}

// job returns the job of one run of a strategy on the server of the selfcheck.
func (s *session) job(v strategies.Variant, w workloads.Spec) engine.Job {
	s.runs++
	return engine.Job{Strategy: v, Workload: w, Target: s.server, Session: s.id, Number: s.runs, Round: 1, Order: 1}
}

// do reports the progress and runs a job, which Options.Change may alter first. It returns an error if the job cannot
// run at all.
func (s *session) do(ctx context.Context, what string, job engine.Job) (*results.Run, error) {
	s.say(what)
	if s.Change != nil {
		job = s.Change(job)
	}
	run, err := job.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", job.Strategy.Name(), err)
	}
	return run, nil
}

// contender returns the Redis lock that the checks use.
func contender() (strategies.Variant, error) { return strategies.NewVariant("pubsub", nil) }

func near(x, want, within float64) bool { return math.Abs(x-want) <= within }

// value returns a figure as a number, or NaN if the figure is not known. want turns NaN into an inconclusive verdict.
func value[T int | int64 | float64](x *T) float64 {
	if x == nil {
		return math.NaN()
	}
	return float64(*x)
}

func bound(b *results.Bound) float64 {
	if b == nil {
		return math.NaN()
	}
	return float64(b.NS)
}

// schema is the name and the version of the JSON format of a Document.
const schema = "lockbench/selfcheck/1"

// Document is the result of a selfcheck on one machine.
type Document struct {
	document.Head
	Checks      []Check `json:"checks"`
	Interrupted bool    `json:"interrupted,omitempty"` // the user interrupted it, so checks are missing
}

// Check is the verdict of one check, with the figures that it measured.
type Check struct {
	Name     string          `json:"name"`
	Shows    string          `json:"shows"` // what a pass shows, one line
	Verdict  results.Verdict `json:"verdict"`
	Why      []string        `json:"why,omitempty"` // reasons why it is inconclusive
	Seconds  float64         `json:"seconds"`
	Measured []Measure       `json:"measured"`
}

// Measure is one value that a check has measured, the limit that the value must meet, and whether it does.
type Measure struct {
	Name    string          `json:"name"`
	Value   *float64        `json:"value"` // nil if not known
	Unit    results.Unit    `json:"unit"`
	Wanted  string          `json:"wanted,omitempty"`  // "" if there is no requirement
	Verdict results.Verdict `json:"verdict,omitempty"` // "" if there is no requirement
}

// The verdicts on a figure and on a check. Inconclusive means that the check could not run, or that the machine was too
// busy for a result.
const (
	Pass         results.Verdict = "pass"
	Fail         results.Verdict = "fail"
	Inconclusive                 = results.Inconclusive
)

// With returns the names of the checks with this verdict.
func (d *Document) With(v results.Verdict) []string {
	var names []string
	for _, c := range d.Checks {
		if c.Verdict == v {
			names = append(names, c.Name)
		}
	}
	return names
}

// inform adds a figure without a requirement.
func (c *Check) inform(name string, value float64, unit results.Unit) {
	c.add("", name, value, unit, "")
}

// want adds a figure with a requirement. ok is true if the figure meets the requirement, which wanted describes.
func (c *Check) want(ok bool, name string, value float64, unit results.Unit, wanted string, args ...any) {
	verdict := Fail
	switch {
	case math.IsNaN(value):
		verdict = Inconclusive
	case ok:
		verdict = Pass
	}
	c.add(verdict, name, value, unit, wanted, args...)
}

// count is like want, but for a figure without a unit.
func (c *Check) count(ok bool, name string, value float64, wanted string, args ...any) {
	c.want(ok, name, value, results.Number, wanted, args...)
}

// wantIfUndisturbed is like want, for a figure that other processes on the machine may distort. If the figure does not
// meet the requirement, the check is inconclusive and does not fail.
func (c *Check) wantIfUndisturbed(ok bool, name string, value float64, unit results.Unit, wanted string, args ...any) {
	verdict := Inconclusive
	if ok {
		verdict = Pass
	}
	c.add(verdict, name, value, unit, wanted, args...)
}

func (c *Check) add(
	verdict results.Verdict, name string, value float64, unit results.Unit, wanted string, args ...any,
) {
	m := Measure{Name: name, Unit: unit, Wanted: fmt.Sprintf(wanted, args...), Verdict: verdict}
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		m.Value = &value
	}
	c.Measured = append(c.Measured, m)
}

func (c *Check) unsure(format string, args ...any) {
	c.Why = append(c.Why, fmt.Sprintf(format, args...))
}

// conclude sets the verdict of the check. One failed figure makes the check fail; otherwise a reason in Why or an
// inconclusive figure makes the check inconclusive.
func (c *Check) conclude() {
	c.Verdict = Pass
	if len(c.Why) > 0 || len(c.Measured) == 0 {
		c.Verdict = Inconclusive
	}
	for _, m := range c.Measured {
		switch {
		case m.Verdict == Fail:
			c.Verdict = Fail
		case m.Verdict == Inconclusive && c.Verdict == Pass:
			c.Verdict = Inconclusive
		}
	}
}

// Lay writes the document as text. For each check it writes the verdict, what a pass shows, and each figure with its
// requirement.
func (d *Document) Lay(p *layout.Page) {
	fmt.Fprintln(p, d.Setup())
	for _, c := range d.Checks {
		fmt.Fprintf(p, "\n%s  %s  %s (%.0f s)\n", p.Bold(c.Name), painted(c.Verdict, p.Paint), c.Shows, c.Seconds)
		for _, why := range c.Why {
			p.Remark("! ", why)
		}
		var rows [][]string
		for _, m := range c.Measured {
			value, fault := results.NotKnown, map[results.Verdict]string{Fail: "FAIL", Inconclusive: "inconclusive"}[m.Verdict]
			if m.Value != nil {
				value = m.Unit.Signed(*m.Value)
			}
			rows = append(rows, []string{m.Name, value, m.Wanted, fault})
		}
		p.Columns("  ", rows)
	}
	if d.Interrupted {
		fmt.Fprintln(p, "\ninterrupted: checks are missing")
	}
}

func painted(v results.Verdict, p layout.Paint) string {
	switch v {
	case Pass:
		return p.Green(string(v))
	case Fail:
		return p.Red(strings.ToUpper(string(v)))
	}
	return p.Yellow(string(v))
}
