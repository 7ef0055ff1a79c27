package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies/gozk"
)

// observe opens a connection whose traffic counts as lockbench's own observation.
func (s *Server) observe(ctx context.Context, network, addr string) (net.Conn, error) {
	return s.Meter.Observed.Through(dialer)(ctx, network, addr)
}

// opened returns the open connections of all instances with the given name. lockbench records these connections itself,
// because ZooKeeper cannot report which client a connection belongs to.
func (s *Server) opened(name string) *netfault.Conns {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[name] == nil {
		s.open[name] = new(netfault.Conns)
	}
	return s.open[name]
}

// instance holds the dialer with which the lock of one application instance connects.
type instance struct {
	store.Without
	node gozk.Node
}

// Connect returns an instance without connections, because a lock opens its own session.
func (s *Server) Connect(_ context.Context, name string, _ int, detour store.Through) (store.Instance, error) {
	i := instance{node: s.node}
	i.node.Dial = s.opened(name).Through(s.Meter.Instance().Through(dialer))
	if detour != nil {
		i.node.Dial = detour(i.node.Dial)
	}
	return i, nil
}

// Nodes returns the gozk.Node with which the lock opens its session.
func (i instance) Nodes() []any { return []any{i.node} }

// Close does nothing, because a lock closes its own session.
func (instance) Close() error { return nil }

// RoundTrips creates a node, and measures the time of reads of this node and then of writes to it. It sends these
// requests one after the other in the session of lockbench's own observation.
func (s *Server) RoundTrips(ctx context.Context, _ string) (times store.RoundTrips, err error) {
	err = s.watching.scratch(ctx, s.RunID, func(session *gozk.Session, path string) (err error) {
		times.PingP50, times.PingP99, err = store.TimeCommand(refusal, func() error {
			_, err := session.Get(ctx, path)
			return err
		})
		if err == nil {
			times.ScriptP50, times.ScriptP99, err = store.TimeCommand(refusal, func() error {
				return session.Set(ctx, path, nil, -1)
			})
		}
		return err
	})
	if err != nil {
		return times, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return times, nil
}

// Refused returns the code of an error with which ZooKeeper refuses a request, such as NOAUTH; "" for any other error.
// A server without a quorum sends no code and closes the connection.
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

// Unauthorised reports whether a code from Refused means that the user lacks a right.
func (*Server) Unauthorised(code string) bool { return code != "" }
