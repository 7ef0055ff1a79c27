package postgres

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/internal/store"
)

// instance is one application instance's own connections: a pool, and those that a lock opens with
// the Node's Config.
type instance struct {
	store.Without
	server *server
	node   *pgx.ConnConfig
	pool   *pgxpool.Pool
	open   intercept.Open
}

// Connect opens the first connection of a pool. The others are opened on demand: each is a process of
// the server, and only lock holders that use counters need them.
func (s *server) Connect(ctx context.Context, name string, pool int, detour store.Through) (store.Instance, error) {
	i := &instance{server: s}
	i.node = s.configFor(name, s.Meter.Instance(), func(dial store.Dialer) store.Dialer {
		dial = i.open.Through(dial)
		if detour != nil {
			dial = detour(dial)
		}
		return dial
	})
	i.node.RuntimeParams["search_path"] = s.schema() // where a lock makes its table
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, err
	}
	config.ConnConfig = i.node.Copy()
	config.MaxConns = int32(max(1, pool))
	config.MaxConnLifetime, config.MaxConnIdleTime = 1000*time.Hour, 1000*time.Hour
	if i.pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
		return nil, err
	}
	if err := i.pool.Ping(ctx); err != nil {
		return nil, errors.Join(s.unreached(err), i.Close())
	}
	return i, nil
}

// Nodes returns the one configuration of connections.
func (i *instance) Nodes() []any { return []any{i.node} }

// Pools returns the pool's statistics.
func (i *instance) Pools() store.Pools {
	stat := i.pool.Stat()
	return store.Pools{
		Waits: stat.EmptyAcquireCount(), WaitedNS: stat.EmptyAcquireWaitTime().Nanoseconds(),
		Timeouts: stat.CanceledAcquireCount(),
	}
}

// Close closes all connections, including those that a lock has not closed: their sessions end, and
// so do the locks that they hold.
func (i *instance) Close() error {
	i.open.Cut(net.ErrClosed)
	i.pool.Close()
	return nil
}

// RoundTrips times SELECT 1, and an advisory lock with its unlock, one after the other, as the observer.
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
