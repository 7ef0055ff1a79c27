package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// keys returns the keys below the root for which fits is true, with the names of their nodes.
func keys(ctx context.Context, k *link, fits func(key string) bool) (nodes, found []string, err error) {
	session, err := k.live(ctx)
	if err != nil {
		return nil, nil, err
	}
	root := k.node.Root
	if root == "" {
		root = "/"
	}
	if !k.node.Standalone { // this server may lag behind the others
		if err := session.Sync(ctx, root); err != nil {
			return nil, nil, err
		}
	}
	names, err := session.Children(ctx, root)
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		if key, ok := gozk.Key(name); ok && key != presence && fits(key) {
			nodes, found = append(nodes, name), append(found, key)
		}
	}
	return nodes, found, nil
}

// Leftovers returns the keys that contain mark, and the nodes below them as KEY/NODE, and this process's
// connections of that name.
func (s *Server) Leftovers(ctx context.Context, mark, name string) (results.Leftovers, error) {
	nodes, found, err := keys(ctx, s.watching, func(key string) bool { return strings.Contains(key, mark) })
	if err != nil {
		return results.Leftovers{}, fmt.Errorf("%w: look for keys: %w", ErrUnreachable, err)
	}
	left := results.Leftovers{Keys: found, Connections: s.of(name)}
	for i, node := range nodes {
		session, err := s.watching.live(ctx)
		var below []string
		if err == nil {
			below, err = session.Children(ctx, s.node.Root+"/"+node)
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return left, fmt.Errorf("%w: look for nodes below %s: %w", ErrUnreachable, node, err)
		}
		for _, child := range below {
			left.Keys = append(left.Keys, found[i]+"/"+child)
		}
	}
	return left, nil
}

// Remove deletes keys with everything below them, so also what Leftovers lists as KEY/NODE.
func (s *Server) Remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		session, err := s.watching.live(ctx)
		if err == nil {
			err = remove(ctx, session, s.node.Path(key))
		}
		if err != nil {
			return fmt.Errorf("%w: remove %s: %w", ErrUnreachable, key, err)
		}
	}
	return nil
}

// remove deletes a node and everything below it.
func remove(ctx context.Context, session *gozk.Session, path string) error {
	for {
		err := session.Delete(ctx, path)
		if !errors.Is(err, zk.ErrNotEmpty) {
			if errors.Is(err, zk.ErrNoNode) {
				return nil
			}
			return err
		}
		below, err := session.Children(ctx, path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
		for _, child := range below {
			if err := remove(ctx, session, path+"/"+child); err != nil {
				return err
			}
		}
	}
}

// Subscriptions returns nil: ZooKeeper only counts all clients' watches together.
func (*Server) Subscriptions(context.Context) *int64 { return nil }

// Connected lists the names of lockbench's connections with this prefix, each once.
func (s *Server) Connected(ctx context.Context, prefix string) ([]string, error) {
	names, err := s.watching.names(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: list the connections: %w", ErrUnreachable, err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) }), nil
}

// keys are those on ZooKeeper.
func (s *Server) keys() store.Keys {
	return store.Keys{
		Store: name, Addr: s.about.Address,
		Scan: func(ctx context.Context, visit func(string)) error {
			_, found, err := keys(ctx, s.watching, func(string) bool { return true })
			for _, key := range found {
				visit(key)
			}
			return err
		},
		Connected: s.watching.names,
		Remove:    s.Remove,
	}
}

// Sweep removes the keys of dead runs, see store.Sweeper.
func (k Store) Sweep(ctx context.Context, runID string, o store.Options) (swept store.Swept, err error) {
	opened, err := k.Open(ctx, runID, o)
	if err != nil {
		return swept, err
	}
	opened.(*Server).keys().Sweep(ctx, &swept)
	return swept, errors.Join(ctx.Err(), opened.Close(ctx))
}
