package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// literal quotes a text for SQL.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// thing is what has to be in the schema, and how it is made; "" is nothing.
func (o Options) thing() (name, definition string) {
	switch {
	case o.Mode == Row:
		return tableName, "TABLE IF NOT EXISTS %s (key bytea PRIMARY KEY)"
	case o.Fence:
		return sequenceName, "SEQUENCE IF NOT EXISTS %s"
	}
	return "", ""
}

// setUp makes what the lock needs and is not there. Who may not make it needs it made.
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
		err := pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
			// IF NOT EXISTS fails when two make it at the same time.
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
		if err != nil {
			return fmt.Errorf("make %s: %w", qualified, err)
		}
	}
	l.ready.Store(true)
	return nil
}
