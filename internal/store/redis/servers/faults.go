package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/network"
	"github.com/lockbench/lockbench/workloads"
)

// Injector injects the faults of one run into the servers and into the network between the clients and the servers. The
// engine injects the faults of clients. Injector implements store.Faults.
type Injector struct {
	*network.Network
	server *Server
}

// Faults returns the Injector for a workload's faults. The caller closes it.
func (s *Server) Faults(all []workloads.Fault) store.Injector {
	return &Injector{network.New(all), s}
}

// Prepare implements store.Faults. It checks that a fault is possible and prepares the fault.
func (i *Injector) Prepare(ctx context.Context, fault workloads.Fault, where store.RunMarks) (store.Action, error) {
	var action store.Action
	var err error
	if fault.Kind().Place == workloads.OnNetwork {
		action, err = i.Network.Prepare(fault)
	} else {
		action, err = i.server.prepare(ctx, fault, where)
	}
	if err != nil {
		return store.Action{}, fmt.Errorf("%s: %w", fault.Name, err)
	}
	return action, nil
}

// targets returns the nodes that a fault hits, and the processes or containers of the nodes that lockbench started. In
// a replicated topology, node 0 means the current primary.
func (s *Server) targets(fault workloads.Fault) (hit []*node, own []*Own, err error) {
	if fault.Node == 0 && fault.N == 0 {
		hit = s.primaries()[:1]
	} else {
		last := fault.Node + max(fault.N, 1)
		if last > len(s.nodes) {
			return nil, nil, fmt.Errorf("there is no node %d: the last node is %d", last-1, len(s.nodes)-1)
		}
		hit = s.nodes[fault.Node:last]
	}
	for _, n := range hit {
		if n.own != nil {
			own = append(own, n.own)
		}
	}
	if fault.Kind().Owned && len(own) < len(hit) {
		err = errors.New("the fault is possible only on a Redis that lockbench started itself")
	}
	return hit, own, err
}

// prepare returns the Action of a fault of servers, or an error if the fault cannot hit its nodes.
func (s *Server) prepare(ctx context.Context, fault workloads.Fault, where store.RunMarks) (store.Action, error) {
	hit, own, err := s.targets(fault)
	if err != nil {
		return store.Action{}, err
	}
	each := func(do func(*Own, context.Context) error) func(context.Context) error {
		return func(ctx context.Context) error { return launch.Each(ctx, own, do) }
	}
	outage := func(most store.Outage) store.Outage {
		if s.spares(hit...) { // clients can get locks without these nodes
			return store.NoOutage
		}
		return most
	}
	// The counters of a workload are on the first of several independent nodes.
	loses := s.topology.Independent() == 1 || slices.Contains(hit, s.nodes[0])
	switch fault.Name {
	case workloads.Kill, workloads.NodeDown: // the nodes restart empty, or with the data of this instant
		back := (*Own).Restart
		if fault.Name == workloads.NodeDown || fault.Data == workloads.DataKeep {
			back, err = (*Own).RestartWithData, each((*Own).Save)(ctx)
		}
		return store.Action{
			Hit: each((*Own).Kill), End: each(back), Outage: outage(store.Throughout), Loses: loses,
		}, err
	case workloads.NodeRestartEmpty:
		return store.Action{Hit: each((*Own).Restart), Outage: outage(store.Briefly), Loses: loses}, nil
	case workloads.Pause, workloads.NodeHang: // the connections stay open
		return store.Action{Hit: each((*Own).Pause), End: each((*Own).Resume), Outage: outage(store.Throughout)}, nil
	case workloads.Failover:
		return s.failOver(ctx, hit[0], cmp.Or(time.Duration(fault.Lag), where.TTL), fault.Promote)
	case workloads.ClientPause:
		action := clientPause(hit[0], time.Duration(fault.For))
		action.Outage = outage(store.Throughout)
		return action, nil
	case workloads.ScriptFlush:
		return store.Action{Hit: s.everywhere(func(ctx context.Context, n *node) error {
			return n.observer.ScriptFlush(ctx).Err()
		})}, nil
	case workloads.KillSubscribers:
		return s.killSubscribers(ctx, where.Name)
	case workloads.NodeExpireEarly:
		return expire(ctx, hit, where)
	case workloads.NodeDrift:
		return drift(hit, where, fault.Percent), nil
	}
	return store.Action{}, fmt.Errorf("%s is not a fault of servers", fault.Name)
}

