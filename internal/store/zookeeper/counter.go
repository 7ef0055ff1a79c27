package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// unguarded is a counter that checks no tokens.
type unguarded struct {
	link *link
	name string
}

func (u unguarded) path() string  { return u.link.node.Path(u.name) }
func (u unguarded) floor() string { return u.link.node.Path(u.name + ":floor") }

func (u unguarded) Read(ctx context.Context) (int64, error) {
	session, err := u.link.live(ctx)
	if err == nil && !u.link.node.Standalone { // this server may lag behind the others
		err = session.Sync(ctx, u.path())
	}
	var n int64
	if err == nil {
		n, _, err = number(ctx, session, u.path())
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return n, nil
}

func (u unguarded) Write(ctx context.Context, n int64) error {
	session, err := u.link.live(ctx)
	if err == nil {
		err = session.Set(ctx, u.path(), text(n), -1)
	}
	if errors.Is(err, zk.ErrNoNode) {
		_, err = session.Create(ctx, u.path(), text(n), zk.FlagPersistent)
		if errors.Is(err, zk.ErrNodeExists) { // another client has created it
			err = session.Set(ctx, u.path(), text(n), -1)
		}
	}
	if err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}

// guarded is a counter that raises its floor on every access, including reads, and refuses older
// tokens (M. Kleppmann, How to do distributed locking, 2016).
type guarded struct {
	unguarded
	token int64
}

func (g guarded) Read(ctx context.Context) (int64, error) {
	session, err := g.link.live(ctx)
	var n int64
	if err == nil {
		err = g.raise(ctx, session)
	}
	if err == nil {
		// This read follows this session's own write, and so all earlier writes. A holder with a
		// larger token may have written since; then a write based on this value is refused.
		n, _, err = number(ctx, session, g.path())
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return 0, fmt.Errorf("read the counter with token %d: %w", g.token, err)
	}
	return n, nil
}

func (g guarded) Write(ctx context.Context, n int64) error {
	session, err := g.link.live(ctx)
	if err == nil {
		err = g.raise(ctx, session, &zk.SetDataRequest{Path: g.path(), Data: text(n), Version: -1})
	}
	if errors.Is(err, zk.ErrNoNode) {
		_, err = session.Create(ctx, g.path(), text(0), zk.FlagPersistent)
		if err == nil || errors.Is(err, zk.ErrNodeExists) {
			return g.Write(ctx, n)
		}
	}
	if err != nil {
		return fmt.Errorf("write the counter with token %d: %w", g.token, err)
	}
	return nil
}

// raise raises the floor and executes more in the same transaction.
func (g guarded) raise(ctx context.Context, session *gozk.Session, more ...any) error {
	for {
		floor, version, err := number(ctx, session, g.floor())
		switch {
		case errors.Is(err, zk.ErrNoNode):
			_, err = session.Create(ctx, g.floor(), text(0), zk.FlagPersistent)
			if err == nil || errors.Is(err, zk.ErrNodeExists) {
				continue
			}
			return err
		case err != nil:
			return err
		case floor > g.token:
			return store.ErrStale
		}
		// A version that changed means that another client raised the floor meanwhile.
		err = session.Multi(ctx, append([]any{&zk.SetDataRequest{Path: g.floor(), Data: text(g.token), Version: version}}, more...)...)
		if !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
	}
}

func text(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// number returns a node's number and its version.
func number(ctx context.Context, session *gozk.Session, path string) (int64, int32, error) {
	value, err := session.Get(ctx, path)
	if err != nil {
		return 0, 0, err
	}
	n, err := strconv.ParseInt(string(value.Data), 10, 64)
	return n, value.Stat.Version, err
}
