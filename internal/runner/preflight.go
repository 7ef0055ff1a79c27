package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// spare connections: the observer's own, and those of a pool being replaced.
const spare = 16

// preflight names every limit that is too small for the plan before any client
// starts: a run that fails at its nine thousandth connection wastes an hour.
func (s *session) preflight(ctx context.Context) error {
	limits := map[store.Server]store.Limits{}
	for _, p := range s.servers {
		of, err := p.server.Limits(ctx)
		if err != nil {
			return fmt.Errorf("read the limits of %s: %w", p.name, err)
		}
		limits[p.server] = of
	}
	files, err := measure.MaxOpenFiles()
	if err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	var problems []error
	for _, v := range s.plan.Strategies {
		if s.unfit(v) != "" {
			continue
		}
		for _, server := range s.serversOf(v) {
			of := limits[server]
			needed, clients := s.plan.connections(v)
			if free := of.MaxClients - of.Connected; of.MaxClients > 0 && needed > free {
				problems = append(problems, fmt.Errorf("%s with --clients %d needs %d connections, the server has %d free (maxclients %d)",
					v.Name(), clients, needed, free, of.MaxClients))
			}
			problems = append(problems, s.plan.tooManyFiles(v, server.Primaries(), files))
		}
	}
	if errors.Join(problems...) == nil {
		problems = s.try(ctx)
	}
	if err := errors.Join(problems...); err != nil {
		return limited{err}
	}
	return nil
}

// connections is how many a strategy opens to a node at most, and with how many clients.
func (p Plan) connections(v strategies.Variant) (needed int64, clients int) {
	for _, point := range p.points() {
		if n := connections(v.Info(), point.Workload); n > needed {
			needed, clients = n, point.Workload.Clients
		}
	}
	return needed, clients
}

// tooManyFiles is the error of a strategy that opens more than this process may; files 0
// is any number.
func (p Plan) tooManyFiles(v strategies.Variant, primaries int, files int64) error {
	needed, clients := p.connections(v)
	opened := needed*int64(primaries)*filesPerConnection(p.points()[0].Workload) + spare
	if needed == 0 || files == 0 || opened <= files {
		return nil
	}
	return fmt.Errorf("%s with --clients %d needs %d open files, this process may have %d (ulimit -n)", v.Name(), clients, opened, files)
}

// try has every strategy acquire and release once, and returns what the servers refuse:
// what lacks a right would otherwise fail in the middle of a run, or only when it has to
// wait. What the servers cannot do at all makes the strategy unfit.
func (s *session) try(ctx context.Context) []error {
	var problems []error
	for _, v := range s.plan.Strategies {
		if s.unfit(v) != "" {
			continue
		}
		for _, server := range s.serversOf(v) {
			if ctx.Err() != nil {
				continue
			}
			job := engine.Job{Strategy: v, Workload: s.report.Workload, Target: server, Session: s.id, Generator: s.generator}
			switch err := job.Try(ctx); {
			case errors.Is(err, errors.ErrUnsupported):
				s.unsupported[v.Name()] = err.Error()
			case err != nil:
				problems = append(problems, err)
			}
		}
	}
	return problems
}

// limited is a store.ErrConfig that says one limit a line and no more.
type limited struct{ error }

func (l limited) Is(target error) bool { return target == store.ErrConfig }

// Unwrap gives the limits one by one.
func (l limited) Unwrap() []error { return l.error.(interface{ Unwrap() []error }).Unwrap() }

// connections is how many a strategy opens to a node at most.
func connections(info strategies.Info, w workloads.Spec) int64 {
	if !engine.NeedsStore(info, w) {
		return 0
	}
	instances := w.Instances
	if info.MaxInstances > 0 {
		instances = min(instances, info.MaxInstances)
	}
	all := instances*(w.PoolSize()+info.Connections.PerInstance) + w.Clients*info.Connections.PerWaiter + spare
	for _, f := range w.Faults {
		if f.Kind().Place == workloads.InClients { // they have a target of their own
			clients := max(1, f.N)
			all += min(clients, workloads.MaxPool) + info.Connections.PerInstance + clients*info.Connections.PerWaiter
		}
	}
	return int64(all)
}

// filesPerConnection is how many open files a connection takes: with proxies in this
// process also their two.
func filesPerConnection(w workloads.Spec) int64 {
	for _, f := range w.Faults {
		if f.Kind().Place == workloads.OnNetwork {
			return 3
		}
	}
	return 1
}
