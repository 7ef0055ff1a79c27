package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/store"
)

// counterTable has a row for each counter: its number, and the largest token that it has seen.
const counterTable = "lockbench_counter"

// unguarded is a counter that checks no tokens.
type unguarded struct {
	of   *instance
	name []byte
}

// raced are the error codes of a CREATE IF NOT EXISTS that ran twice at the same time.
var raced = map[string]bool{"23505": true, "42P06": true, "42P07": true}

// table returns the counters' table; the first call creates it.
func (u unguarded) table(ctx context.Context) (string, error) {
	s := u.of.server
	table := pgx.Identifier{s.schema(), counterTable}.Sanitize()
	if s.counted.Load() {
		return table, nil
	}
	s.counter.Lock()
	defer s.counter.Unlock()
	if s.counted.Load() {
		return table, nil
	}
	create := func() error {
		return pgx.BeginFunc(ctx, u.of.pool, func(tx pgx.Tx) error {
			for _, sql := range []string{
				"SELECT pg_advisory_xact_lock(hashtextextended('" + s.schema() + "', 0))", // IF NOT EXISTS fails if two run at the same time
				"CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{s.schema()}.Sanitize(),
				"CREATE TABLE IF NOT EXISTS " + table + " (name bytea PRIMARY KEY, n bigint NOT NULL, floor bigint NOT NULL)",
			} {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := create()
	for attempt := 1; raced[code(err)] && attempt < 10; attempt++ { // a lock may create the schema at the same time
		err = create()
	}
	if err != nil {
		return "", fmt.Errorf("make %s: %w", table, err)
	}
	s.counted.Store(true)
	return table, nil
}

// Read returns 0 for a counter that was never written.
func (u unguarded) Read(ctx context.Context) (n int64, err error) {
	table, err := u.table(ctx)
	if err == nil {
		err = u.of.pool.QueryRow(ctx, "SELECT n FROM "+table+" WHERE name = $1", u.name).Scan(&n)
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return n, nil
}

func (u unguarded) Write(ctx context.Context, n int64) error {
	table, err := u.table(ctx)
	if err == nil {
		_, err = u.of.pool.Exec(ctx, "INSERT INTO "+table+" AS c VALUES ($1, $2, 0) ON CONFLICT (name) DO UPDATE SET n = excluded.n", u.name, n)
	}
	if err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}

// guarded is a counter that raises its floor on every access, including reads, and refuses older
// tokens.
type guarded struct {
	unguarded
	token int64
}

func (g guarded) Read(ctx context.Context) (int64, error) {
	n, err := g.touch(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("read the counter with token %d: %w", g.token, err)
	}
	return n, nil
}

func (g guarded) Write(ctx context.Context, n int64) error {
	if _, err := g.touch(ctx, &n); err != nil {
		return fmt.Errorf("write the counter with token %d: %w", g.token, err)
	}
	return nil
}

// touch raises the floor, and writes n if it is not nil.
func (g guarded) touch(ctx context.Context, n *int64) (now int64, err error) {
	table, err := g.table(ctx)
	if err != nil {
		return 0, err
	}
	err = g.of.pool.QueryRow(ctx, "INSERT INTO "+table+` AS c VALUES ($1, coalesce($2, 0), $3)
		ON CONFLICT (name) DO UPDATE SET n = coalesce($2, c.n), floor = excluded.floor WHERE c.floor <= excluded.floor RETURNING n`,
		g.name, n, g.token).Scan(&now)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, store.ErrStale
	}
	return now, err
}
