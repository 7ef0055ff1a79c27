package disturb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/workloads"
)

// prepareServer returns the Action of a fault of the servers.
func (i *Injector) prepareServer(ctx context.Context, fault workloads.Fault, where store.RunMarks) (store.Action, error) {
	switch fault.Name {
	case workloads.Kill:
		return i.kill(ctx, []int{i.place(fault)}, fault.Data)
	case workloads.NodeDown:
		return i.kill(ctx, several(fault), workloads.DataKeep)
	case workloads.NodeRestartEmpty:
		return i.restartEmpty(several(fault))
	case workloads.Pause:
		return i.pause([]int{i.place(fault)})
	case workloads.NodeHang:
		return i.pause(several(fault))
	case workloads.Failover:
		return i.failover(ctx, cmp.Or(time.Duration(fault.Lag), where.TTL), fault.Promote)
	case workloads.ClientPause:
		return i.clientPause(i.place(fault), time.Duration(fault.For)), nil
	case workloads.ScriptFlush:
		return i.scriptFlush(), nil
	case workloads.KillSubscribers:
		return i.killSubscribers(ctx, where.Name)
	case workloads.NodeExpireEarly:
		return i.expire(ctx, several(fault), where)
	}
	return store.Action{}, fmt.Errorf("there is no fault %s of servers", fault.Name)
}

// kill kills nodes. They restart empty, or with the data that they had just before.
func (i *Injector) kill(ctx context.Context, places []int, data workloads.Data) (store.Action, error) {
	own, err := i.own(places)
	if err != nil {
		return store.Action{}, err
	}
	back := servers.Own.Restart
	if data == workloads.DataKeep {
		back = servers.Own.RestartWithData
		if err := each(own, servers.Own.Save)(ctx); err != nil {
			return store.Action{}, err
		}
	}
	return store.Action{
		Hit: each(own, servers.Own.Kill), End: each(own, back),
		Outage: i.outage(store.Throughout, places...), Loses: i.counts(places),
	}, nil
}

// counts says whether the workload's counters are on the nodes at these places.
func (i *Injector) counts(places []int) bool {
	return i.server.Independent() == 1 || slices.Contains(places, 0)
}

func (i *Injector) restartEmpty(places []int) (store.Action, error) {
	own, err := i.own(places)
	return store.Action{Hit: each(own, servers.Own.Restart), Outage: i.outage(store.Briefly, places...), Loses: i.counts(places)}, err
}

// pause stops nodes; their connections remain open.
func (i *Injector) pause(places []int) (store.Action, error) {
	own, err := i.own(places)
	return store.Action{
		Hit: each(own, servers.Own.Pause), End: each(own, servers.Own.Resume), Outage: i.outage(store.Throughout, places...),
	}, err
}

// failover detaches a replica from the primary for a while, then kills the primary and promotes
// that replica, or the one that has received the most. The old primary returns as a replica of
// the new one.
func (i *Injector) failover(ctx context.Context, lag time.Duration, promote workloads.Promote) (store.Action, error) {
	old, lagging := i.server.Primary(), 0
	if old == 0 {
		lagging = 1
	}
	own, err := i.own([]int{old, lagging})
	if err != nil {
		return store.Action{}, err
	}
	if err := i.server.Detach(ctx, lagging); err != nil {
		return store.Action{}, err
	}
	select {
	case <-time.After(lag):
	case <-ctx.Done():
		return store.Action{}, errors.Join(ctx.Err(), i.server.Follow(context.WithoutCancel(ctx), lagging))
	}
	heir := func(context.Context) (int, error) { return lagging, nil }
	if promote == workloads.PromoteAdvanced {
		heir = i.server.Advanced
	}
	return store.Action{
		Hit:    func(ctx context.Context) error { return i.server.Failover(ctx, heir) },
		End:    own[0].Restart,
		Outage: store.Briefly,
		Loses:  true,
	}, nil
}

