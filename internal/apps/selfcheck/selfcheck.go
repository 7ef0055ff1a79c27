// Package selfcheck lets the harness test itself on this machine: each check runs the real engine on a case
// with a known answer.
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
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Options say what to check and where.
type Options struct {
	Redis    lockbench.StoreOptions // its Address, CAFile and Image, for one node
	Only     []string               // names of checks; empty means all
	Effort   Effort
	Progress func(what string) // may be nil

	// Change alters every job before it runs. A test plants faults with it; otherwise it is nil.
	Change func(engine.Job) engine.Job
}

// Effort says how long the checks take.
type Effort struct {
	Stalled time.Duration // window of the runs in which the server is stalled for a tenth
	Window  time.Duration // of the other runs
}

// Full is the user's effort, about half a minute.
func Full() Effort { return Effort{Stalled: 10 * time.Second, Window: 2 * time.Second} }

// checks are all checks, in order.
var checks = []struct {
	name, shows string
	run         func(*session, context.Context, *Check) error
}{
	{"omission", "a server that stalls shows in the percentiles of an open loop", (*session).omission},
	{
		"percentiles",
		"waits that are known have their percentiles, after a warm-up too, per acquisition and per client",
		(*session).percentiles,
	},
	{"holds", "holds are what was asked for, and recorded as they were", (*session).holds},
	{"order", "serving the first to come and serving the newest are told apart", (*session).order},
	{"starvation", "one client in ten that never gets the lock shows in all fairness", (*session).starvation},
	{"audit", "locks that let in two are found out, each time", (*session).audit},
	{"outside", "what is reported of Redis is what somebody else's INFO shows", (*session).outside},
}

// Names returns the names of the checks, in order.
func Names() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name)
	}
	return names
}

// Validate returns all errors that can be found beforehand, joined.
func (o Options) Validate() error {
	problems := []error{o.Redis.Validate()}
	for _, name := range o.Only {
		if !slices.Contains(Names(), name) {
			known := strings.Join(Names(), ", ")
			problems = append(problems, fmt.Errorf("--only: no check %q, there are %s", name, known))
		}
	}
	return errors.Join(problems...)
}

// session is a selfcheck while it runs.
type session struct {
	Options
	id     string
	server redis.Server
	runs   int
}

// Run carries out the checks one after the other. A check that cannot run is inconclusive, not an error; an
// error means that there is no Redis. When ctx ends, Run leaves out the rest.
func Run(ctx context.Context, options Options) (*Document, error) {
	s := &session{Options: options, id: store.NewRunID()}
	d := &Document{Head: document.Begin(schema), Checks: []Check{}}
	s.say("start")
	server, err := redis.Open(ctx, s.id, store.Options{
		Address: s.Redis.Address, Topology: "single", CAFile: s.Redis.CAFile, Image: s.Redis.Image,
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

func (s *session) say(format string, args ...any) {
	if s.Progress != nil {
		s.Progress(fmt.Sprintf(format, args...))
	}
}

// workload returns the plain workload that the checks change.
func workload(clients, instances int, window time.Duration) workloads.Spec {
	w := workloads.Default()
	w.Clients, w.Instances = clients, instances
	w.Warmup, w.Duration = 0, workloads.Duration(window)
	return w
}

// job returns a job for a strategy.
func (s *session) job(v strategies.Variant, w workloads.Spec) engine.Job {
	s.runs++
	return engine.Job{Strategy: v, Workload: w, Target: s.server, Session: s.id, Number: s.runs, Round: 1, Order: 1}
}

// do runs a job.
func (s *session) do(ctx context.Context, job engine.Job) (*results.Run, error) {
	if s.Change != nil {
		job = s.Change(job)
	}
	run, err := job.Run(ctx)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", job.Strategy.Name(), err)
	}
	return run, nil
}

// contender returns a lock on Redis, the same in every check.
func contender() (strategies.Variant, error) { return strategies.NewVariant("pubsub", nil) }

func near(x, want, within float64) bool { return math.Abs(x-want) <= within }

// value returns a figure; NaN if it is not known.
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
