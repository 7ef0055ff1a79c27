package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// storeOf returns the name of the store that a strategy uses; "" if it needs none.
func (p Plan) storeOf(v strategies.Variant) string {
	if !engine.NeedsStore(v.Info(), p.points()[0].Workload) {
		return ""
	}
	return cmp.Or(v.Info().Store, store.Redis)
}

// storesNeeded returns the names of the stores that the strategies use, Redis first. Several generators meet there.
func (p Plan) storesNeeded() []string {
	var names []string
	if p.Generators.several() {
		names = []string{store.Redis}
	}
	for _, v := range p.Strategies {
		if name := p.storeOf(v); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if i := slices.Index(names, store.Redis); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, store.Redis)
	}
	return names
}

// wrongStores returns the errors of the stores' options, and of the faults that the workload
// injects there.
func (p Plan) wrongStores() []error {
	var problems []error
	// Redis's address may be in the environment for other runs.
	for _, name := range p.storesTold() {
		if name != store.Redis && !p.at(name).Started() && !slices.Contains(p.storesNeeded(), name) {
			problems = append(problems,
				fmt.Errorf("--redis: an address of %s is given, and no strategy of --strategy locks there", name))
		}
	}
	said := map[string]bool{}
	for _, name := range p.storesTold() {
		kind, err := store.Lookup(name)
		if err != nil {
			problems = append(problems, fmt.Errorf("--strategy: %w", err))
			continue
		}
		wrong := []error{kind.Validate(p.at(name))}
		if joined, ok := wrong[0].(interface{ Unwrap() []error }); ok {
			wrong = joined.Unwrap()
		}
		if slices.Contains(p.storesNeeded(), name) {
			wrong = append(wrong, kind.Layout(p.at(name)).Impossible(p.points()[0].Workload.Faults)...)
		}
		for _, problem := range wrong { // report an error of several stores once
			if problem != nil && !said[problem.Error()] {
				said[problem.Error()] = true
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

// storesTold returns the names of the needed stores, and of those with an address.
func (p Plan) storesTold() []string {
	names := p.storesNeeded()
	if !slices.Contains(names, store.Redis) && p.at(store.Redis).Address != "" {
		names = append(names, store.Redis)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Stores)) {
		if !slices.Contains(names, name) && p.at(name).Address != "" {
			names = append(names, name)
		}
	}
	return names
}

// at returns the options of a store.
func (p Plan) at(name string) store.Options { return p.Stores[name] }

// openStores finds or starts all stores that the plan needs. After an error the session closes those
// that were opened.
func (s *session) openStores(ctx context.Context) error {
	for _, name := range s.plan.storesNeeded() {
		kind, err := store.Lookup(name)
		if err != nil {
			return err
		}
		options := s.plan.at(name)
		options.Logf = s.plan.Logf
		options.Warn = func(warning string) { s.report.Warnings = append(s.report.Warnings, warning) }
		server, err := kind.Open(ctx, s.id, options)
		if err != nil {
			return err
		}
		s.servers = append(s.servers, place{name, server})
		if wrong := server.Impossible(s.report.Workload.Faults); len(wrong) > 0 {
			return fmt.Errorf("%w: %w", store.ErrConfig, errors.Join(wrong...))
		}
		if name == store.Redis {
			s.report.Redis = server.Describe()
			if err := s.join(ctx, server); err != nil {
				return err
			}
			continue
		}
		s.report.Stores = append(s.report.Stores, results.Store{Name: name, Server: server.Describe()})
	}
	return s.openCounters(ctx)
}

// countersName is the name of the Redis for counters that are not in the locks' store.
const countersName = "counter"

// openCounters starts a Redis for the counters if they must not be in the locks' store.
func (s *session) openCounters(ctx context.Context) error {
	if !slices.ContainsFunc(s.plan.points(),
		func(p workloads.Point) bool { return p.Workload.Counter == workloads.CounterApart }) {
		return nil
	}
	kind, err := store.Lookup(store.Redis)
	if err != nil {
		return err
	}
	options := store.Options{Logf: s.plan.Logf}
	if redis := s.plan.at(store.Redis); redis.Address == "process" || redis.Address == "container" {
		options.Address, options.Image = redis.Address, redis.Image
	}
	server, err := kind.Open(ctx, s.id, options)
	if err != nil {
		return fmt.Errorf("open a Redis for the counters: %w", err)
	}
	s.servers = append(s.servers, place{countersName, server})
	s.report.Stores = append(s.report.Stores, results.Store{Name: countersName, Server: server.Describe()})
	return nil
}

// place is a server of the session, with its store.
type place struct {
	name   string
	server store.Server
}

// durability says what a crash of the store may lose of a strategy's locks; "" if not known, or
// without a store.
func (s *session) durability(v strategies.Variant) string {
	server := s.server(v)
	switch {
	case server == nil:
		return ""
	case v.Info().Unwritten:
		return string(store.InMemory)
	}
	return server.Describe().Durability
}

// unlike warns if the compared locks lose different amounts in a crash; else it returns "".
func unlike(all []results.Strategy) string {
	var parts []string
	classes := map[string]bool{}
	for _, s := range all {
		if s.Durability != "" {
			classes[s.Durability] = true
			parts = append(parts, s.Name+" "+s.Durability)
		}
	}
	if len(classes) < 2 {
		return ""
	}
	return "a crash does not lose equally much of the locks: " + strings.Join(parts, ", ") +
		": --durability compares like with like"
}

// server returns the server that a strategy uses; nil if it needs none.
func (s *session) server(v strategies.Variant) store.Server { return s.named(s.plan.storeOf(v)) }

// named returns a server of a store; nil if there is none.
func (s *session) named(name string) store.Server {
	if i := slices.IndexFunc(s.servers, func(p place) bool { return p.name == name }); i >= 0 {
		return s.servers[i].server
	}
	return nil
}

// closeStores closes all servers and returns the errors.
func (s *session) closeStores(ctx context.Context) []error {
	var problems []error
	for _, p := range slices.Backward(s.servers) {
		if err := p.server.Close(ctx); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}
