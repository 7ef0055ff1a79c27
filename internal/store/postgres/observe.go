package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/results"
)

// walQuery is an SQL expression for the end of the write-ahead log in bytes. It is NULL on a standby, which has no
// write position.
const walQuery = `CASE WHEN NOT pg_is_in_recovery()
	THEN pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint END`

// Read reads the counters. It does not count transactions, because a backend reports its count only after some idle
// time, so a window would miss most transactions. If the server has lost its data, its write-ahead log begins again,
// and the number of bytes written before is unknown.
func (s *server) Read(ctx context.Context) (results.Reading, error) {
	began := time.Now()
	var r results.Reading
	err := s.query(ctx, func(row pgx.Row) error { return row.Scan(&r.Clients, &r.WALBytes) },
		"SELECT count(*), "+walQuery+" FROM pg_stat_activity WHERE backend_type = 'client backend'")
	if err != nil {
		return results.Reading{}, fmt.Errorf("read the counters: %w", err)
	}
	r.At = began.Add(time.Since(began) / 2)
	if s.Started {
		r.CPU = s.Own[0].CPU()
	}
	if s.logLost.Load() {
		r.WALBytes = nil
	}
	s.Meter.Enter(&r)
	return r, nil
}

// Leftovers returns the advisory locks that the run's connections hold, and the connections whose application_name is
// name. An advisory lock has only a number, so its key is not shown.
func (s *server) Leftovers(ctx context.Context, mark, name string) (left results.Leftovers, err error) {
	if session, run, ok := strings.Cut(strings.Trim(mark, "{:"), ":"); ok {
		left.Keys, err = s.texts(ctx, `SELECT format('advisory lock %s of %s, process %s',
				classid::bigint << 32 | objid::bigint, application_name, pid)
			FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'
				AND (application_name = $1 OR starts_with(application_name, $1 || ':'))`,
			prefix+session+":run"+run)
	}
	if err != nil || name == "" {
		return left, err
	}
	left.Connections, err = s.texts(ctx, `SELECT format('process %s, %s for %s: %s', pid, state,
			date_trunc('milliseconds', now() - state_change), query)
		FROM pg_stat_activity WHERE application_name = $1`, name)
	return left, err
}

// Remove does nothing, because advisory locks end with their connections.
func (*server) Remove(context.Context, []string) error { return nil }
