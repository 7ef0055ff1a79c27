package gozk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

// answers are errors that come from a server: the call was carried out, or will not be.
var answers = []error{
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrBadVersion, zk.ErrNoAuth, zk.ErrAuthFailed, zk.ErrInvalidACL,
	zk.ErrNoChildrenForEphemerals, zk.ErrBadArguments, zk.ErrAPIError, zk.ErrInvalidPath, zk.ErrInvalidFlags, zk.ErrNothing,
}

func answered(err error) bool {
	for _, answer := range answers {
		if errors.Is(err, answer) {
			return true
		}
	}
	return err == nil || strings.HasPrefix(err.Error(), "unknown error: ") // a code that the library has no name for
}

// call has the library do something, which ends only with an answer or with the session. If
// ctx ends, call does not wait for that.
func call[T any](ctx context.Context, s *Session, do func(*zk.Conn) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if ctx.Err() != nil {
		return none, s.why(ctx)
	}
	back := make(chan result, 1)
	begun := s.Go(func(context.Context) {
		value, err := do(s.conn)
		back <- result{value, err}
	})
	if !begun {
		return none, ErrOver
	}
	select {
	case r := <-back:
		switch {
		case answered(r.err):
			return r.value, r.err
		case s.life.Err() != nil:
			return none, fmt.Errorf("%w: %w", ErrOver, r.err)
		default:
			return none, fmt.Errorf("%w: %w", ErrIndeterminate, r.err)
		}
	case <-ctx.Done():
		return none, s.why(ctx)
	}
}

// why is the error of a call whose context has ended; the context of Go ends with the
// session.
func (s *Session) why(ctx context.Context) error {
	if ctx == s.life {
		return ErrOver
	}
	return ctx.Err()
}

// Create makes a node with one of go-zookeeper's flags for its kind, and returns its path. If
// ctx ends before there is an answer, the node may or may not have been made.
func (s *Session) Create(ctx context.Context, path string, data []byte, flags int32) (string, error) {
	return call(ctx, s, func(c *zk.Conn) (string, error) {
		if flags == zk.FlagContainer {
			return c.CreateContainer(path, data, flags, s.node.acl())
		}
		return c.Create(path, data, flags, s.node.acl())
	})
}

// Delete removes a node.
func (s *Session) Delete(ctx context.Context, path string) error {
	_, err := call(ctx, s, func(c *zk.Conn) (struct{}, error) { return struct{}{}, c.Delete(path, -1) })
	return err
}

// Children returns the names of a node's children.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	return call(ctx, s, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(path)
		return names, err
	})
}

// Stat returns what ZooKeeper tells of a node, or zk.ErrNoNode.
func (s *Session) Stat(ctx context.Context, path string) (*zk.Stat, error) {
	return call(ctx, s, func(c *zk.Conn) (*zk.Stat, error) {
		there, stat, err := c.Exists(path)
		if err == nil && !there {
			err = zk.ErrNoNode
		}
		return stat, err
	})
}

// Value is what a node holds.
type Value struct {
	Data []byte
	Stat *zk.Stat
}

// Get reads a node.
func (s *Session) Get(ctx context.Context, path string) (Value, error) {
	return call(ctx, s, func(c *zk.Conn) (Value, error) {
		data, stat, err := c.Get(path)
		return Value{data, stat}, err
	})
}

// Set writes a node of that version; -1 means any.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) error {
	_, err := call(ctx, s, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(path, data, version) })
	return err
}

// Multi carries out several operations of go-zookeeper, or none of them. It sets the ACL of
// those that create nodes.
func (s *Session) Multi(ctx context.Context, operations ...any) error {
	for _, o := range operations {
		if create, ok := o.(*zk.CreateRequest); ok && create.Acl == nil {
			create.Acl = s.node.acl()
		}
	}
	_, err := call(ctx, s, func(c *zk.Conn) (struct{}, error) {
		_, err := c.Multi(operations...)
		return struct{}{}, err
	})
	return err
}

// Sync has the session's server catch up with the leader.
func (s *Session) Sync(ctx context.Context, path string) error {
	_, err := call(ctx, s, func(c *zk.Conn) (string, error) { return c.Sync(path) })
	return err
}

// Watch returns a channel that gets an event, and is closed, once the node has changed or
// gone, or the session is over. It returns zk.ErrNoNode if the node is not there. All callers
// share one watch of a node, so a caller that waits no longer leaves nothing more behind.
func (s *Session) Watch(ctx context.Context, path string) (<-chan zk.Event, error) {
	s.mu.Lock()
	watch, ok := s.watches[path]
	s.mu.Unlock()
	if ok {
		return watch, nil
	}
	watch, err := call(ctx, s, func(c *zk.Conn) (<-chan zk.Event, error) {
		_, _, watch, err := c.GetW(path)
		if err == nil {
			s.remember(path, watch)
		}
		return watch, err
	})
	return watch, err
}

// remember lets later calls have the watch, if nothing has happened yet.
func (s *Session) remember(path string, watch <-chan zk.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(watch) == 0 {
		s.watches[path] = watch
	}
}

// Seen forgets a watch that has had its event.
func (s *Session) Seen(path string, watch <-chan zk.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[path] == watch {
		delete(s.watches, path)
	}
}