// failOver detaches a replica from the primary and waits for the duration lag. Then Hit kills the primary and promotes
// the replica that promote selects: the detached replica, the detached replica after a restart, or the replica that has
// received the most data. End restarts the old primary as a replica of the new primary.
func (s *Server) failOver(
	ctx context.Context, old *node, lag time.Duration, promote workloads.Promote,
) (store.Action, error) {
	lagging := s.nodes[0]
	if lagging == old {
		lagging = s.nodes[1]
	}
	if err := lagging.detach(ctx); err != nil {
		return store.Action{}, err
	}
	select {
	case <-time.After(lag):
	case <-ctx.Done():
		return store.Action{}, errors.Join(ctx.Err(), s.rejoin(context.WithoutCancel(ctx), lagging))
	}
	heir := func(context.Context) (*node, error) { return lagging, nil } //nolint:unparam // the functions below may fail
	switch promote {
	case workloads.PromoteAdvanced:
		heir = s.advanced
	case workloads.PromoteRestarted:
		heir = func(ctx context.Context) (*node, error) { return lagging, lagging.own.RestartWithData(ctx) }
	}
	return store.Action{
		Hit:    func(ctx context.Context) error { return s.failover(ctx, heir) },
		End:    old.own.Restart,
		Outage: store.Briefly,
		Loses:  true,
	}, nil
}

// clientPause makes a node execute no commands. The node does not execute CLIENT UNPAUSE either, so End waits until the
// pause is over.
func clientPause(n *node, lasts time.Duration) store.Action {
	var over time.Time
	return store.Action{
		Hit: func(ctx context.Context) error {
			over = time.Now().Add(lasts)
			return n.observer.Do(ctx, "CLIENT", "PAUSE", lasts.Milliseconds(), "ALL").Err()
		},
		End: func(ctx context.Context) error {
			time.Sleep(time.Until(over))
			return n.observer.Ping(ctx).Err()
		},
	}
}

// everywhere returns a function that calls do for every node, one after the other.
func (s *Server) everywhere(do func(context.Context, *node) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, n := range s.nodes {
			if err := do(ctx, n); err != nil {
				return fmt.Errorf("%s: %w", n.addr(), err)
			}
		}
		return nil
	}
}

// killSubscribers closes the connections of subscribers that have the given CLIENT name, and no other connections.
func (s *Server) killSubscribers(ctx context.Context, name string) (store.Action, error) {
	found := map[*node][]string{}
	err := s.everywhere(func(ctx context.Context, n *node) error {
		list, err := n.observer.Do(ctx, "CLIENT", "LIST", "TYPE", "pubsub").Text()
		for client := range replies.Clients(list) {
			if client["name"] == name {
				found[n] = append(found[n], client["id"])
			}
		}
		return err
	})(ctx)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w: the strategy has no subscribers", store.ErrNoTarget)
	}
	return store.Action{Hit: s.everywhere(func(ctx context.Context, n *node) error {
		for _, id := range found[n] { // a connection that has already ended causes no error
			if err := n.observer.ClientKillByFilter(ctx, "ID", id).Err(); err != nil {
				return err
			}
		}
		return nil
	})}, err
}

// expire deletes the run's keys that have a TTL, as on a node whose clock jumps ahead. Between two leases no such key
// exists, so expire waits until each node has such a key.
func expire(ctx context.Context, hit []*node, where store.RunMarks) (store.Action, error) {
	for {
		found := map[*node][]string{}
		for _, n := range hit {
			keys, err := n.leases(ctx, where)
			if err != nil {
				return store.Action{}, fmt.Errorf("find leases on %s: %w", n.addr(), err)
			}
			if len(keys) > 0 {
				found[n] = keys
			}
		}
		if len(found) == len(hit) {
			return store.Action{Hit: func(ctx context.Context) error {
				for n, keys := range found {
					if err := n.observer.Del(ctx, keys...).Err(); err != nil {
						return fmt.Errorf("end the leases on %s: %w", n.addr(), err)
					}
				}
				return nil
			}}, nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return store.Action{}, fmt.Errorf("no lease appeared that could expire: %w", ctx.Err())
		}
	}
}

