package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/workloads"
)

// injector injects faults of the servers and of the network; it is a store.Injector.
type injector struct {
	server  *Server
	network *network.Network
}

// Faults returns an Injector for the faults of a workload.
func (s *Server) Faults(all []workloads.Fault) store.Injector { return injector{s, network.New(all)} }

// Detour uses proxies if there are faults of the network.
func (i injector) Detour(instance int) store.Through { return i.network.Detour(instance) }

// Close closes the proxies.
func (i injector) Close() { i.network.Close() }

// Prepare finds the servers to hit, see store.Faults.
func (i injector) Prepare(ctx context.Context, fault workloads.Fault, _ store.RunMarks) (store.Action, error) {
	if err := i.server.impossible(fault); err != nil {
		return store.Action{}, fmt.Errorf("%s %w", fault.Name, err)
	}
	if fault.Kind().Place == workloads.OnNetwork {
		action, err := i.network.Prepare(fault)
		if err != nil {
			return action, fmt.Errorf("%s: %w", fault.Name, err)
		}
		return action, nil
	}
	members := ensemble.Faults{Members: i.server.own, Leader: i.server.leader}
	action, err := members.Prepare(ctx, fault)
	if err != nil {
		return store.Action{}, fmt.Errorf("%s: %w", fault.Name, err)
	}
	if action.Loses {
		again := action.End
		action.End = func(ctx context.Context) error { return errors.Join(again(ctx), i.server.watching.renew(ctx)) }
	}
	return action, nil
}

// leader returns the leader that is not away; nil without one.
func (s *Server) leader(ctx context.Context, away []launch.Started) launch.Started {
	for _, o := range s.own {
		if slices.Contains(away, o) {
			continue
		}
		if status, err := look(ctx, s.observe, o.Addr()); err == nil && status.mode == "leader" {
			return o
		}
	}
	return nil
}
