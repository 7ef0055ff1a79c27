// Package disturb has things go wrong on the servers of a run, and on the way to
// them, on purpose. The faults themselves are data, see workloads.Fault; those that
// befall clients are the engine's.
package disturb

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/workloads"
)

// Injector brings the faults of one run about. It is a store.Faults.
type Injector struct {
	server  *servers.Server
	network *network.Network
}

// New prepares for a workload's faults on these servers. The caller closes it.
func New(server *servers.Server, all []workloads.Fault) *Injector {
	return &Injector{server: server, network: network.New(all)}
}

// Detour leads through proxies where there are faults of the network.
func (i *Injector) Detour(instance int) store.Through { return i.network.Detour(instance) }

// Close ends the proxies.
func (i *Injector) Close() { i.network.Close() }

// Prepare does what precedes a fault, see store.Faults.
func (i *Injector) Prepare(ctx context.Context, fault workloads.Fault, where store.RunMarks) (store.Action, error) {
	var action store.Action
	var err error
	if fault.Kind().Place == workloads.OnNetwork {
		action, err = i.network.Prepare(fault)
	} else {
		action, err = i.prepareServer(ctx, fault, where)
	}
	if err != nil {
		return store.Action{}, fmt.Errorf("%s: %w", fault.Name, err)
	}
	return action, nil
}

// place is that of the node that is hit. The first one of a replicated topology is
// whichever is the primary.
func (i *Injector) place(fault workloads.Fault) int {
	if fault.Node == 0 {
		return i.server.FirstHit()
	}
	return fault.Node
}

// several are the places of the nodes that are hit.
func several(fault workloads.Fault) []int {
	var places []int
	for n := range fault.N {
		places = append(places, fault.Node+n)
	}
	return places
}

// own are nodes that lockbench started itself.
func (i *Injector) own(places []int) ([]servers.Own, error) {
	all := i.server.Owned()
	var own []servers.Own
	for _, place := range places {
		if place >= len(all) {
			return nil, fmt.Errorf("there is no node %d that lockbench started itself, there are %d", place, len(all))
		}
		own = append(own, all[place])
	}
	return own, nil
}

// outage is how long locks cannot be had while these nodes are away.
func (i *Injector) outage(most store.Outage, places ...int) store.Outage {
	if i.server.CanSpare(places...) {
		return store.NoOutage
	}
	return most
}

// each is something to be done on several nodes at the same time; it names all that
// goes wrong.
func each(own []servers.Own, do func(servers.Own, context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		wrong := make([]error, len(own))
		var all sync.WaitGroup
		for n, o := range own {
			all.Go(func() {
				if err := do(o, ctx); err != nil {
					wrong[n] = fmt.Errorf("%s: %w", o.Addr(), err)
				}
			})
		}
		all.Wait()
		return errors.Join(wrong...)
	}
}
