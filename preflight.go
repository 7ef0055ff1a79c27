package lockbench

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
	"github.com/lockbench/lockbench/workloads/spec"
)

// spare connections: the observer's own, and those of a pool being replaced.
const spare = 16

// preflight names every limit that is too small for the plan before any client
// starts: a run that fails at its nine thousandth connection wastes an hour.
func (s *session) preflight(ctx context.Context) error {
	if s.server == nil {
		return nil
	}
	limits, err := s.server.Limits(ctx)
	if err != nil {
		return fmt.Errorf("read the server's limits: %w", err)
	}
	files, err := maxOpenFiles()
	if err != nil {
		return fmt.Errorf("read the limit of open files: %w", err)
	}
	var faults []error
	for _, v := range s.plan.Strategies {
		if s.unfit(v.Info()) != "" {
			continue
		}
		needed, clients := int64(0), 0
		for _, point := range s.plan.points() {
			if n := connections(v.Info(), point.Workload); n > needed {
				needed, clients = n, point.Workload.Clients
			}
		}
		if free := limits.MaxClients - limits.Connected; limits.MaxClients > 0 && needed > free {
			faults = append(faults, fmt.Errorf("%s with --clients %d needs %d connections, the server has %d free (maxclients %d)",
				v.Name(), clients, needed, free, limits.MaxClients))
		}
		if opened := needed*int64(s.server.Primaries())*filesPerConnection(s.report.Workload) + spare; files > 0 && opened > files {
			faults = append(faults, fmt.Errorf("%s with --clients %d needs %d open files, this process may have %d (ulimit -n)",
				v.Name(), clients, opened, files))
		}
	}
	if len(faults) == 0 {
		faults = s.try(ctx)
	}
	if len(faults) == 0 {
		return nil
	}
	return limited{errors.Join(faults...)}
}

// try has every strategy acquire and release once, and returns what the servers refuse:
// what lacks a right would otherwise fail in the middle of a run, or only when it has to
// wait.
func (s *session) try(ctx context.Context) []error {
	var faults []error
	for _, v := range s.plan.Strategies {
		if s.unfit(v.Info()) != "" || ctx.Err() != nil {
			continue
		}
		job := workloads.Job{Strategy: v, Workload: s.report.Workload, Target: s.target(), Session: s.id, Generator: s.generator}
		if err := job.Try(ctx); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// limited is an ErrConfig that says one limit a line and no more.
type limited struct{ error }

func (l limited) Is(target error) bool { return target == ErrConfig }

// Unwrap gives the limits one by one.
func (l limited) Unwrap() []error { return l.error.(interface{ Unwrap() []error }).Unwrap() }

// connections is how many a strategy opens to a node at most.
func connections(info strategies.Info, w spec.Spec) int64 {
	if !workloads.NeedsRedis(info, w) {
		return 0
	}
	instances := w.Instances
	if info.MaxInstances > 0 {
		instances = min(instances, info.MaxInstances)
	}
	all := instances*(w.PoolSize()+info.Connections.PerInstance) + w.Clients*info.Connections.PerWaiter + spare
	for _, f := range w.Faults {
		if f.Kind().Place == spec.InClients { // they have a victim
			clients := max(1, f.N)
			all += min(clients, spec.MaxPool) + info.Connections.PerInstance + clients*info.Connections.PerWaiter
		}
	}
	return int64(all)
}

// filesPerConnection is how many open files a connection takes: with proxies in this
// process also their two.
func filesPerConnection(w spec.Spec) int64 {
	for _, f := range w.Faults {
		if f.Kind().Place == spec.OnNetwork {
			return 3
		}
	}
	return 1
}
