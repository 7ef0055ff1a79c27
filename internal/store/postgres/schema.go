package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/store"
)

// schemaPrefix is the prefix of lockbench's schemas. It is longer than lockbench_, because services
// that use strategies/postgres may have a schema with that prefix.
const schemaPrefix = "lockbench_session_"

// schema returns the schema with the tables of the session.
func (s *server) schema() string { return schemaPrefix + s.RunID }

// drop returns what removes a schema with all that lockbench makes in one. It fails, and removes nothing, if there is
// anything else in it, or anything that depends on it.
func drop(schema string) string {
	in := func(name string) string { return pgx.Identifier{schema, name}.Sanitize() }
	return "DROP TABLE IF EXISTS " + in("lockbench_lock") + ", " + in(counterTable) +
		"; DROP SCHEMA IF EXISTS " + pgx.Identifier{schema}.Sanitize()
}

// dropSchema removes the session's schema, unless another generator of the session is connected, which
// will remove it. A connection that was just closed is still listed for a while, so dropSchema
// waits for up to a second. Its own connection has another name, so that generators that end at the same time do not
// wait for each other.
func (s *server) dropSchema(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.configFor("lockbench-closing", &s.Meter.Observed, nil))
	if err != nil {
		return nil //nolint:nilerr // nobody is there to remove it from; the next session does
	}
	defer conn.Close(ctx)
	const patience = time.Second
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		var there, others bool
		err = conn.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL,
			EXISTS (SELECT FROM pg_stat_activity WHERE starts_with(application_name, $2))`,
			pgx.Identifier{s.schema()}.Sanitize(), prefix+s.RunID+":").Scan(&there, &others)
		switch {
		case err != nil:
			return fmt.Errorf("look for the schema %s: %w", s.schema(), err)
		case !there:
			return nil
		case others && time.Since(began) < patience:
			continue
		case others:
			return nil
		}
		// Another generator may drop it at the same time; then it no longer exists.
		if _, err = conn.Exec(ctx, drop(s.schema())); err == nil {
			return nil
		}
		if time.Since(began) >= patience {
			return fmt.Errorf("remove the schema %s: %w", s.schema(), err)
		}
	}
}

// Look finds the schemas of dead sessions, see ensemble.Server.
func (s *server) Look(ctx context.Context, left *store.Swept) {
	s.eachDead(ctx, left, func(string) error { return nil })
}

// Sweep removes the schemas of dead runs, see store.Sweeper.
func (s *server) Sweep(ctx context.Context, swept *store.Swept) {
	s.eachDead(ctx, swept, func(schema string) error {
		_, err := s.exec(ctx, drop(schema))
		return err
	})
}

// eachDead calls do with the schema of each dead session, and adds it to swept: no connection has the session's name.
// It does not look at schemas of other owners.
func (s *server) eachDead(ctx context.Context, swept *store.Swept, do func(schema string) error) {
	swept.Kind = "schema"
	schemas, err := s.texts(ctx, `SELECT nspname::text FROM pg_namespace
		WHERE nspname ~ ('^' || $1 || $2 || '$') AND nspname <> $3 AND pg_has_role(nspowner, 'USAGE') AND NOT EXISTS (
			SELECT FROM pg_stat_activity
			WHERE starts_with(application_name, $4 || substr(nspname, length($1) + 1) || ':'))
		ORDER BY 1`, schemaPrefix, store.IDPattern, s.schema(), prefix)
	if err != nil {
		swept.Skipped = append(swept.Skipped, fmt.Sprintf("schemas on %s: %v", shown(s.config), err))
	}
	for _, schema := range schemas {
		if err := do(schema); err != nil {
			swept.Skipped = append(swept.Skipped, fmt.Sprintf("the schema %s on %s: %v", schema, shown(s.config), err))
			continue
		}
		swept.Add(1, strings.TrimPrefix(schema, schemaPrefix))
	}
}
