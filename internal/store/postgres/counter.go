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
	return store.Fenced(fence, counter{i, []byte(name), nil}, counter{i, []byte(name), &token})
}

// counter is a row with a number. With a token it raises its floor on every access, including reads, and refuses older
// tokens.
type counter struct {
	of    *instance
	name  []byte
	token *int64 // nil: no token is checked
}

// number executes a statement on the table, which it makes if it is missing, and returns the number in the answer.
func (c counter) number(ctx context.Context, before, after string, args ...any) (n int64, err error) {
	table := pgx.Identifier{c.of.server.schema(), counterTable}.Sanitize()
	args = append([]any{c.name}, args...)
	execute := func() error { return c.of.pool.QueryRow(ctx, before+table+after, args...).Scan(&n) }
	if err = execute(); code(err) == undefinedTable {
		if err = c.makeTable(ctx, table); err == nil {
			err = execute()
		}
	}
	return n, err
}

// makeTable makes the table and the session's schema. IF NOT EXISTS does not help against others that make them at the
// same time, such as the lock, which takes the same advisory lock.
func (c counter) makeTable(ctx context.Context, table string) error {
	err := pgx.BeginFunc(ctx, c.of.pool, func(tx pgx.Tx) error {
		for _, sql := range []string{
			"SELECT pg_advisory_xact_lock(hashtextextended('lockbench:setup', 0))",
			"CREATE SCHEMA IF NOT EXISTS " + pgx.Identifier{c.of.server.schema()}.Sanitize(),
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
func (c counter) Read(ctx context.Context) (n int64, err error) {
	if c.token != nil {
		return c.touch(ctx, nil)
	}
	n, err = c.number(ctx, "SELECT n FROM ", " WHERE name = $1")
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return n, nil
}

func (c counter) Write(ctx context.Context, n int64) error {
	_, err := c.touch(ctx, &n)
	return err
}

// touch raises the floor if there is a token, and writes n if it is not nil.
func (c counter) touch(ctx context.Context, n *int64) (int64, error) {
	now, err := c.number(ctx, "INSERT INTO ", ` AS c VALUES ($1, coalesce($2::bigint, 0), coalesce($3::bigint, 0))
		ON CONFLICT (name) DO UPDATE SET n = coalesce($2, c.n), floor = coalesce($3, c.floor)
		WHERE $3 IS NULL OR c.floor <= $3 RETURNING n`, n, c.token)
	if errors.Is(err, pgx.ErrNoRows) {
		err = store.ErrStale
	}
	if err != nil {
		return 0, fmt.Errorf("access the counter: %w", err)
	}
	return now, nil
}
