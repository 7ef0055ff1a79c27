package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/results"
)

// Read reads the counters. It does not count transactions: a backend reports its own only after it has
// been idle for a while, so a window would show only few of them.
func (s *server) Read(ctx context.Context) (results.Reading, error) {
	began := time.Now()
	var clients int64
	var wal *int64
	err := s.query(ctx, func(row pgx.Row) error { return row.Scan(&clients, &wal) },
		"SELECT count(*), "+walQuery+" FROM pg_stat_activity WHERE backend_type = 'client backend'")
	if err != nil {
		return results.Reading{}, fmt.Errorf("read the counters: %w", err)
	}
	r := results.Reading{At: began.Add(time.Since(began) / 2), Clients: clients, WALBytes: wal}
	if s.own != nil {
		r.CPU, r.WALBytes = s.own.CPU(), s.restarts.continued(wal)
	}
	s.meter.Enter(&r)
	return r, nil
}

// Subscriptions returns nil: no lock uses LISTEN.
func (*server) Subscriptions(context.Context) *int64 { return nil }
