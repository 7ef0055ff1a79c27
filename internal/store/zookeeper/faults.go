package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/workloads"
)

// injector brings faults of the servers and of the way to them about, a store.Injector.
type injector struct {
	server  *Server
	network *network.Network
}

// Faults bring those of a workload about.
func (s *Server) Faults(all []workloads.Fault) store.Injector { return injector{s, network.New(all)} }

// Detour leads through proxies where there are faults of the network.
func (i injector) Detour(instance int) store.Through { return i.network.Detour(instance) }

// Close ends the proxies.
func (i injector) Close() { i.network.Close() }

// Prepare looks for the servers that are hit, see store.Faults.
func (i injector) Prepare(ctx context.Context, fault workloads.Fault, _ store.Scene) (store.Blow, error) {
	if why := i.server.impossible(fault); why != "" {
		return store.Blow{}, fmt.Errorf("%s %s", fault.Name, why)
	}
	if fault.Kind().Place == workloads.OnNetwork {
		blow, err := i.network.Prepare(fault)
		if err != nil {
			return blow, fmt.Errorf("%s: %w", fault.Name, err)
		}
		return blow, nil
	}
	hit := i.server.hit(ctx, fault)
	blow := store.Blow{Outage: store.Throughout}
	if len(hit) <= (len(i.server.own)-1)/2 { // the others go on, with a new leader if they have to
		blow.Outage = store.Briefly
	}
	switch fault.Name {
	case workloads.Kill, workloads.NodeDown:
		blow.Hit, blow.End = each(hit, own.kill), each(hit, own.again)
		if fault.Name == workloads.Kill && fault.Data == workloads.DataLose {
			lose := each(hit, own.lose)
			blow.Loses = true
			blow.End = func(ctx context.Context) error { return errors.Join(lose(ctx), i.server.watching.renew(ctx)) }
		}
	default:
		blow.Hit, blow.End = each(hit, own.pause), each(hit, own.resume)
	}
	if blow.Outage == store.Briefly {
		strike := blow.Hit
		blow.Hit = func(ctx context.Context) error {
			if err := strike(ctx); err != nil {
				return err
			}
			return i.server.led(ctx, hit)
		}
	}
	return blow, nil
}

// led waits until a server that is not among those leads the others.
func (s *Server) led(ctx context.Context, away []own) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	for {
		for _, o := range s.own {
			if slices.ContainsFunc(away, func(a own) bool { return a.Process == o.Process }) {
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

func (o own) kill(ctx context.Context) error   { return o.Kill(ctx) }
func (o own) again(ctx context.Context) error  { return o.Again(ctx) }
func (o own) pause(ctx context.Context) error  { return o.Pause(ctx) }
func (o own) resume(ctx context.Context) error { return o.Resume(ctx) }

// hit are the servers that are: where kill and pause name the first, the leader is.
func (s *Server) hit(ctx context.Context, fault workloads.Fault) []own {
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

// each does something to several servers at the same time; it names all that goes wrong.
func each(all []own, do func(own, context.Context) error) func(context.Context) error {
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
