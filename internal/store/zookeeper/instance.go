package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies/gozk"
	"github.com/lockbench/lockbench/workloads"
)

// observe opens a connection of our own observation.
func (s *Server) observe(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.Meter.Observed.Through(dialer)(ctx, network, addr)
}

// opened returns the open connections of the instances of a name: ZooKeeper cannot say which client a connection
// belongs to.
func (s *Server) opened(name string) *intercept.Open {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[name] == nil {
		s.open[name] = new(intercept.Open)
	}
	return s.open[name]
}

// instance is one application instance's connections, a store.Instance: a session for its counters,
// and those that a strategy opens.
type instance struct {
	store.Without
	node gozk.Node
	link *link
}

// Connect opens one application instance's own connections. There is no pool: a session has one
// connection, and a strategy opens its own.
func (s *Server) Connect(ctx context.Context, name string, _ int, detour store.Through) (store.Instance, error) {
	i := instance{node: s.node}
	i.node.Dial = s.opened(name).Through(s.Meter.Instance().Through(dialer))
	if detour != nil {
		i.node.Dial = detour(i.node.Dial)
	}
	ctx, cancel := context.WithTimeout(ctx, reach)
	defer cancel()
	var err error
	if i.link, err = openLink(ctx, i.node, name); err != nil {
		return nil, fmt.Errorf("%w: connect: %w", ErrUnreachable, err)
	}
	return i, nil
}

// Nodes returns the one gozk.Node.
func (i instance) Nodes() []any { return []any{i.node} }

// Counter returns a counter in its own node.
func (i instance) Counter(name string, fence workloads.Fence, token int64) store.Counter {
	path := i.node.Path(name)
	return store.Fenced(fence, counter{i.link, path, unchecked}, counter{i.link, path, token})
}

// Close ends the instance's own session.
func (i instance) Close() error {
	i.link.close(context.Background())
	return nil
}

// unchecked is the token of a counter that checks none.
const unchecked = -1

// counter is a node with a number and the largest token so far, its floor. With a token it raises the
// floor on every access, reads too, and refuses older tokens (M. Kleppmann, How to do distributed locking,
// 2016).
type counter struct {
	link  *link
	path  string
	token int64
}

func (c counter) Read(ctx context.Context) (n int64, err error) {
	session, err := c.link.live(ctx)
	if err == nil && c.token != unchecked {
		err = c.change(ctx, session, func(was int64) int64 { n = was; return was })
	} else if err == nil {
		if err = session.Sync(ctx, c.path); err == nil { // this server may lag behind the others
			n, _, _, err = c.get(ctx, session)
		}
	}
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return n, nil
}

func (c counter) Write(ctx context.Context, n int64) error {
	session, err := c.link.live(ctx)
	if err == nil && c.token == unchecked {
		err = session.Set(ctx, c.path, counted(n, 0), -1)
	}
	if err == nil && c.token != unchecked || errors.Is(err, zk.ErrNoNode) {
		err = c.change(ctx, session, func(int64) int64 { return n })
	}
	if err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}

func counted(n, floor int64) []byte { return fmt.Append(nil, n, " ", floor) }

func (c counter) get(ctx context.Context, session *gozk.Session) (n, floor int64, version int32, err error) {
	value, err := session.Get(ctx, c.path)
	if err != nil {
		return 0, 0, 0, err
	}
	_, err = fmt.Sscan(string(value.Data), &n, &floor)
	return n, floor, value.Stat.Version, err
}

// change changes the number, and raises the floor to the token.
func (c counter) change(ctx context.Context, session *gozk.Session, to func(was int64) int64) error {
	for {
		was, floor, version, err := c.get(ctx, session)
		missing := errors.Is(err, zk.ErrNoNode)
		switch {
		case err != nil && !missing:
			return err
		case floor > c.token && c.token != unchecked:
			return store.ErrStale
		case missing:
			_, err = session.Create(ctx, c.path, counted(to(was), max(c.token, 0)), zk.FlagPersistent)
		case to(was) == was && floor == c.token:
			return nil
		default:
			err = session.Set(ctx, c.path, counted(to(was), max(c.token, floor)), version)
		}
		if !errors.Is(err, zk.ErrBadVersion) && !errors.Is(err, zk.ErrNodeExists) { // else another was faster
			return err
		}
	}
}

// RoundTrips times reads of one node, and then writes of it, one after the other in the session that observes.
func (s *Server) RoundTrips(ctx context.Context, _ string) (times store.RoundTrips, err error) {
	k := s.watching
	session, err := k.live(ctx)
	if err != nil {
		return times, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	times.PingP50, times.PingP99, err = store.TimeCommand(refusal, func() error {
		_, err := session.Get(ctx, k.mine)
		return err
	})
	if err == nil {
		times.ScriptP50, times.ScriptP99, err = store.TimeCommand(refusal, func() error {
			return session.Set(ctx, k.mine, nil, -1)
		})
	}
	return times, err
}

// Refused returns the code of a refusal; "" for any other error. A server without a quorum sends no code:
// it closes the connection.
func (*Server) Refused(err error) string { return refusal(err) }

func refusal(err error) string {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return "NOAUTH"
	case errors.Is(err, zk.ErrAuthFailed):
		return "AUTHFAILED"
	case errors.Is(err, zk.ErrInvalidACL):
		return "INVALIDACL"
	}
	return ""
}

// Unauthorised says whether that code means a missing right.
func (*Server) Unauthorised(code string) bool { return code != "" }