// age reduces the TTL of every key in KEYS by ARGV[1] milliseconds.
var age = redis.NewScript(`
for _, key in ipairs(KEYS) do
	local left = redis.call('PTTL', key)
	if left > 0 then redis.call('PEXPIRE', key, left - ARGV[1]) end
end`)

// drift makes the run's leases expire as if the nodes' clocks ran fast by a percentage. It repeatedly shortens the TTLs
// by the time that such clocks gain.
func drift(hit []*node, where store.RunMarks, percent int) store.Action {
	var going *errgroup.Group
	var stop context.CancelFunc
	return store.Action{
		Hit: func(ctx context.Context) error {
			ctx, stop = context.WithCancel(ctx)
			going, ctx = errgroup.WithContext(ctx)
			for _, n := range hit {
				going.Go(func() error { return n.runFast(ctx, where, percent) })
			}
			return nil
		},
		End: func(context.Context) error {
			stop()
			return going.Wait()
		},
	}
}

// runFast shortens the TTLs by the time that a fast clock gains, until ctx ends.
func (n *node) runFast(ctx context.Context, where store.RunMarks, percent int) error {
	begun, lost := time.Now(), int64(0)
	for {
		gained := time.Since(begun).Milliseconds() * int64(percent) / 100
		if gained > lost {
			keys, err := n.keysOf(ctx, where)
			if err == nil && len(keys) > 0 {
				err = age.Eval(ctx, n.observer, keys, gained-lost).Err()
			}
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the fault is over
			}
			if err != nil && !errors.Is(err, redis.Nil) {
				return fmt.Errorf("make the clock of %s run fast: %w", n.addr(), err)
			}
			lost = gained
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}

// keysOf returns the run's keys on the node.
func (n *node) keysOf(ctx context.Context, where store.RunMarks) ([]string, error) {
	keys, err := scan(ctx, n.observer, "*"+escapeGlob(where.Mark)+"*")
	return slices.DeleteFunc(keys, func(key string) bool { return !where.Ours(key) }), err
}

// leases returns the run's keys on the node that have a TTL.
func (n *node) leases(ctx context.Context, where store.RunMarks) ([]string, error) {
	keys, err := n.keysOf(ctx, where)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, key := range keys {
		left, err := n.observer.PTTL(ctx, key).Result()
		if err != nil {
			return nil, err
		}
		if left > 0 {
			found = append(found, key)
		}
	}
	return found, nil
}

// Impossible returns the errors that Check reports for the faults on these servers.
func (s *Server) Impossible(all []workloads.Fault) []error {
	return Check(all, s.topology, s.Started(), s.allowed)
}

// Check returns an error for every fault that is impossible with this topology, or that the user has not permitted on
// their server. A zero topology is not known yet, so it excludes no fault.
func Check(all []workloads.Fault, topology Topology, started, allowed bool) []error {
	var wrong []error
	for _, f := range all {
		kind := f.Kind()
		name := "--fault " + f.Name
		switch {
		case kind.Place != workloads.OnServers:
		case !started && kind.Owned:
			wrong = append(wrong, fmt.Errorf("%s needs a Redis that lockbench starts itself", name))
		case !started && !allowed:
			wrong = append(wrong, fmt.Errorf(
				"%s would disturb a Redis that lockbench did not start: --allow-faults-on-my-server permits this", name))
		}
		if topology.Kind == "" {
			continue
		}
		if kind.Topology != "" && kind.Topology != string(topology.Kind) {
			wrong = append(wrong, fmt.Errorf("%s needs --topology %s:N, not %s", name, kind.Topology, topology))
			continue
		}
		last := f.Node + max(f.N, 1) - 1
		if count := topology.Servers(); kind.Takes("node") && last >= count {
			wrong = append(wrong, fmt.Errorf("%s hits node %d, but the last node is %d", name, last, count-1))
		}
	}
	return wrong
}
