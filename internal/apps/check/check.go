// Package check runs the conformance suite on a lock, on servers of its own, and says what holds.
package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/driver"
	"github.com/lockbench/lockbench/internal/layout"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// schema is the version of the document.
const schema = "lockbench/check/1"

// Document is what the checks found.
type Document struct {
	document.Head
	Strategy    string    `json:"strategy"`
	Lock        string    `json:"lock"` // what it says of itself
	Claims      []string  `json:"claims"`
	Checks      []Verdict `json:"checks"`
	Interrupted bool      `json:"interrupted,omitempty"`
}

// Verdict is what one check found.
type Verdict struct {
	Check    string           `json:"check"`
	Proves   string           `json:"proves"` // what a pass proves
	Outcome  locktest.Outcome `json:"outcome"`
	Because  string           `json:"because,omitempty"`
	Failures []Failure        `json:"failures,omitempty"`
	Seconds  float64          `json:"seconds"`
}

// Failure is a promise that was found broken, and what showed it.
type Failure struct {
	Promise string `json:"promise"`
	Seen    string `json:"seen"`
}

// Options say what to check.
type Options struct {
	Strategy strategies.Variant
	Only     []string // names of checks; none means all
	Progress func(check string)
}

// Validate returns every error, joined.
func (o Options) Validate() error {
	var problems []error
	for _, name := range o.Only {
		if !slices.ContainsFunc(locktest.Checks(), func(c locktest.Check) bool { return c.Name == name }) {
			problems = append(problems, fmt.Errorf("--only: there is no check %q", name))
		}
	}
	if info := o.Strategy.Info(); info.Store != "" {
		problems = append(problems,
			fmt.Errorf("%s locks in %s, and the suite has servers of Redis", info.Name, info.Store))
	}
	return errors.Join(problems...)
}

// Run runs the checks, one after the other, on fresh servers for each that needs them.
func Run(ctx context.Context, o Options) (*Document, error) {
	info := o.Strategy.Info()
	d := &Document{
		Head: document.Begin(schema), Strategy: o.Strategy.Name(), Lock: info.Summary, Claims: info.Claims.List(),
	}
	for _, one := range locktest.Checks() {
		if len(o.Only) > 0 && !slices.Contains(o.Only, one.Name) {
			continue
		}
		if d.Interrupted = ctx.Err() != nil; d.Interrupted {
			break
		}
		if o.Progress != nil && one.Inapplicable(info) == "" {
			o.Progress(one.Name)
		}
		verdict, err := judge(ctx, one, o.Strategy)
		if err != nil {
			return nil, err
		}
		d.Checks = append(d.Checks, verdict)
	}
	d.Finished = time.Now()
	return d, nil
}

// judge runs one check on servers of its own.
func judge(ctx context.Context, one locktest.Check, v strategies.Variant) (Verdict, error) {
	info := v.Info()
	fixture := locktest.Fixture{Open: func(c goredis.Config) (strategies.Locker, error) { return open(v, c) }}
	if one.Inapplicable(info) == "" && info.OnRedis() {
		var all fleet
		defer func() { all.close(context.WithoutCancel(ctx)) }()
		for range info.Nodes {
			server, err := servers.StartOwn(ctx, servers.Options{RunID: store.NewRunID()})
			if err != nil {
				return Verdict{}, err
			}
			all = append(all, server)
		}
		all.furnish(ctx, &fixture)
	}
	found := one.Judge(ctx, fixture, info)
	verdict := Verdict{
		Check: found.Check, Proves: found.Proves, Outcome: found.Outcome, Because: untrusted.Printable(found.Because),
		Seconds: found.Took.Seconds(),
	}
	for _, f := range found.Failures {
		verdict.Failures = append(verdict.Failures, Failure{f.Promise, untrusted.Printable(f.Seen)})
	}
	return verdict, nil
}

// fleet are the servers of a check.
type fleet []*servers.Own

// furnish gives a fixture the servers, and what can be done to them.
func (f fleet) furnish(ctx context.Context, fixture *locktest.Fixture) {
	each := func(do func(*servers.Own, context.Context) error) func() error {
		return func() error {
			var problems []error
			for _, server := range f {
				problems = append(problems, do(server, ctx))
			}
			return errors.Join(problems...)
		}
	}
	fixture.Nodes = func() (nodes []goredis.Node) {
		for _, server := range f {
			nodes = append(nodes, goredis.Node{Options: &redis.UniversalOptions{
				Addrs: []string{server.Addr()}, MaxRetries: -1, DialerRetries: 1, PipelinePoolSize: -1,
				DisableIdentity: true, ContextTimeoutEnabled: true,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			}})
		}
		return nodes
	}
	fixture.Pause = each(func(s *servers.Own, ctx context.Context) error { return s.Pause(ctx) })
	fixture.Resume = each(func(s *servers.Own, ctx context.Context) error { return s.Resume(ctx) })
	fixture.Kill = func(node int) error { return f[node].Kill(ctx) }
	fixture.Revive = func(node int) error { return f[node].Restart(ctx) }
}

func (f fleet) close(ctx context.Context) {
	for _, server := range f {
		_ = server.Close(ctx) // its verdict is known
	}
}

// open opens one instance. What the suite does to connections is done to those of a driver too.
func open(v strategies.Variant, c goredis.Config) (strategies.Locker, error) {
	if !v.Info().Driver {
		return goredis.Open(v, c)
	}
	return driver.OpenThrough(v, c)
}

// With returns the names of the checks with an outcome.
func (d *Document) With(outcome locktest.Outcome) (names []string) {
	for _, c := range d.Checks {
		if c.Outcome == outcome {
			names = append(names, c.Check)
		}
	}
	return names
}

// Lay writes the document for people.
func (d *Document) Lay(p *layout.Page) {
	fmt.Fprintf(p, "%s %s  %s: %s\n", d.Tool.Name, d.Tool.Version, d.Strategy, d.Lock)
	fmt.Fprintf(p, "claims %s\n\n", strings.Join(d.Claims, ", "))
	var rows [][]string
	for _, c := range d.Checks {
		if c.Outcome != locktest.NotApplicable {
			rows = append(rows, []string{c.Check, painted(p, c.Outcome), fmt.Sprintf("%.1f s", c.Seconds)})
		}
	}
	p.Columns("  ", rows)
	for _, c := range d.Checks {
		if c.Because == "" && len(c.Failures) == 0 || c.Outcome == locktest.NotApplicable {
			continue
		}
		fmt.Fprintf(p, "\n%s  %s\n", p.Bold(c.Check), painted(p, c.Outcome))
		if c.Because != "" {
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

// mostFailures of a check are shown to people.
const mostFailures = 3

func painted(p *layout.Page, o locktest.Outcome) string {
	switch o {
	case locktest.Passed:
		return p.Green(string(o))
	case locktest.Broken:
		return p.Red(strings.ToUpper(string(o)))
	}
	return p.Yellow(string(o))
}