// clientPause makes a node execute no commands. The node does not execute CLIENT UNPAUSE
// either, so End waits for the end of the pause.
func (i *Injector) clientPause(place int, lasts time.Duration) store.Action {
	var over time.Time
	return store.Action{
		Hit: func(ctx context.Context) error {
			over = time.Now().Add(lasts)
			return i.server.Ask(ctx, place, func(ctx context.Context, node redis.UniversalClient) error {
				return node.Do(ctx, "CLIENT", "PAUSE", lasts.Milliseconds(), "ALL").Err()
			})
		},
		End: func(ctx context.Context) error {
			time.Sleep(time.Until(over))
			return i.server.Ask(ctx, place, func(ctx context.Context, node redis.UniversalClient) error { return node.Ping(ctx).Err() })
		},
		Outage: i.outage(store.Throughout, place),
	}
}

// everywhere returns a function that calls do for every node.
func (i *Injector) everywhere(do func(context.Context, int, redis.UniversalClient) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for place := range i.server.Count() {
			err := i.server.Ask(ctx, place, func(ctx context.Context, node redis.UniversalClient) error { return do(ctx, place, node) })
			if err != nil {
				return fmt.Errorf("node %d: %w", place, err)
			}
		}
		return nil
	}
}

func (i *Injector) scriptFlush() store.Action {
	return store.Action{Hit: i.everywhere(func(ctx context.Context, _ int, node redis.UniversalClient) error { return node.ScriptFlush(ctx).Err() })}
}

// killSubscribers closes the subscribers' connections of that name, and no others.
func (i *Injector) killSubscribers(ctx context.Context, name string) (store.Action, error) {
	found := map[int][]string{}
	err := i.everywhere(func(ctx context.Context, place int, node redis.UniversalClient) error {
		list, err := node.Do(ctx, "CLIENT", "LIST", "TYPE", "pubsub").Text()
		for client := range replies.Clients(list) {
			if client["name"] == name {
				found[place] = append(found[place], client["id"])
			}
		}
		return err
	})(ctx)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%w: the strategy has no subscribers", store.ErrNoTarget)
	}
	return store.Action{Hit: i.everywhere(func(ctx context.Context, place int, node redis.UniversalClient) error {
		for _, id := range found[place] { // a connection that is gone already is no error
			if err := node.ClientKillByFilter(ctx, "ID", id).Err(); err != nil {
				return err
			}
		}
		return nil
	})}, err
}

// expire deletes the run's keys that have a TTL, as a node does whose clock jumps
// ahead. Between two leases there are none: then it waits until all the nodes have some.
func (i *Injector) expire(ctx context.Context, places []int, where store.RunMarks) (store.Action, error) {
	for {
		found := map[int][]string{}
		for _, place := range places {
			err := i.server.Ask(ctx, place, func(ctx context.Context, node redis.UniversalClient) error {
				var err error
				found[place], err = leases(ctx, node, where)
				return err
			})
			if err != nil {
				return store.Action{}, fmt.Errorf("look for leases on node %d: %w", place, err)
			}
			if len(found[place]) == 0 {
				break
			}
		}
		if len(found[places[len(places)-1]]) > 0 {
			return store.Action{Hit: func(ctx context.Context) error { return i.remove(ctx, found) }}, nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return store.Action{}, fmt.Errorf("there was no lease that could run out: %w", ctx.Err())
		}
	}
}

// leases returns the run's keys that have a TTL.
func leases(ctx context.Context, node redis.UniversalClient, where store.RunMarks) ([]string, error) {
	var found []string
	keys := node.Scan(ctx, 0, "*"+servers.EscapeGlob(where.Mark)+"*", 1000).Iterator()
	for keys.Next(ctx) {
		if !where.Ours(keys.Val()) {
			continue
		}
		left, err := node.PTTL(ctx, keys.Val()).Result()
		if err != nil {
			return nil, err
		}
		if left > 0 {
			found = append(found, keys.Val())
		}
	}
	return found, keys.Err()
}

// remove deletes keys, which are listed by the node's place.
func (i *Injector) remove(ctx context.Context, found map[int][]string) error {
	for place, keys := range found {
		err := i.server.Ask(ctx, place, func(ctx context.Context, node redis.UniversalClient) error { return node.Del(ctx, keys...).Err() })
		if err != nil {
			return fmt.Errorf("end the leases on node %d: %w", place, err)
		}
	}
	return nil
}
