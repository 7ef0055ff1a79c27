package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// literal quotes a text for SQL.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// thing is what must be in the schema, and how it is made; "" means nothing.
func (o Options) thing() (name, definition string) {
	switch {
	case o.Mode == Row:
		return tableName, "TABLE IF NOT EXISTS %s (key bytea PRIMARY KEY)"
	case o.Fence:
		return sequenceName, "SEQUENCE IF NOT EXISTS %s"
	}
	return "", ""
}

// setUp makes what the lock needs if it is missing. A user without the right to make it needs
// it made beforehand.
func (l *Locker) setUp(ctx context.Context) error {
	name, definition := l.options.thing()
	if name == "" || l.ready.Load() {
		return nil
	}
	schema := l.config.Nodes[0].Schema
	s, err := l.take(ctx)
	if err != nil {
		return err
	}
	defer l.put(s)
	qualified := within(schema, name)
	var there bool
	if err := s.conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", qualified).Scan(&there); err != nil {
		return fmt.Errorf("look for %s: %w", qualified, err)
	}
	if !there {
		err := whileRaced(func() error { return l.create(ctx, s, schema, qualified, definition) })
		if err != nil {
			return fmt.Errorf("make %s: %w", qualified, err)
		}
	}
	l.ready.Store(true)
	return nil
}

// create makes it, and the schema.
func (l *Locker) create(ctx context.Context, s *session, schema, qualified, definition string) error {
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		all := []string{fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", number("lockbench:setup:"+qualified))}
		if schema != "" {
			all = append(all, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{schema}.Sanitize())
		}
		for _, sql := range append(all, "CREATE "+fmt.Sprintf(definition, qualified)) {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

// whileRaced tries again if another process made the same thing at the same time, against
// which IF NOT EXISTS does not help: the second time it is there. The advisory lock above
// separates those that make the same thing, but several things share a schema.
func whileRaced(create func() error) error {
	const attempts = 10 // each fails only if yet another one came at the same time
	for attempt := 1; ; attempt++ {
		err := create()
		pg, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || attempt == attempts {
			return err
		}
		switch pg.Code {
		case "23505", "42P06", "42P07": // unique violation of a catalogue, duplicate schema, duplicate table
		default:
			return err
		}
	}
}
