package gozk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"
)

// answers are the errors after which it is certain that the request had no effect. The server returned the error, or
// the library rejected the request without sending it.
var answers = []error{
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrBadVersion, zk.ErrNoAuth, zk.ErrAuthFailed, zk.ErrInvalidACL,
	zk.ErrNoChildrenForEphemerals, zk.ErrBadArguments, zk.ErrAPIError, zk.ErrInvalidPath, zk.ErrInvalidFlags,
	zk.ErrNothing, zk.ErrShortBuffer,
}

func answer(err error) bool {
	for _, answer := range answers {
		if errors.Is(err, answer) {
			return true
		}
	}
	return err == nil || strings.HasPrefix(err.Error(), "unknown error: ") // a code that the library has no name for
}

// call runs a call of the library. Such a call ends only when a reply arrives, the connection breaks or the session
// ends. If ctx ends, call returns without waiting for the library. It returns ErrOver if the session is over, and
// ErrIndeterminate if the connection broke before the reply.
func call[T any](ctx context.Context, s *Session, do func(*zk.Conn) (T, error)) (T, error) {
	var none, value T
	if ctx != s.life && ctx.Err() != nil {
		return none, ctx.Err()
	}
	back := make(chan error, 1)
	if !s.Go(func(context.Context) {
		got, err := do(s.conn)
		value = got
		back <- err
	}) {
		return none, ErrOver
	}
	select {
	case err := <-back:
		switch {
		case answer(err):
			return value, err
		case s.life.Err() != nil:
			return none, fmt.Errorf("%w: %w", ErrOver, err)
		}
		return none, fmt.Errorf("%w: %w", ErrIndeterminate, err)
	case <-ctx.Done():
		if ctx == s.life {
			return none, ErrOver
		}
		return none, ctx.Err()
	}
}

// repeat is like call, for a request that has the same effect if it is executed twice. If the connection breaks before
// the reply, repeat sends the request again. It needs no pause, because the library delays each request until it is
// connected.
func repeat[T any](ctx context.Context, s *Session, do func(*zk.Conn) (T, error)) (T, error) {
	for {
		if value, err := call(ctx, s, do); !errors.Is(err, ErrIndeterminate) {
			return value, err
		}
	}
}

// Create creates a node with go-zookeeper's flags for its kind, and returns its path. If ctx ends before the reply, the
// node may or may not have been created.
func (s *Session) Create(ctx context.Context, path string, data []byte, flags int32) (string, error) {
	return call(ctx, s, func(c *zk.Conn) (string, error) {
		if flags == zk.FlagContainer {
			return c.CreateContainer(path, data, flags, s.node.acl())
		}
		return c.Create(path, data, flags, s.node.acl())
	})
}

// Delete deletes a node. It returns zk.ErrNoNode if the node did not exist. If the connection breaks before the reply,
// Delete repeats the request, and then treats a missing node as deleted.
func (s *Session) Delete(ctx context.Context, path string) error {
	asked := false // the server may have executed an earlier try
	_, err := repeat(ctx, s, func(c *zk.Conn) (bool, error) {
		err := c.Delete(path, -1)
		if asked && errors.Is(err, zk.ErrNoNode) {
			return true, nil
		}
		asked = asked || !answer(err)
		return true, err
	})
	return err
}

// Children contains the names of a node's children, and the number of the last transaction that created or deleted a
// child.
type Children struct {
	Names []string
	Last  int64
}

// Children reads the names of a node's children. It returns zk.ErrNoNode if the node does not exist.
func (s *Session) Children(ctx context.Context, path string) (Children, error) {
	return repeat(ctx, s, func(c *zk.Conn) (Children, error) {
		names, stat, err := c.Children(path)
		if err != nil {
			return Children{}, err
		}
		return Children{names, stat.Pzxid}, nil
	})
}

// Value is the data and the version of a node.
type Value struct {
	Data []byte
	Stat *zk.Stat
}

// Get reads the data and the version of a node. It returns zk.ErrNoNode if the node does not exist.
func (s *Session) Get(ctx context.Context, path string) (Value, error) {
	return repeat(ctx, s, func(c *zk.Conn) (Value, error) {
		data, stat, err := c.Get(path)
		return Value{data, stat}, err
	})
}

// Set writes the data of a node if the node has this version, and otherwise returns zk.ErrBadVersion. -1 means any
// version.
func (s *Session) Set(ctx context.Context, path string, data []byte, version int32) error {
	_, err := call(ctx, s, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(path, data, version) })
	return err
}

// Sync makes the session's server catch up with the leader, so that later reads see the writes that were complete
// before the call.
func (s *Session) Sync(ctx context.Context, path string) error {
	_, err := repeat(ctx, s, func(c *zk.Conn) (string, error) { return c.Sync(path) })
	return err
}

// Watch returns a channel that is closed once the node has changed or been deleted. Before that, the channel may
// deliver an event. Watch returns zk.ErrNoNode if the node does not exist.
func (s *Session) Watch(ctx context.Context, path string) (<-chan zk.Event, error) {
	return repeat(ctx, s, func(c *zk.Conn) (<-chan zk.Event, error) {
		_, _, watch, err := c.GetW(path)
		return watch, err
	})
}
