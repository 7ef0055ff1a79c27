// Package ensemble starts the members of an ensemble, servers that serve as long as most of them run,
// such as etcd's and ZooKeeper's, and injects their faults.
package ensemble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// Impossible returns why a fault of servers is not possible on so many members of a store, as text
// that follows the fault's name; nil if it is. started says whether lockbench starts them.
func Impossible(fault workloads.Fault, storeName string, members int, started bool) error {
	switch fault.Name {
	case workloads.Kill, workloads.Pause, workloads.NodeDown, workloads.NodeHang:
	default:
		return fmt.Errorf("is of Redis, and not of %s", storeName)
	}
	switch last := fault.Node + max(fault.N, 1) - 1; {
	case !started:
		return fmt.Errorf("needs a server of %s that lockbench starts itself", storeName)
	case fault.Kind().Topology != "" && members == 1:
		return fmt.Errorf("needs several members: --topology %s:3", strings.ToLower(storeName))
	case last >= members:
		return fmt.Errorf("there is no member %d, of %d from 0 on", last, members)
	case fault.Name == workloads.Kill && fault.Data == workloads.DataLose && members > 1:
		return errors.New("cannot bring a member back without its data, which the others count on: data=keep")
	}
	return nil
}

// AllImpossible returns an error for every fault for which one returns why it is not possible.
func AllImpossible(all []workloads.Fault, one func(workloads.Fault) error) []error {
	var wrong []error
	for _, f := range all {
		if err := one(f); err != nil {
			wrong = append(wrong, fmt.Errorf("--fault %s %w", f.Name, err))
		}
	}
	return wrong
}

// Faults injects the faults into one ensemble, or into a server that is alone.
type Faults struct {
	Members []launch.Started
	// Leader returns the present leader that is not away; nil if there is none.
	Leader func(ctx context.Context, away []launch.Started) launch.Started
}

// Prepare finds the members to hit, see store.Faults: place 0 is the leader, and the others follow. If
// most members remain, Hit returns when they have a leader.
func (e Faults) Prepare(ctx context.Context, fault workloads.Fault) (store.Action, error) {
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
	if most := len(e.Members)/2 + 1; len(e.Members)-len(hit) >= most {
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

// targets returns the members to hit.
func (e Faults) targets(ctx context.Context, fault workloads.Fault) ([]launch.Started, error) {
	places := e.Members
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

// leader waits for a leader that is not away.
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
			return nil, fmt.Errorf("find the leader: there is no leader: %w", ctx.Err())
		}
	}
}
