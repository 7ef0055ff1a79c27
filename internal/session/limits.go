package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// spare is the number of connections that a run may open in addition to those of its clients: the connection over which
// lockbench reads the server, and the connections of a pool that is being replaced.
const spare = 16

// tight checks the plan against all limits of the servers and of this process. It does so before the first run, because
// a run that exceeds a limit fails only after some time.
func (s *session) tight(ctx context.Context, symptom *results.Symptom) error {
	limits := map[store.Server]store.Limits{}
	for _, p := range s.servers {
		of, err := p.server.Limits(ctx)
		if err != nil {
			return fmt.Errorf("read the limits of %s: %w", p.name, err)
		}
		limits[p.server] = of
		if of.MaxClients > 0 {
			say(symptom, "%d of %d connections are free", of.MaxClients-of.Connected, of.MaxClients)
		} else {
			say(symptom, "the server does not report how many connections it accepts")
		}
	}
	if rows := s.named(rowsStore); rows != nil && s.plan.transacts() {
		needed, of := s.plan.rowConnections(), limits[rows]
		if free := of.MaxClients - of.Connected; of.MaxClients > 0 && needed > free {
			trouble(symptom, fmt.Errorf("--work transaction needs %d connections to PostgreSQL, which has %d free "+
				"(max_connections %d): use fewer --clients, or a smaller --pool", needed, free, of.MaxClients))
		}
		of.Connected += needed // strategies that lock in PostgreSQL need further connections
		limits[rows] = of
	}
	files, err := measure.MaxOpenFiles()
	if err != nil {
		return fmt.Errorf("read the limit on open files: %w", err)
	}
	for _, v := range s.plan.Strategies {
		server := s.server(v)
		if server == nil || s.unfit(v) != "" {
			continue
		}
		of := limits[server]
		needed, clients := s.plan.connections(v)
		n, each := int64(1), ""
		if g := s.plan.Generators; g.several() { // the other generators may have connected already
			n, each = int64(g.Number), fmt.Sprintf(" in %d generators", g.Number)
		}
		free := of.MaxClients - of.Connected
		if of.MaxClients > 0 && (needed > free || n*needed > of.MaxClients) {
			trouble(symptom, fmt.Errorf("%s with --clients %d%s needs %d connections, but the server has %d free "+
				"(maxclients %d)", v.Name(), clients, each, n*needed, free, of.MaxClients))
		}
		if err := s.plan.tooManyFiles(v, server.Primaries(), files); err != nil {
			trouble(symptom, err)
		}
	}
	return nil
}

// connections returns the largest number of connections that a strategy opens to a node at any point of the sweep, and
// the number of clients at that point.
func (p Plan) connections(v strategies.Variant) (needed int64, clients int) {
	for _, point := range p.points() {
		if n := connections(v, point.Workload); n > needed {
			needed, clients = n, point.Workload.Clients
		}
	}
	return needed, clients
}

// rowConnections returns the largest number of connections that --work transaction opens to PostgreSQL.
func (p Plan) rowConnections() (needed int64) {
	for _, point := range p.points() {
		if w := point.Workload; w.Work == workloads.WorkTransaction {
			needed = max(needed, int64(w.Instances*w.PoolSize()))
		}
	}
	return needed
}

// tooManyFiles returns an error if a strategy needs more open files than this process may have; files is that limit,
// and 0 means no limit.
func (p Plan) tooManyFiles(v strategies.Variant, primaries int, files int64) error {
	needed, clients := p.connections(v)
	opened := needed*int64(primaries)*filesPerConnection(p.points()[0].Workload) + p.rowConnections() + spare
	if needed == 0 || files == 0 || opened <= files {
		return nil
	}
	return fmt.Errorf("%s with --clients %d needs %d open files, but this process may have only %d (ulimit -n)", v.Name(),
		clients, opened, files)
}

// connections returns the largest number of connections that a strategy opens to a node under a workload.
func connections(v strategies.Variant, w workloads.Spec) int64 {
	info := v.Info()
	if !engine.NeedsStore(info, w) {
		return 0
	}
	all := v.Instances(w.Instances)*(w.PoolSize()+info.Connections.PerInstance) +
		w.Clients*info.Connections.PerWaiter + spare
	for _, f := range w.Faults {
		if f.Kind().Place == workloads.InClients { // the targets of faults have their own connections
			clients := max(1, f.N)
			all += min(clients, workloads.MaxPool) + info.Connections.PerInstance + clients*info.Connections.PerWaiter
		}
	}
	return int64(all)
}

// filesPerConnection returns the number of open files per connection: 3 if a fault proxy in this process forwards the
// connections, otherwise 1.
func filesPerConnection(w workloads.Spec) int64 {
	for _, f := range w.Faults {
		if f.Kind().Place == workloads.OnNetwork {
			return 3
		}
	}
	return 1
}

// files returns an error for every strategy that needs more open files than this process may have.
func (p Plan) files() (problems []error) {
	files, err := measure.MaxOpenFiles()
	if err != nil { // Run reports this error
		return nil
	}
	for _, v := range p.Strategies {
		name := p.storeOf(v)
		kind, err := store.Lookup(name)
		if name == "" || err != nil {
			continue
		}
		layout := kind.Layout(p.at(name))
		if unfit(v.Info(), p.points()[0].Workload, layout) == "" {
			problems = append(problems, p.tooManyFiles(v, layout.Primaries(), files))
		}
	}
	return problems
}

// fits returns an error if no strategy can run on the servers of the plan. If only some strategies cannot run, the
// session leaves these out.
func (p Plan) fits() error {
	var left []results.LeftOut
	for _, v := range p.Strategies {
		name := cmp.Or(p.storeOf(v), store.Redis)
		kind, err := store.Lookup(name)
		if err != nil {
			return err
		}
		why := unfit(v.Info(), p.points()[0].Workload, kind.Layout(p.at(name)))
		if why == "" {
			return nil
		}
		left = append(left, results.LeftOut{Strategy: v.Name(), Why: results.Unfit.Remark(why)})
	}
	if len(left) == 0 {
		return nil
	}
	return noneFits(left)
}

// noneFits returns an error that lists for each strategy why it cannot run.
func noneFits(left []results.LeftOut) error {
	var why []string
	for _, one := range left {
		why = append(why, one.Strategy+": "+one.Why.Text)
	}
	return fmt.Errorf("none of the strategies in --strategy can run here: %s", strings.Join(why, "; "))
}
