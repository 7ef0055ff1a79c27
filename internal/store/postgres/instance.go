package postgres

import (
	"context"
	"net"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
)

// instance holds the configuration with which one application instance opens connections, and the open connections of
// its lock.
type instance struct {
	store.Without
	node *pgx.ConnConfig
	open netfault.Conns
}

// Connect returns an instance without connections. A lock opens only those that it needs, because the server starts a
// process for each connection.
func (s *server) Connect(_ context.Context, name string, _ int, detour store.Through) (store.Instance, error) {
	i := &instance{}
	i.node = s.configFor(name, s.Meter.Instance(), func(dial store.Dialer) store.Dialer {
		dial = i.open.Through(dial)
		if detour != nil {
			dial = detour(dial)
		}
		return dial
	})
	return i, nil
}

// Nodes returns the *pgx.ConnConfig with which a lock opens its connections.
func (i *instance) Nodes() []any { return []any{i.node} }

// Close closes the connections that a lock has left open. Then the server ends their sessions and releases the locks of
// these sessions.
func (i *instance) Close() error {
	i.open.Cut(net.ErrClosed)
	return nil
}

// RoundTrips measures the time of SELECT 1, and then of one statement that takes and releases an advisory lock. It uses
// an observer's connection and sends each request after the reply to the previous one.
func (s *server) RoundTrips(ctx context.Context, _ string) (times store.RoundTrips, err error) {
	execute := func(sql string) (p50, p99 *int64, err error) {
		return store.TimeCommand(s.Refused, func() error {
			_, err := s.observer.Exec(ctx, sql)
			return err
		})
	}
	if times.PingP50, times.PingP99, err = execute("SELECT 1"); err != nil {
		return times, err
	}
	times.ScriptP50, times.ScriptP99, err = execute(`SELECT pg_advisory_unlock(n) FROM
		(SELECT n, pg_advisory_lock(n) FROM (VALUES (0)) AS one(n) OFFSET 0) AS held`)
	return times, err
}
