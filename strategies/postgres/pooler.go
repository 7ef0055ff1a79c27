package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A lock of a session needs a session. A pooler such as PgBouncer, in transaction mode, lends one backend of
// PostgreSQL to many clients, one transaction at a time: all of them would hold the lock.

// errPooler says that the lock cannot be safe at this address.
var errPooler = errors.New("a connection pooler such as PgBouncer answers here, which may share a session of " +
	"PostgreSQL between clients, so that several would hold the lock: give the address of PostgreSQL itself")

// ownSession returns errPooler unless the connection's backend is the one that PostgreSQL named when it was opened. A
// pooler names one that it made up, also in session mode, in which the lock would be safe: no client can find out in
// which mode it is, because a shared backend looks like its own while no other client uses it. Two transactions also
// find a pooler that passes on the name of the first backend.
func ownSession(ctx context.Context, conn *pgx.Conn) error {
	for range 2 {
		var pid uint32
		// A prepared statement might be of another backend.
		err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
		if err != nil {
			return fmt.Errorf("ask for the backend's PID: %w", err)
		}
		if pid != conn.PgConn().PID() {
			return errPooler
		}
	}
	return nil
}

// poolerRefuses explains the error with which PgBouncer refuses a setting that it does not know.
func poolerRefuses(err error) error {
	if pg, is := errors.AsType[*pgconn.PgError](err); is && strings.Contains(pg.Message, "unsupported startup parameter") {
		return fmt.Errorf("%w: %w", errPooler, err)
	}
	return err
}
