// Package check runs the conformance suite with a lock on servers that it starts, and reports the verdict of each
// check.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// schema is the name and the version of the JSON format of a Document.
const schema = "lockbench/check/1"

// Document reports the verdict of each check on one lock.
type Document struct {
	document.Head
	Strategy    string   `json:"strategy"`
	Lock        string   `json:"lock"` // the summary of the strategy
	Claims      []string `json:"claims"`
	Keeps       []string `json:"keeps,omitempty"` // keys that the strategy leaves in Redis, as it declares
	Checks      []Result `json:"checks"`
	Interrupted bool     `json:"interrupted,omitempty"`
}

// Result is the verdict of one check. If the lock failed, it contains the promises that the lock broke. If there is no
// verdict on the lock, it contains the reason.
type Result struct {
	Check    string           `json:"check"`
	Proves   string           `json:"proves"` // what a pass proves
	Verdict  locktest.Verdict `json:"outcome"`
	Because  string           `json:"because,omitempty"`
	Failures []Failure        `json:"failures,omitempty"`
	Seconds  float64          `json:"seconds"`
}

// Failure is a promise that the lock broke, and the observation that shows it.
type Failure struct {
	Promise string `json:"promise"`
	Seen    string `json:"seen"`
}

// Options select the lock to test and the checks to run.
type Options struct {
	Strategy strategies.Variant
	Only     []string // names of checks; none means all
	Progress func(check string)
}

// Validate returns all errors in the options, joined.
func (o Options) Validate() error {
	var problems []error
	for _, name := range o.Only {
		if !slices.ContainsFunc(locktest.Checks(), func(c locktest.Check) bool { return c.Name == name }) {
			problems = append(problems, fmt.Errorf("--only: there is no check %q", name))
		}
	}
	if info := o.Strategy.Info(); info.Store != "" {
		problems = append(problems,
			fmt.Errorf("%s needs %s, but the suite starts only Redis servers", info.Name, info.Store))
	}
	return errors.Join(problems...)
}

// atOnce is the number of checks that run at the same time. A check spends most of its time waiting.
const atOnce = 4

// longest is the time limit for one check. A check that takes longer gives no verdict on the lock.
const longest = time.Minute

// NotRun is the verdict of a check that did not begin or did not finish, because the user interrupted the suite.
const NotRun locktest.Verdict = "not run"

// Run runs the checks, at most atOnce of them at the same time, each on new servers. When ctx ends, it returns the
// results so far. It returns an error only if servers cannot be started and no check could judge the lock.
func Run(ctx context.Context, o Options) (*Document, error) {
	info := o.Strategy.Info()
	d := &Document{
		Head: document.Begin(schema), Strategy: o.Strategy.Name(), Lock: info.Summary, Claims: info.Claims.List(),
	}
	for _, key := range info.Persistent {
		d.Keeps = append(d.Keeps, untrusted.Printable(key))
	}
	checks := slices.DeleteFunc(locktest.Checks(), func(c locktest.Check) bool {
		return len(o.Only) > 0 && !slices.Contains(o.Only, c.Name)
	})
	d.Checks = make([]Result, len(checks))
	without, why, err := tried(ctx, o.Strategy, checks)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	unserved := make([]error, len(checks)) // errors of starting the servers
	var running errgroup.Group
	running.SetLimit(atOnce)
	for i, one := range checks {
		if without != "" && one.Inapplicable(info) == "" && ctx.Err() == nil {
			d.Checks[i] = Result{Check: one.Name, Proves: one.Proves, Verdict: without, Because: why}
			continue
		}
		running.Go(func() error {
			if ctx.Err() == nil && o.Progress != nil && one.Inapplicable(info) == "" {
				o.Progress(one.Name)
			}
			d.Checks[i], unserved[i] = judge(ctx, one, o.Strategy)
			return nil
		})
	}
	_ = running.Wait()
	judged := len(d.With(locktest.Passed, locktest.Broken)) > 0
	if err := cmp.Or(unserved...); err != nil && ctx.Err() == nil && !judged {
		return nil, err
	}
	d.Interrupted = ctx.Err() != nil && len(d.With(NotRun)) > 0
	d.Finished = time.Now()
	return d, nil
}

