package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A session-level lock needs a separate session. A pooler such as PgBouncer, in transaction mode, lends one backend
// of PostgreSQL to many clients, one transaction at a time, so all of them would hold the lock.

// errPooler is the error for an address at which the lock is not safe.
var errPooler = errors.New("the address is that of a connection pooler such as PgBouncer, which may share a session " +
	"of PostgreSQL between clients, so that several would hold the lock: give the address of PostgreSQL itself")

// ownSession returns errPooler unless the connection's backend has the PID that was announced when the connection was
// opened. A pooler announces an invented PID. It does so even in session mode, in which the lock would be safe. A
// client cannot determine the mode, because while no other client uses a shared backend, it looks like a private one.
// The check runs in two transactions to detect also a pooler that announces the PID of the first backend.
func ownSession(ctx context.Context, conn *pgx.Conn) error {
	for range 2 {
		var pid uint32
		// A prepared statement might belong to another backend.
		err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeSimpleProtocol).Scan(&pid)
		if err != nil {
			return fmt.Errorf("query the backend's PID: %w", err)
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
