// Package ensemble contains the common code of stores that run as a single server or as an ensemble, such as etcd and
// ZooKeeper. An ensemble works as long as a majority of its members runs. The package checks the options, starts the
// members together, and injects the faults.
package ensemble

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/workloads"
)

// Faults injects the faults of one run into a single server or an ensemble, and into the network between the clients
// and the servers. It implements store.Injector.
type Faults struct {
	Layout
	*network.Network
	Own []launch.Started
	// Leader returns the current leader. It returns nil if there is no leader or the leader is in away.
	Leader func(ctx context.Context, away []launch.Started) launch.Started
}

// Prepare implements store.Faults. It checks that a fault is possible and prepares the fault.
func (e Faults) Prepare(ctx context.Context, fault workloads.Fault, _ store.RunMarks) (action store.Action, err error) {
	if err := e.impossible(fault); err != nil {
		return action, fmt.Errorf("%s %w", fault.Name, err)
	}
	if fault.Kind().Place == workloads.OnNetwork {
		action, err = e.Network.Prepare(fault)
	} else {
		action, err = e.onServers(ctx, fault)
	}
	if err != nil {
		return action, fmt.Errorf("%s: %w", fault.Name, err)
	}
	return action, nil
}

// onServers prepares a fault that kills or pauses servers. If a majority of the members keeps running, Hit returns only
// when these members have a leader.
func (e Faults) onServers(ctx context.Context, fault workloads.Fault) (store.Action, error) {
	hit, err := e.targets(ctx, fault)
	if err != nil {
		return store.Action{}, err
	}
	begin, end := launch.Started.Kill, launch.Started.Again
	loses := fault.Name == workloads.Kill && fault.Data == workloads.DataLose
	switch {
	case loses:
		end = launch.Started.Anew
	case fault.Name == workloads.Pause, fault.Name == workloads.NodeHang:
		begin, end = launch.Started.Pause, launch.Started.Resume
	}
	action := store.Action{
		Hit:    func(ctx context.Context) error { return launch.Each(ctx, hit, begin) },
		End:    func(ctx context.Context) error { return launch.Each(context.WithoutCancel(ctx), hit, end) },
		Outage: store.Throughout, Loses: loses,
	}
	if most := len(e.Own)/2 + 1; len(e.Own)-len(hit) >= most {
		action.Outage = store.Briefly
		action.Hit = func(ctx context.Context) error {
			if err := launch.Each(ctx, hit, begin); err != nil {
				return err
			}
			_, err := e.leader(ctx, hit)
			return err
		}
	}
	return action, nil
}

// targets returns the members that a fault hits. In an ensemble, the node number 0 of a fault means the leader.
func (e Faults) targets(ctx context.Context, fault workloads.Fault) ([]launch.Started, error) {
	places := e.Own
	if len(places) > 1 {
		leader, err := e.leader(ctx, nil)
		if err != nil {
			return nil, err
		}
		places = slices.DeleteFunc(slices.Clone(places), func(m launch.Started) bool { return m == leader })
		places = slices.Insert(places, 0, leader)
	}
	return places[fault.Node : fault.Node+max(fault.N, 1)], nil
}

// leader waits for a leader that is not in away. It returns an error after launch.StartTimeout.
func (e Faults) leader(ctx context.Context, away []launch.Started) (launch.Started, error) {
	ctx, cancel := context.WithTimeout(ctx, launch.StartTimeout)
	defer cancel()
	for {
		if leader := e.Leader(ctx, away); leader != nil {
			return leader, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("find the leader: the members have no leader: %w", ctx.Err())
		}
	}
}