// judge runs one check on new servers. It returns an error only if these servers cannot be started.
func judge(ctx context.Context, one locktest.Check, v strategies.Variant) (Result, error) {
	info := v.Info()
	verdict := Result{Check: one.Name, Proves: one.Proves, Verdict: NotRun, Because: "it was interrupted"}
	applies := one.Inapplicable(info) == ""
	if applies && ctx.Err() != nil {
		return verdict, nil
	}
	var opened lockers
	fixture := locktest.Fixture{Open: func(c goredis.Config) (strategies.Locker, error) {
		return opened.open(ctx, v, c)
	}}
	if applies && info.OnRedis() {
		all, err := startFleet(ctx, info.Nodes)
		if err != nil && ctx.Err() == nil { // otherwise the interruption caused the error
			verdict.Verdict = locktest.NotJudged
			verdict.Because = untrusted.Printable(fmt.Sprintf("the servers of this check cannot be started: %v", err))
		}
		if err != nil {
			return verdict, err
		}
		defer all.close(context.WithoutCancel(ctx))
		all.furnish(ctx, &fixture)
	}
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	found := one.Judge(limited, fixture, info)
	verdict.Seconds = found.Took.Seconds()
	if applies && ctx.Err() != nil && found.Verdict != locktest.Passed {
		return verdict, nil // the interruption may have caused the failure
	}
	if died := opened.died(); died != nil && found.Verdict != locktest.Passed { // the likely cause of the failure
		found.Verdict, found.Because, found.Failures = locktest.NotJudged, "its driver failed: "+died.Error(), nil
	}
	for _, f := range found.Failures {
		verdict.Failures = append(verdict.Failures, Failure{f.Promise, untrusted.Printable(f.Seen)})
	}
	if found.Verdict == locktest.NotJudged && limited.Err() != nil {
		found.Because = fmt.Sprintf("the check did not finish within %v", longest)
	}
	verdict.Verdict, verdict.Because = found.Verdict, untrusted.Printable(found.Because)
	return verdict, nil
}

// With returns the names of the checks that have one of the given verdicts.
func (d *Document) With(outcomes ...locktest.Verdict) (names []string) {
	for _, c := range d.Checks {
		if slices.Contains(outcomes, c.Verdict) {
			names = append(names, c.Check)
		}
	}
	return names
}

// Because returns the reason why a check gave no verdict on the lock. It returns "" if the check passed or found a
// broken promise.
func (d *Document) Because(check string) string {
	for _, c := range d.Checks {
		if c.Check == check {
			return c.Because
		}
	}
	return ""
}

// Lay writes the verdict of each check. It then writes the failures and reasons of the checks that did not pass.
func (d *Document) Lay(p *layout.Page) {
	fmt.Fprintf(p, "%s %s  %s: %s\n", d.Tool.Name, d.Tool.Version, d.Strategy, d.Lock)
	fmt.Fprintf(p, "claims %s\n", strings.Join(d.Claims, ", "))
	if len(d.Keeps) > 0 {
		fmt.Fprintf(p, "keeps  %s\n", strings.Join(d.Keeps, ", "))
	}
	fmt.Fprintln(p)
	var rows [][]string
	for _, c := range d.Checks {
		if c.Verdict != locktest.NotApplicable {
			rows = append(rows, []string{c.Check, painted(p, c.Verdict), fmt.Sprintf("%.1f s", c.Seconds)})
		}
	}
	p.Columns("  ", rows)
	last := ""
	for _, c := range d.Checks {
		said := len(c.Failures) == 0 && (c.Because == "" || c.Because == last)
		if said || c.Verdict == locktest.NotApplicable || c.Verdict == NotRun {
			continue
		}
		fmt.Fprintf(p, "\n%s  %s\n", p.Bold(c.Check), painted(p, c.Verdict))
		if last = c.Because; last != "" { // printed once for consecutive checks
			p.Remark("because ", c.Because)
		}
		for i, f := range c.Failures {
			if i == mostFailures {
				p.Point("", fmt.Sprintf("and %d more", len(c.Failures)-i))
				break
			}
			p.Point(f.Promise, f.Seen)
		}
	}
	if d.Interrupted {
		fmt.Fprintln(p, "\ninterrupted: checks are missing")
	}
}

// mostFailures is the maximum number of failures that Lay writes for one check.
const mostFailures = 3

func painted(p *layout.Page, o locktest.Verdict) string {
	switch o {
	case locktest.Passed:
		return p.Green(string(o))
	case locktest.Broken:
		return p.Red(strings.ToUpper(string(o)))
	}
	return p.Yellow(string(o))
}
