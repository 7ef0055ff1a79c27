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

// storesNeeded returns the names of the stores that the strategies use, Redis first. Several generators always need
// Redis, because they meet at a barrier there.
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

// wrongStores returns the errors in the options of all stores, and an error for each fault that a store cannot inject.
func (p Plan) wrongStores() []error {
	var problems []error
	// Redis may have an address that no strategy uses, because LOCKBENCH_REDIS may be set for other runs.
	for _, name := range p.storesInvolved() {
		needed := slices.Contains(p.storesNeeded(), name) || name == rowsStore && p.transacts()
		if name != store.Redis && !p.at(name).Started() && !needed {
			problems = append(problems,
				fmt.Errorf("--redis: the address belongs to %[1]s, but no strategy of --strategy uses %[1]s", name))
		}
	}
	said := map[string]bool{}
	for _, name := range p.storesInvolved() {
		kind, err := store.Lookup(name)
		if err != nil {
			flag := "--strategy"
			if name == rowsStore && !slices.Contains(p.storesNeeded(), name) {
				flag = "--work transaction"
			}
			problems = append(problems, fmt.Errorf("%s: %w", flag, err))
			continue
		}
		wrong := []error{kind.Validate(p.at(name))}
		if joined, ok := wrong[0].(interface{ Unwrap() []error }); ok {
			wrong = joined.Unwrap()
		}
		if slices.Contains(p.storesNeeded(), name) {
			wrong = append(wrong, kind.Layout(p.at(name)).Impossible(p.points()[0].Workload.Faults)...)
		}
		for _, problem := range wrong { // report an error that several stores have only once
			if problem != nil && !said[problem.Error()] {
				said[problem.Error()] = true
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

// storesInvolved returns the names of the stores that strategies or --work transaction need, and of the stores that
// have an address in the plan.
func (p Plan) storesInvolved() []string {
	names := p.storesNeeded()
	if p.transacts() && !slices.Contains(names, rowsStore) {
		names = append(names, rowsStore)
	}
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

func (p Plan) at(name string) store.Options { return p.Stores[name] }

// openStores finds or starts all stores that the plan needs. If it fails, the caller must close the stores opened so
// far.
func (s *session) openStores(ctx context.Context) error {
	for _, name := range s.plan.storesNeeded() {
		server, err := s.openStore(ctx, name, name, s.plan.at(name))
		if err != nil {
			return err
		}
		if wrong := server.Impossible(s.report.Workload.Faults); len(wrong) > 0 {
			return fmt.Errorf("%w: %w", store.ErrConfig, errors.Join(wrong...))
		}
		if name == store.Redis {
			if err := s.join(ctx, server); err != nil {
				return err
			}
		}
	}
	if err := s.openCounters(ctx); err != nil {
		return err
	}
	return s.openRows(ctx)
}

// openStore finds or starts the servers of a store, and adds them to the session and to the report.
func (s *session) openStore(ctx context.Context, name, storeName string, o store.Options) (store.Server, error) {
	kind, err := store.Lookup(storeName)
	if err != nil {
		return nil, err
	}
	o.Logf = s.plan.Logf
	o.Warn = func(warning string) {
		s.report.Warnings = append(s.report.Warnings, results.StoreWarning.Remark(warning))
	}
	server, err := kind.Open(ctx, s.id, o)
	if err != nil {
		return nil, err
	}
	s.servers = append(s.servers, namedServer{name, server})
	if name == store.Redis {
		s.report.Redis = server.Describe()
	} else {
		s.report.Stores = append(s.report.Stores, results.Store{Name: name, Server: server.Describe()})
	}
	return server, nil
}

// countersName is the name of a Redis that holds only the counters and no locks.
const countersName = "counter"

// openCounters opens a Redis for the counters. It does so only if no strategy locks in Redis, or if
// workloads.CounterApart keeps the counters out of reach of the faults. For CounterApart lockbench starts that Redis
// itself. Otherwise lockbench uses the Redis at the user's address, if the user gave one.
func (s *session) openCounters(ctx context.Context) error {
	counts, apart := false, false
	for _, point := range s.plan.points() {
		counter := point.Workload.Work == workloads.WorkCounter
		counts, apart = counts || counter, apart || counter && point.Workload.Counter == workloads.CounterApart
	}
	if !counts || !apart && s.named(store.Redis) != nil {
		return nil
	}
	options, redis := store.Options{}, s.plan.at(store.Redis)
	switch {
	case !apart && !redis.Started():
		options = redis
	case redis.Address == "process" || redis.Address == "container":
		options.Address, options.Image = redis.Address, redis.Image
	}
	if _, err := s.openStore(ctx, countersName, store.Redis, options); err != nil {
		return fmt.Errorf("open a Redis for the counters: %w", err)
	}
	return nil
}

// rowsStore is the name of the store with the rows of --work transaction.
const rowsStore = "postgres"

// transacts reports whether holders change rows in transactions.
func (p Plan) transacts() bool {
	return slices.ContainsFunc(p.points(), func(point workloads.Point) bool {
		return point.Workload.Work == workloads.WorkTransaction
	})
}

// openRows creates the table of --work transaction. It opens PostgreSQL unless a strategy already locks there.
func (s *session) openRows(ctx context.Context) error {
	if !s.plan.transacts() {
		return nil
	}
	if s.named(rowsStore) == nil {
		if _, err := s.openStore(ctx, rowsStore, rowsStore, s.plan.at(rowsStore)); err != nil {
			return fmt.Errorf("open PostgreSQL for --work transaction: %w", err)
		}
	}
	return s.named(rowsStore).(store.Transactor).CreateTable(ctx)
}

// rows returns the server with the rows of a workload; nil if the workload has none.
func (s *session) rows(w workloads.Spec) store.Transactor {
	if w.Work != workloads.WorkTransaction {
		return nil
	}
	return s.named(rowsStore).(store.Transactor)
}

// countersAt returns the name of the server that holds a workload's counters.
func (s *session) countersAt(w workloads.Spec) string {
	if w.Counter == workloads.CounterApart || s.named(store.Redis) == nil {
		return countersName
	}
	return store.Redis
}

// hub returns the Redis that holds the counters of a strategy's run or at which its generators meet. It returns nil if
// the run needs no such Redis, or if that Redis is also the store of the locks.
func (s *session) hub(v strategies.Variant, w workloads.Spec) store.Hub {
	name := s.plan.storeOf(v)
	switch {
	case w.Work == workloads.WorkCounter:
		name = s.countersAt(w)
	case s.together != nil:
		name = store.Redis
	}
	if name == s.plan.storeOf(v) {
		return nil
	}
	hub, _ := s.named(name).(store.Hub)
	return hub
}

// namedServer is an open store of the session: the name of the store, or countersName, and its servers.
type namedServer struct {
	name   string
	server store.Server
}

// durability returns how much a crash of the store may lose of a strategy's locks, as a store.Durability; "" if that is
// unknown or the strategy uses no store.
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

// unlike returns a warning if the compared locks have different durability; otherwise nil.
func unlike(all []results.Strategy) results.Remarks {
	var parts []string
	classes := map[string]bool{}
	for _, s := range all {
		if s.Durability != "" {
			classes[s.Durability] = true
			parts = append(parts, s.Name+" "+s.Durability)
		}
	}
	if len(classes) < 2 {
		return nil
	}
	return results.Remarks{results.UnlikeDurability.Remark(strings.Join(parts, ", "))}
}

// server returns the server that a strategy uses; nil if it needs none.
func (s *session) server(v strategies.Variant) store.Server { return s.named(s.plan.storeOf(v)) }

// named returns the server with this name; nil if the session has none.
func (s *session) named(name string) store.Server {
	if i := slices.IndexFunc(s.servers, func(p namedServer) bool { return p.name == name }); i >= 0 {
		return s.servers[i].server
	}
	return nil
}

func (s *session) closeStores(ctx context.Context) []error {
	var problems []error
	for _, p := range slices.Backward(s.servers) {
		if err := p.server.Close(ctx); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}
