package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// counterTable has a row for each counter: its number, and the largest token that it has seen.
const counterTable = "lockbench_counter"

// Counter returns a row of the session's table.
func (i *instance) Counter(name string, fence workloads.Fence, token int64) store.Counter {
	open := unguarded{i, []byte(name)}
	return store.Fenced(fence, open, guarded{open, token})
}

// unguarded is a counter that checks no tokens.
type unguarded struct {
	of   *instance
	name []byte
}

// number executes a statement on the table, which it makes if it is missing, and returns the number in the answer.
func (u unguarded) number(ctx context.Context, before, after string, args ...any) (n int64, err error) {
	table := pgx.Identifier{u.of.server.schema(), counterTable}.Sanitize()
	args = append([]any{u.name}, args...)
	execute := func() error { return u.of.pool.QueryRow(ctx, before+table+after, args...).Scan(&n) }
	if err = execute(); code(err) == undefinedTable {
		if err = u.makeTable(ctx, table); err == nil {
			err = execute()
		}
	}
	return n, err
}

// makeTable makes the table and the session's schema. IF NOT EXISTS does not help against others that make them at the
// same time, such as the lock, which takes the same advisory lock.
func (u unguarded) makeTable(ctx context.Context, table string) error {
	err := pgx.BeginFunc(ctx, u.of.pool, func(tx pgx.Tx) error {
		for _, sql := range []string{
			"SELECT pg_advisory_xact_lock(hashtextextended('lockbench:setup', 0))",
			"CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{u.of.server.schema()}.Sanitize(),
			"CREATE TABLE IF NOT EXISTS " + table +
				" (name bytea PRIMARY KEY, n bigint NOT NULL, floor bigint NOT NULL)",
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("make %s: %w", table, err)
	}
	return nil
}

// Read returns 0 for a counter that was never written.
func (u unguarded) Read(ctx context.Context) (int64, error) {
	n, err := u.number(ctx, "SELECT n FROM ", " WHERE name = $1")
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return n, nil
}

func (u unguarded) Write(ctx context.Context, n int64) error {
	const update = " AS c VALUES ($1, $2, 0) ON CONFLICT (name) DO UPDATE SET n = excluded.n RETURNING n"
	if _, err := u.number(ctx, "INSERT INTO ", update, n); err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}

// guarded is a counter that raises its floor on every access, including reads, and refuses older tokens.
type guarded struct {
	unguarded
	token int64
}

func (g guarded) Read(ctx context.Context) (int64, error) { return g.touch(ctx, nil) }

func (g guarded) Write(ctx context.Context, n int64) error {
	_, err := g.touch(ctx, &n)
	return err
}

// touch raises the floor, and writes n if it is not nil.
func (g guarded) touch(ctx context.Context, n *int64) (int64, error) {
	now, err := g.number(ctx, "INSERT INTO ", ` AS c VALUES ($1, coalesce($2, 0), $3)
		ON CONFLICT (name) DO UPDATE SET n = coalesce($2, c.n), floor = excluded.floor
		WHERE c.floor <= excluded.floor RETURNING n`, n, g.token)
	if errors.Is(err, pgx.ErrNoRows) {
		err = store.ErrStale
	}
	if err != nil {
		return 0, fmt.Errorf("access the counter with token %d: %w", g.token, err)
	}
	return now, nil
}
