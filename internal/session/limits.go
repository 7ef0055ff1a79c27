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

// spare is the number of extra connections: the observer's, and those of a pool that is replaced.
const spare = 16

// tight finds every limit that is too small for the plan: a failure at the nine thousandth connection would waste an
// hour.
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
			say(symptom, "the server does not report how many connections it takes")
		}
	}
	if rows := s.named(rowsStore); rows != nil && s.plan.transacts() {
		needed, of := s.plan.rowConnections(), limits[rows]
		if free := of.MaxClients - of.Connected; of.MaxClients > 0 && needed > free {
			trouble(symptom, fmt.Errorf("--work transaction needs %d connections to PostgreSQL, which has %d free "+
				"(max_connections %d): use fewer --clients, or a smaller --pool", needed, free, of.MaxClients))
		}
		of.Connected += needed // those of strategies that lock there are in addition
		limits[rows] = of
	}
	files, err := measure.MaxOpenFiles()
	if err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	for _, v := range s.plan.Strategies {
		server := s.server(v)
		if server == nil || s.unfit(v) != "" {
			continue
		}
		of := limits[server]
		needed, clients := s.plan.connections(v)
		n, each := int64(1), ""
		if g := s.plan.Generators; g.several() { // the others may have connected before
			n, each = int64(g.Number), fmt.Sprintf(" in %d generators", g.Number)
		}
		free := of.MaxClients - of.Connected
		if of.MaxClients > 0 && (needed > free || n*needed > of.MaxClients) {
			trouble(symptom, fmt.Errorf("%s with --clients %d%s needs %d connections, the server has %d free (maxclients %d)",
				v.Name(), clients, each, n*needed, free, of.MaxClients))
		}
		if err := s.plan.tooManyFiles(v, server.Primaries(), files); err != nil {
			trouble(symptom, err)
		}
	}
	return nil
}

// connections returns the most connections that a strategy opens to a node, with their clients.
func (p Plan) connections(v strategies.Variant) (needed int64, clients int) {
	for _, point := range p.points() {
		if n := connections(v, point.Workload); n > needed {
			needed, clients = n, point.Workload.Clients
		}
	}
	return needed, clients
}

// rowConnections returns the most connections to the rows of --work transaction.
func (p Plan) rowConnections() (needed int64) {
	for _, point := range p.points() {
		if w := point.Workload; w.Work == workloads.WorkTransaction {
			needed = max(needed, int64(w.Instances*w.PoolSize()))
		}
	}
	return needed
}

// tooManyFiles returns an error if a strategy opens more files than this process may; files 0
// means no limit.
func (p Plan) tooManyFiles(v strategies.Variant, primaries int, files int64) error {
	needed, clients := p.connections(v)
	opened := needed*int64(primaries)*filesPerConnection(p.points()[0].Workload) + p.rowConnections() + spare
	if needed == 0 || files == 0 || opened <= files {
		return nil
	}
	return fmt.Errorf("%s with --clients %d needs %d open files, this process may have %d (ulimit -n)", v.Name(),
		clients, opened, files)
}

// connections returns the most connections that a strategy opens to a node.
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

// filesPerConnection is the number of open files per connection; a proxy in this process needs two
// more.
func filesPerConnection(w workloads.Spec) int64 {
	for _, f := range w.Faults {
		if f.Kind().Place == workloads.OnNetwork {
			return 3
		}
	}
	return 1
}

// files returns an error for every strategy that would open more files than this process may.
func (p Plan) files() (problems []error) {
	files, err := measure.MaxOpenFiles()
	if err != nil { // Run says so
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

// fits returns an error if no strategy can run on the servers that the plan asks for; a strategy that
// cannot, where others can, is left out of the session.
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

// noneFits says why no strategy can run.
func noneFits(left []results.LeftOut) error {
	var why []string
	for _, one := range left {
		why = append(why, one.Strategy+": "+one.Why.Text)
	}
	return fmt.Errorf("no strategy of --strategy can run here: %s", strings.Join(why, "; "))
}
