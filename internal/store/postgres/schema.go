package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	// schemaPrefix begins the names of lockbench's schemas. It is not lockbench_ alone: services
	// that lock with strategies/postgres may have theirs in a schema that is called so.
	schemaPrefix = "lockbench_session_"
	// relationPrefix begins those of all that lockbench makes in them.
	relationPrefix = "lockbench_"
)

// schema is where tables and sequences of the session are.
func (s *server) schema() string { return schemaPrefix + strings.ToLower(s.runID) }

// dropSchema removes the session's schema, unless another generator of the session is
// still there, who will.
func (s *server) dropSchema(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.configFor(s.observerName(), &s.observed, nil))
	if err != nil {
		return nil //nolint:nilerr // nobody is there to remove it from; the next session does
	}
	defer conn.Close(ctx)
	var there, others bool
	err = conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL, EXISTS (SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND starts_with(lower(application_name), $2))",
		pgx.Identifier{s.schema()}.Sanitize(), strings.ToLower(prefix+s.runID+":")).Scan(&there, &others)
	if err == nil && there && !others {
		_, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{s.schema()}.Sanitize()+" CASCADE")
	}
	if err != nil {
		return fmt.Errorf("remove the schema %s: %w", s.schema(), err)
	}
	return nil
}

// sweep removes the schemas of sessions that are dead: no connection has their name. What
// somebody else owns stays.
func (s *server) sweep(ctx context.Context) {
	dead, err := s.texts(ctx, `SELECT nspname::text FROM pg_namespace n WHERE starts_with(nspname, $1) AND pg_has_role(nspowner, 'USAGE')
		AND nspname <> $2 AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE starts_with(lower(application_name), $3 || substr(nspname, length($1) + 1) || ':'))
		AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND NOT starts_with(relname, $4))`, schemaPrefix, s.schema(), prefix, relationPrefix)
	if err != nil {
		return
	}
	for _, schema := range dead {
		_, _ = s.exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE") // the next one tries again
	}
}
