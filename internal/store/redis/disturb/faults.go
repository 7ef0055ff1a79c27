// Package disturb injects faults on the servers of a run and on the network to them.
// workloads.Fault defines the faults; the engine injects those of clients.
package disturb

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/workloads"
)

// Injector injects the faults of one run. It is a store.Faults.
type Injector struct {
	server  *servers.Server
	network *network.Network
}

// New prepares for a workload's faults on these servers. The caller closes it.
func New(server *servers.Server, all []workloads.Fault) *Injector {
	return &Injector{server: server, network: network.New(all)}
}

// Detour uses proxies if there are faults of the network.
func (i *Injector) Detour(instance int) store.Through { return i.network.Detour(instance) }

// Close closes the proxies.
func (i *Injector) Close() { i.network.Close() }

// Prepare does what must precede a fault, see store.Faults.
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

// place returns the place of the node to hit. In a replicated topology node 0 means the current
// primary.
func (i *Injector) place(fault workloads.Fault) int {
	if fault.Node == 0 {
		return i.server.FirstHit()
	}
	return fault.Node
}

// several returns the places of the nodes to hit.
func several(fault workloads.Fault) []int {
	var places []int
	for n := range fault.N {
		places = append(places, fault.Node+n)
	}
	return places
}

// own returns the nodes at these places; lockbench must have started them.
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

// outage returns the outage while these nodes are away: none if locks can be had without them.
func (i *Injector) outage(most store.Outage, places ...int) store.Outage {
	if i.server.CanSpare(places...) {
		return store.NoOutage
	}
	return most
}

// each returns a function that calls do for several nodes, see launch.Each.
func each(own []servers.Own, do func(servers.Own, context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return launch.Each(ctx, own, do) }
}
