package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/store"
)

const (
	// schemaPrefix is the prefix of lockbench's schemas. It is longer than lockbench_, because services
	// that use strategies/postgres may have a schema with that prefix.
	schemaPrefix = "lockbench_session_"
	// relationPrefix is the prefix of everything that lockbench creates in them.
	relationPrefix = "lockbench_"
)

// schema returns the schema with the tables and sequences of the session.
func (s *server) schema() string { return schemaPrefix + strings.ToLower(s.runID) }

// closing is the suffix in the name of a connection that only checks whether to drop the schema.
const closing = ":closing"

// dropSchema removes the session's schema, unless another generator of the session is connected, which
// will remove it. A connection that was just closed is still listed for a while, so dropSchema
// waits for up to a second.
func (s *server) dropSchema(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.configFor(prefix+s.runID+closing, &s.meter.Observed, nil))
	if err != nil {
		return nil //nolint:nilerr // nobody is there to remove it from; the next session does
	}
	defer conn.Close(ctx)
	const patience = time.Second
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		var there, others bool
		err = conn.QueryRow(ctx, `SELECT to_regnamespace($1) IS NOT NULL,
			EXISTS (SELECT FROM pg_stat_activity WHERE starts_with(lower(application_name), $2) AND right(application_name, length($3)) <> $3)`,
			pgx.Identifier{s.schema()}.Sanitize(), strings.ToLower(prefix+s.runID+":"), closing).Scan(&there, &others)
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
		if _, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{s.schema()}.Sanitize()+" CASCADE"); err == nil {
			return nil
		}
		if time.Since(began) >= patience {
			return fmt.Errorf("remove the schema %s: %w", s.schema(), err)
		}
	}
}

// sweep removes the schemas of dead sessions: no connection has their name. It does not touch
// schemas of other owners.
func (s *server) sweep(ctx context.Context) error {
	dead, err := s.texts(ctx, `SELECT nspname::text FROM pg_namespace n WHERE starts_with(nspname, $1) AND pg_has_role(nspowner, 'USAGE')
		AND nspname <> $2 AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE starts_with(lower(application_name), $3 || substr(nspname, length($1) + 1) || ':'))
		AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND NOT starts_with(relname, $4))`, schemaPrefix, s.schema(), prefix, relationPrefix)
	for _, schema := range dead {
		if _, wrong := s.exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE"); wrong != nil {
			err = errors.Join(err, fmt.Errorf("remove the schema %s: %w", schema, wrong))
			continue
		}
		s.swept.Removed++
		s.swept.Runs = append(s.swept.Runs, strings.TrimPrefix(schema, schemaPrefix))
	}
	return err
}

// Sweep removes the schemas of dead runs, see store.Sweeper.
func (Store) Sweep(ctx context.Context, runID string, o store.Options) (store.Swept, error) {
	if err := (Store{}).Validate(o); err != nil {
		return store.Swept{}, fmt.Errorf("%w: %w", store.ErrConfig, err)
	}
	s, err := open(ctx, runID, o)
	if err != nil {
		return store.Swept{}, err
	}
	if err := s.sweep(ctx); err != nil {
		s.swept.Skipped = append(s.swept.Skipped, fmt.Sprintf("schemas on %s: %v", shown(s.config), err))
	}
	s.swept.Kind = "schemas"
	return s.swept, errors.Join(ctx.Err(), s.Close(ctx))
}
