package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// storeOf is the name of the store that a strategy locks in; "" is of one that needs none.
func (p Plan) storeOf(v strategies.Variant) string {
	if !engine.NeedsStore(v.Info(), p.points()[0].Workload) {
		return ""
	}
	return cmp.Or(v.Info().Store, store.Redis)
}

// storesNeeded are the names of those that strategies lock in, Redis first.
func (p Plan) storesNeeded() []string {
	var names []string
	for _, v := range p.Strategies {
		if name := p.storeOf(v); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return order(a) - order(b) })
	return names
}

// order puts Redis before the others.
func order(name string) int {
	if name == store.Redis {
		return 0
	}
	return 1
}

// wrongStores are the faults of the stores' options, and of what the workload would have
// happen to them.
func (p Plan) wrongStores() []error {
	var faults []error
	said := map[string]bool{}
	for _, name := range p.storesTold() {
		kind, err := store.Lookup(name)
		if err != nil {
			faults = append(faults, fmt.Errorf("--strategy: %w", err))
			continue
		}
		wrong := []error{kind.Validate(p.Stores[name])}
		if joined, ok := wrong[0].(interface{ Unwrap() []error }); ok {
			wrong = joined.Unwrap()
		}
		if slices.Contains(p.storesNeeded(), name) {
			wrong = append(wrong, kind.Layout(p.Stores[name]).Impossible(p.points()[0].Workload.Faults)...)
		}
		for _, fault := range wrong { // what is wrong of several stores is said once
			if fault != nil && !said[fault.Error()] {
				said[fault.Error()] = true
				faults = append(faults, fault)
			}
		}
	}
	return faults
}

// storesTold are the names of those that are needed, and of those whose address is given.
func (p Plan) storesTold() []string {
	names := p.storesNeeded()
	for _, name := range slices.Sorted(maps.Keys(p.Stores)) {
		if !slices.Contains(names, name) && p.Stores[name].Address != "" {
			names = append(names, name)
		}
	}
	return names
}

// openStores finds or starts all that the plan needs. What was opened before an error is
// the session's to close.
func (s *session) openStores(ctx context.Context) error {
	for _, name := range s.plan.storesNeeded() {
		kind, err := store.Lookup(name)
		if err != nil {
			return err
		}
		server, err := kind.Open(ctx, s.id, s.plan.Stores[name])
		if err != nil {
			return err
		}
		s.servers = append(s.servers, place{name, server})
		if wrong := server.Impossible(s.report.Workload.Faults); len(wrong) > 0 {
			return fmt.Errorf("%w: %w", store.ErrConfig, errors.Join(wrong...))
		}
		if name == store.Redis {
			s.report.Redis = server.Describe()
			continue
		}
		s.report.Stores = append(s.report.Stores, results.Store{Name: name, Server: server.Describe()})
	}
	if unlike := durabilities(s.report); unlike != "" {
		s.report.Warnings = append(s.report.Warnings, unlike)
	}
	return nil
}

// place is a store of the session.
type place struct {
	name   string
	server store.Server
}

// durabilities warns of a comparison of stores that lose unlike much in a crash; "" is of
// none.
func durabilities(r *results.Report) string {
	if len(r.Stores) == 0 {
		return ""
	}
	kept := map[string]string{}
	if r.Redis.Source != "none" {
		kept[store.Redis] = r.Redis.Durability
	}
	for _, s := range r.Stores {
		kept[s.Name] = s.Server.Durability
	}
	classes := slices.Collect(maps.Values(kept))
	slices.Sort(classes)
	if len(slices.Compact(classes)) < 2 {
		return ""
	}
	text := "the stores do not keep what they confirm equally well:"
	for i, name := range slices.Sorted(maps.Keys(kept)) {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %s", name, cmp.Or(kept[name], "not known"))
	}
	return text + ": --durability compares like with like"
}

// server is the one that a strategy locks in; nil if it needs none.
func (s *session) server(v strategies.Variant) store.Server {
	return s.named(s.plan.storeOf(v))
}

// named is the server of a store; nil if there is none.
func (s *session) named(store string) store.Server {
	if i := slices.IndexFunc(s.servers, func(p place) bool { return p.name == store }); i >= 0 {
		return s.servers[i].server
	}
	return nil
}

// target is the strategy's server as the engine sees it.
func (s *session) target(v strategies.Variant) store.Target {
	if server := s.server(v); server != nil {
		return server
	}
	return nil
}

// closeStores closes all, and returns what that could not do.
func (s *session) closeStores(ctx context.Context) []error {
	var faults []error
	for _, p := range slices.Backward(s.servers) {
		if err := p.server.Close(ctx); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// other is what the report says of a store beside Redis.
func (s *session) other(name string) *results.Store {
	return &s.report.Stores[slices.IndexFunc(s.report.Stores, func(o results.Store) bool { return o.Name == name })]
}
