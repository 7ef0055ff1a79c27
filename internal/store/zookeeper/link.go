package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies/gozk"
)

const (
	// linkTimeout is the session timeout of lockbench's own session.
	linkTimeout = 4 * time.Second
	// reach limits the time to open the first session.
	reach = 5 * time.Second
)

// link is the session of lockbench's own observation. If the session has ended, the next use opens a new one.
type link struct {
	node gozk.Node

	mu      sync.Mutex
	session *gozk.Session
}

// live returns the session, or a new one if it has ended.
func (k *link) live(ctx context.Context) (*gozk.Session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != nil && !k.session.IsOver() {
		return k.session, nil
	}
	session, err := k.node.Connect(ctx, linkTimeout)
	if err == nil {
		k.session = session
	}
	return session, err
}

// scratch creates a node for this run, and deletes it after do. The node is ephemeral, so ZooKeeper deletes it with the
// session even if lockbench is killed.
func (k *link) scratch(ctx context.Context, runID string, do func(s *gozk.Session, path string) error) error {
	session, err := k.live(ctx)
	if err != nil {
		return err
	}
	path, err := session.Create(ctx, k.node.Path("lockbench:{"+runID+":0:0}"), nil, zk.FlagEphemeral|zk.FlagSequence)
	if err != nil {
		return fmt.Errorf("create a node below %s/: %w", k.node.Root, err)
	}
	return errors.Join(do(session, path), session.Delete(context.WithoutCancel(ctx), path))
}

// do repeats a request until there is a definite reply. If the session has ended, do sends the request in a new
// session.
func (k *link) do(ctx context.Context, ask func(*gozk.Session) error) error {
	for {
		session, err := k.live(ctx)
		if err == nil {
			err = ask(session)
		}
		if ctx.Err() != nil || !errors.Is(err, gozk.ErrOver) && !errors.Is(err, gozk.ErrIndeterminate) {
			return err
		}
	}
}

// children returns the names of a node's children; none if there is no such node.
func (k *link) children(ctx context.Context, path string) (names []string, err error) {
	err = k.do(ctx, func(session *gozk.Session) error {
		if err := session.Sync(ctx, path); err != nil { // this server may lag behind the others
			return err
		}
		children, err := session.Children(ctx, path)
		names = children.Names
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		err = nil
	}
	return names, err
}

// remove deletes a node and everything below it. A node that does not exist causes no error.
func (k *link) remove(ctx context.Context, path string) error {
	for {
		err := k.do(ctx, func(session *gozk.Session) error { return session.Delete(ctx, path) })
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if !errors.Is(err, zk.ErrNotEmpty) {
			return err
		}
		below, err := k.children(ctx, path)
		for _, child := range below {
			err = errors.Join(err, k.remove(ctx, path+"/"+child))
		}
		if err != nil {
			return err
		}
	}
}

// close ends the session. ZooKeeper then deletes the session's ephemeral nodes.
func (k *link) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != nil {
		k.session.Close()
		k.session = nil
	}
}

// scan calls visit with each lock key that has a node directly below the root.
func (k *link) scan(ctx context.Context, visit func(key string)) error {
	names, err := k.children(ctx, cmp.Or(k.node.Root, "/"))
	slices.Sort(names)
	for _, name := range names {
		if key, ok := gozk.Key(name); ok {
			visit(key)
		}
	}
	return err
}

// Leftovers returns the keys that contain mark, the nodes below them as KEY/NODE, and the connections of this process
// that belong to instances with the given name.
func (s *Server) Leftovers(ctx context.Context, mark, name string) (results.Leftovers, error) {
	var left results.Leftovers
	err := s.watching.scan(ctx, func(key string) {
		if strings.Contains(key, mark) {
			left.Keys = append(left.Keys, key)
		}
	})
	for _, conn := range s.opened(name).List() {
		left.Connections = append(left.Connections,
			fmt.Sprintf("connection from %v to %v", conn.LocalAddr(), conn.RemoteAddr()))
	}
	for _, key := range left.Keys {
		var below []string
		if err == nil {
			below, err = s.watching.children(ctx, s.node.Path(key))
		}
		for _, child := range below {
			left.Keys = append(left.Keys, key+"/"+child)
		}
	}
	if err != nil {
		return left, fmt.Errorf("%w: search for leftover keys: %w", ErrUnreachable, err)
	}
	return left, nil
}

// Remove deletes keys with everything below them. It also accepts the KEY/NODE entries that Leftovers lists.
func (s *Server) Remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if err := s.watching.remove(ctx, s.node.Path(key)); err != nil {
			return fmt.Errorf("%w: remove %s: %w", ErrUnreachable, key, err)
		}
	}
	return nil
}
