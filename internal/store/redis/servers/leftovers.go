package servers

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/replies"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

// Subscriptions counts the channel, pattern and sharded channel subscriptions of all connections. It returns nil if a
// server refuses to list them.
func (s *Server) Subscriptions(ctx context.Context) *int64 {
	sum := new(int64)
	err := gather(ctx, s, func(ctx context.Context, n *node) (string, error) {
		list, err := n.observer.Do(ctx, "CLIENT", "LIST", "TYPE", "pubsub").Text()
		return list, unreachable("list the subscribers of", n, err)
	}, func(list string) {
		for client := range replies.Clients(list) {
			for _, count := range []string{"sub", "psub", "ssub"} {
				n, _ := strconv.ParseInt(client[count], 10, 64)
				*sum += n
			}
		}
	})
	if err != nil {
		return nil
	}
	return sum
}

// Leftovers returns, for all nodes, the keys and channels whose names contain mark, and the connections with the given
// CLIENT name. It omits what a server refuses to list.
func (s *Server) Leftovers(ctx context.Context, mark, name string) (results.Leftovers, error) {
	var left results.Leftovers
	pattern := "*" + escapeGlob(mark) + "*"
	err := gather(ctx, s, func(ctx context.Context, n *node) (results.Leftovers, error) {
		return n.leftovers(ctx, pattern, name, s.roleOf(n) != replica)
	}, func(here results.Leftovers) {
		left.Keys = append(left.Keys, here.Keys...)
		left.Channels = append(left.Channels, here.Channels...)
		left.Connections = append(left.Connections, here.Connections...)
	})
	if err != nil {
		return results.Leftovers{}, err
	}
	for _, names := range []*[]string{&left.Keys, &left.Channels, &left.Connections} {
		slices.Sort(*names)
		*names = slices.Compact(*names) // independent nodes have the same keys
	}
	return left, nil
}

// leftovers returns the leftovers on one node. It does not search a replica for keys, because a replica has the keys of
// its primary.
func (n *node) leftovers(ctx context.Context, pattern, name string, keys bool) (results.Leftovers, error) {
	var left results.Leftovers
	var err error
	if keys {
		if left.Keys, err = scan(ctx, n.observer, pattern); err != nil {
			return left, unreachable("scan the keys of", n, err)
		}
	}
	for _, ask := range []string{"CHANNELS", "SHARDCHANNELS"} { // SHARDCHANNELS needs Redis 7
		channels, err := n.observer.Do(ctx, "PUBSUB", ask, pattern).StringSlice()
		if err != nil && !refused(err) {
			return left, unreachable("list the channels of", n, err)
		}
		left.Channels = append(left.Channels, channels...)
	}
	list, err := n.observer.ClientList(ctx).Result()
	if err != nil && !refused(err) {
		return left, unreachable("list the connections of", n, err)
	}
	for client := range replies.Clients(list) {
		if client["name"] == name {
			left.Connections = append(left.Connections, fmt.Sprintf("connection %s from %s, last command %s, age %s s",
				client["id"], client["addr"], client["cmd"], client["age"]))
		}
	}
	return left, nil
}

// Connected lists the CLIENT names that begin with prefix, each once.
func (s *Server) Connected(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	err := gather(ctx, s, func(ctx context.Context, n *node) ([]string, error) {
		here, err := n.connected(ctx)
		return here, unreachable("list the connections of", n, err)
	}, func(here []string) { names = append(names, here...) })
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	return slices.Compact(names), err
}

// connected lists the CLIENT names of a node's connections.
func (n *node) connected(ctx context.Context) (names []string, err error) {
	list, err := n.observer.ClientList(ctx).Result()
	for client := range replies.Clients(list) {
		names = append(names, client["name"])
	}
	return names, err
}

// RunIDs returns the run ID of each node's Redis process. A restart changes the ID. "" means not known.
func (s *Server) RunIDs() []string {
	var ids []string
	for _, n := range s.nodes {
		ids = append(ids, n.runID)
	}
	return ids
}

// Remove deletes keys on every node that may have them.
func (s *Server) Remove(ctx context.Context, keys []string) error {
	if s.cluster != nil {
		if err := remove(ctx, s.cluster, keys); err != nil {
			return fmt.Errorf("remove keys from the cluster: %w", err)
		}
		return nil
	}
	return s.onEveryNode(ctx, s.primaries(), func(ctx context.Context, n *node) error {
		return unreachable("remove keys from", n, remove(ctx, n.observer, keys))
	})
}

// unreachable wraps an error with the text `what`, which names the failed operation, with the node's address, and with
// ErrUnreachable. It omits ErrUnreachable if the node refused a command. A nil error stays nil.
func unreachable(what string, n *node, err error) error {
	switch {
	case err == nil:
		return nil
	case refused(err):
		return fmt.Errorf("%s %s: %w", what, n.addr(), err)
	}
	return fmt.Errorf("%w: %s %s: %w", ErrUnreachable, what, n.addr(), err)
}

// remove deletes each key with a separate command, because in a cluster a command must not name keys in several slots.
func remove(ctx context.Context, client redis.UniversalClient, keys []string) error {
	for batch := range slices.Chunk(keys, 500) {
		_, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, key := range batch {
				pipe.Del(ctx, key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// scan lists the keys that match a pattern, each once.
func scan(ctx context.Context, client redis.UniversalClient, pattern string) ([]string, error) {
	var keys []string
	iterator := client.Scan(ctx, 0, pattern, 1000).Iterator()
	for iterator.Next(ctx) {
		keys = append(keys, iterator.Val())
	}
	slices.Sort(keys)
	return slices.Compact(keys), iterator.Err()
}

// escapeGlob escapes a text for use in Redis's glob patterns.
func escapeGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(text)
}

// Sweep implements store.Sweeper. It removes the keys of dead runs.
func (s *Server) Sweep(ctx context.Context, swept *store.Swept) {
	for _, n := range s.primaries() {
		n.keys().Sweep(ctx, swept)
	}
}

// keys returns the functions with which a search for leftovers accesses the keys on a node.
func (n *node) keys() store.Keys {
	return store.Keys{
		Addr: n.addr(),
		Scan: func(ctx context.Context, visit func(string)) error {
			found, err := scan(ctx, n.observer, "*lockbench:{*")
			for _, key := range found {
				visit(key)
			}
			return err
		},
		Connected: n.connected,
		Remove:    func(ctx context.Context, keys []string) error { return remove(ctx, n.observer, keys) },
	}
}
