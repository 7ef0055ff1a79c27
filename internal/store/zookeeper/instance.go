package zookeeper

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
	"github.com/lockbench/lockbench/workloads"
)

// counting opens connections with counted traffic.
func counting(t *intercept.Traffic) store.Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return t.Conn(conn), nil
	}
}

// observe opens a connection of our own observation.
func (s *Server) observe(ctx context.Context, network, addr string) (net.Conn, error) {
	return counting(&s.meter.Observed)(ctx, network, addr)
}

// instance is one application instance's connections, a store.Instance: a session for its counters,
// and those that a strategy opens.
type instance struct {
	node gozk.Node
	link *link
}

// Connect opens one application instance's own connections. There is no pool: a session has one
// connection, and a strategy opens its own.
func (s *Server) Connect(ctx context.Context, name string, _ int, detour store.Through) (store.Instance, error) {
	dial := s.listed(name, counting(s.meter.Instance()))
	if detour != nil {
		dial = detour(dial)
	}
	i := instance{node: s.node}
	i.node.Dial = dial
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

// Counter returns a counter in its own node. Its floor is at NAME:floor.
func (i instance) Counter(name string, fence workloads.Fence, token int64) store.Counter {
	open := unguarded{i.link, name}
	return store.Fenced(fence, open, guarded{open, token})
}

// Pools returns zeros: no request waits for a connection.
func (instance) Pools() store.Pools { return store.Pools{} }

// Lacking returns nil: each node in ZooKeeper has its own rights.
func (instance) Lacking(context.Context, strategies.Rights, string, string, string) []string {
	return nil
}

// Close ends the instance's own session.
func (i instance) Close() error {
	i.link.close(context.Background())
	return nil
}

// sockets are the open connections by the name of their instance: ZooKeeper cannot say which client a
// connection belongs to.
type sockets struct {
	mu   sync.Mutex
	open map[string]map[net.Conn]bool
}

// listed registers the connections under a name.
func (s *sockets) listed(name string, dial store.Dialer) store.Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.open == nil {
			s.open = map[string]map[net.Conn]bool{}
		}
		if s.open[name] == nil {
			s.open[name] = map[net.Conn]bool{}
		}
		s.open[name][conn] = true
		return intercept.Conn(conn, intercept.Hooks{Close: func(hangUp func() error) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.open[name], conn)
			return hangUp()
		}}), nil
	}
}

// of lists the connections of a name.
func (s *sockets) of(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for conn := range s.open[name] {
		list = append(list, fmt.Sprintf("connection from %v to %v", conn.LocalAddr(), conn.RemoteAddr()))
	}
	return list
}
