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
	// presence is the key whose node has a node below it for each connection, with the connection's
	// name: ZooKeeper has no names for connections.
	presence = "lockbench:connections"
	// linkTimeout is the timeout of lockbench's own sessions: this long after a kill, others know
	// that it is dead.
	linkTimeout = 4 * time.Second
	// reach limits the time to reach a server.
	reach = 5 * time.Second
)

// link is a session of lockbench's own, under a name that others can see. It is replaced when it has
// ended.
type link struct {
	node gozk.Node
	name string

	mu      sync.Mutex
	session *gozk.Session
	mine    string // the path of the node with the name
}

func openLink(ctx context.Context, node gozk.Node, name string) (*link, error) {
	k := &link{node: node, name: name}
	_, err := k.live(ctx)
	return k, err
}

// live returns the session, or a new one if it has ended.
func (k *link) live(ctx context.Context) (*gozk.Session, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session != nil && !k.session.IsOver() {
		return k.session, nil
	}
	session, err := k.node.Connect(ctx, linkTimeout)
	if err != nil {
		return nil, err
	}
	all := k.node.Path(presence)
	for {
		k.mine, err = session.Create(ctx, all+"/"+gozk.Name(k.name)+"-", nil, zk.FlagEphemeral|zk.FlagSequence)
		if !errors.Is(err, zk.ErrNoNode) {
			break
		}
		if _, err = session.Create(ctx, all, nil, zk.FlagContainer); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			break
		}
	}
	if err != nil {
		session.Close()
		return nil, fmt.Errorf("make a node below %s/: %w", k.node.Root, err)
	}
	k.session = session
	return session, nil
}

// do asks until there is an answer, in another session if need be.
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

// remove deletes a node and everything below it.
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

// close ends the session. It deletes the parent node too, if no other name is left.
func (k *link) close(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	// Both may fail if no server answers: then the node ends with the session, and the container
	// some time later.
	if k.session.Delete(ctx, k.mine) == nil {
		_ = k.session.Delete(ctx, k.node.Path(presence))
	}
	k.session.Close()
	k.session = nil
}

// names returns the names of all connections, each once.
func (k *link) names(ctx context.Context) ([]string, error) {
	children, err := k.children(ctx, k.node.Path(presence))
	var names []string
	for _, child := range children {
		if number := strings.LastIndexByte(child, '-'); number >= 0 {
			if name, ok := gozk.Key(child[:number]); ok {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), err
}

// scan visits the keys below the root.
func (k *link) scan(ctx context.Context, visit func(key string)) error {
	names, err := k.children(ctx, cmp.Or(k.node.Root, "/"))
	slices.Sort(names)
	for _, name := range names {
		if key, ok := gozk.Key(name); ok && key != presence {
			visit(key)
		}
	}
	return err
}

// Leftovers returns the keys that contain mark, and the nodes below them as KEY/NODE, and this process's
// connections of that name.
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
		return left, fmt.Errorf("%w: look for keys: %w", ErrUnreachable, err)
	}
	return left, nil
}

// Remove deletes keys with everything below them, so also what Leftovers lists as KEY/NODE.
func (s *Server) Remove(ctx context.Context, keys []string) error {
	for _, key := range keys {
		if err := s.watching.remove(ctx, s.node.Path(key)); err != nil {
			return fmt.Errorf("%w: remove %s: %w", ErrUnreachable, key, err)
		}
	}
	return nil
}

// Connected lists the names of lockbench's connections with this prefix, each once.
func (s *Server) Connected(ctx context.Context, prefix string) ([]string, error) {
	names, err := s.watching.names(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: list the connections: %w", ErrUnreachable, err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) }), nil
}
