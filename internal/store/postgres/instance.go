package postgres

import (
	"context"
	"net"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
)

// instance is the configuration with which one application instance opens connections, and the connections that its
// lock has opened.
type instance struct {
	store.Without
	node *pgx.ConnConfig
	open netfault.Conns
}

// Connect opens no connection: each would be a process of the server, so a lock opens only those that it needs.
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

// Nodes returns the one configuration for connections.
func (i *instance) Nodes() []any { return []any{i.node} }

// Close closes the connections that a lock has not closed, which ends their sessions and the locks of those sessions.
func (i *instance) Close() error {
	i.open.Cut(net.ErrClosed)
	return nil
}

// RoundTrips measures SELECT 1, and an advisory lock with its unlock, one after the other, with the observer's
// connections.
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
