package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/results"
)

// walQuery returns the position of the log's end in bytes; NULL on a standby, which has none.
const walQuery = `CASE WHEN NOT pg_is_in_recovery()
	THEN pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint END`

// Read reads the counters. It does not count transactions: a backend reports its own only after it has been idle for a
// while, so a window would show only few of them. The log of a server that has lost its data begins again, so that what
// was written is not known any more.
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

// Connected lists the names of connections with this prefix, each once.
func (s *server) Connected(ctx context.Context, begin string) ([]string, error) {
	return s.texts(ctx,
		"SELECT DISTINCT application_name FROM pg_stat_activity WHERE starts_with(application_name, $1)", begin)
}

// Leftovers returns the rows that contain mark, the advisory locks that the run's connections hold,
// and the connections of that name.
func (s *server) Leftovers(ctx context.Context, mark, name string) (results.Leftovers, error) {
	var left results.Leftovers
	for _, t := range tables {
		table := pgx.Identifier{s.schema(), t.name}.Sanitize()
		var there bool
		scan := func(row pgx.Row) error { return row.Scan(&there) }
		if err := s.query(ctx, scan, "SELECT to_regclass($1) IS NOT NULL", table); err != nil {
			return left, err
		} else if !there {
			continue
		}
		keys, err := s.texts(ctx, "SELECT convert_from("+t.key+", 'UTF8') FROM "+table+
			" WHERE position($1::bytea IN "+t.key+") > 0", []byte(mark))
		if err != nil {
			return left, err
		}
		left.Keys = append(left.Keys, keys...)
	}
	// An advisory lock has a number, which does not show its key.
	if session, run, ok := strings.Cut(strings.Trim(mark, "{:"), ":"); ok {
		held, err := s.texts(ctx, `SELECT format('advisory lock %s of %s, process %s',
				classid::bigint << 32 | objid::bigint, application_name, pid)
			FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory'
				AND (application_name = $1 OR starts_with(application_name, $1 || ':'))`,
			prefix+session+":run"+run)
		if err != nil {
			return left, err
		}
		left.Keys = append(left.Keys, held...)
	}
	if name == "" {
		return left, nil
	}
	connections, err := s.texts(ctx, `SELECT format('process %s, %s for %s: %s', pid, state,
			date_trunc('milliseconds', now() - state_change), query)
		FROM pg_stat_activity WHERE application_name = $1`, name)
	left.Connections = connections
	return left, err
}

// tables are the tables with rows of keys.
var tables = []struct{ name, key string }{{"lockbench_lock", "key"}, {counterTable, "name"}}

// Remove deletes the rows of keys. Advisory locks end with their connections.
func (s *server) Remove(ctx context.Context, keys []string) error {
	raw := make([][]byte, len(keys))
	for n, key := range keys {
		raw[n] = []byte(key)
	}
	for _, t := range tables {
		table := pgx.Identifier{s.schema(), t.name}.Sanitize()
		_, err := s.exec(ctx, "DELETE FROM "+table+" WHERE "+t.key+" = ANY($1)", raw)
		if err != nil && code(err) != undefinedTable {
			return fmt.Errorf("delete %d rows: %w", len(keys), err)
		}
	}
	return nil
}
