package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
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
	if why := i.server.impossible(fault); why != "" {
		return store.Action{}, fmt.Errorf("%s %s", fault.Name, why)
	}
	if fault.Kind().Place == workloads.OnNetwork {
		action, err := i.network.Prepare(fault)
		if err != nil {
			return action, fmt.Errorf("%s: %w", fault.Name, err)
		}
		return action, nil
	}
	hit := i.server.hit(ctx, fault)
	action := store.Action{Outage: store.Throughout}
	if len(hit) <= (len(i.server.own)-1)/2 { // the others continue, if necessary with a new leader
		action.Outage = store.Briefly
	}
	switch fault.Name {
	case workloads.Kill, workloads.NodeDown:
		action.Hit, action.End = each(hit, i.server.kill()), each(hit, launch.Started.Again)
		if fault.Name == workloads.Kill && fault.Data == workloads.DataLose {
			lose := each(hit, launch.Started.Anew)
			action.Loses = true
			action.End = func(ctx context.Context) error { return errors.Join(lose(ctx), i.server.watching.renew(ctx)) }
		}
	default:
		action.Hit, action.End = each(hit, launch.Started.Pause), each(hit, launch.Started.Resume)
	}
	if action.Outage == store.Briefly {
		strike := action.Hit
		action.Hit = func(ctx context.Context) error {
			if err := strike(ctx); err != nil {
				return err
			}
			return i.server.led(ctx, hit)
		}
	}
	return action, nil
}

// kill returns what kills a server that lockbench started, after noting the CPU time that it used.
func (s *Server) kill() func(launch.Started, context.Context) error {
	return func(o launch.Started, ctx context.Context) error {
		s.counters[slices.Index(s.own, o)].entered(o)
		return o.Kill(ctx)
	}
}

// led waits until the remaining servers have a leader.
func (s *Server) led(ctx context.Context, away []launch.Started) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	for {
		for _, o := range s.own {
			if slices.Contains(away, o) {
				continue
			}
			if status, err := look(ctx, s.observed.dial, o.Addr()); err == nil && status.mode == "leader" {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("wait for another leader: %w", ctx.Err())
		}
	}
}

// hit returns the servers to hit; for kill and pause, place 0 means the leader.
func (s *Server) hit(ctx context.Context, fault workloads.Fault) []launch.Started {
	first := fault.Node
	if first == 0 && !fault.Kind().Takes("n") {
		for place, o := range s.own {
			if status, err := look(ctx, s.observed.dial, o.Addr()); err == nil && status.mode == "leader" {
				first = place
			}
		}
	}
	return s.own[first : first+max(fault.N, 1)]
}

// each returns a function that calls do concurrently for several servers and joins the errors.
func each(all []launch.Started, do func(launch.Started, context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		wrong := make([]error, len(all))
		var doing sync.WaitGroup
		for n, o := range all {
			doing.Go(func() {
				if err := do(o, ctx); err != nil {
					wrong[n] = fmt.Errorf("%s: %w", o.Addr(), err)
				}
			})
		}
		doing.Wait()
		return errors.Join(wrong...)
	}
}
