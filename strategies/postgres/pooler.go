package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A session-level lock needs a session that no other client uses. In transaction mode, a pooler such as PgBouncer lends
// one backend of PostgreSQL to many clients, one transaction at a time. All these clients would hold the lock.

// errPooler is the error for an address at which the lock is not safe.
var errPooler = errors.New("the address is that of a connection pooler such as PgBouncer, which may share a session " +
	"of PostgreSQL between clients, so that several would hold the lock: give the address of PostgreSQL itself")

// ownSession returns errPooler unless the connection's backend has the PID that was announced when the connection was
// opened. A pooler announces an invented PID. It does so even in session mode, in which the lock would be safe. A
// client cannot determine the mode, because a shared backend looks like a private backend while no other client uses
// it. The check runs in two transactions, so that it also detects a pooler that announces the PID of the first backend.
func ownSession(ctx context.Context, conn *pgx.Conn) error {
	for range 2 {
		var pid uint32
		// The query uses the simple protocol, because a prepared statement might belong to another backend.
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

// poolerRefuses adds errPooler to err if PgBouncer has refused a setting that it does not know.
func poolerRefuses(err error) error {
	if pg, is := errors.AsType[*pgconn.PgError](err); is && strings.Contains(pg.Message, "unsupported startup parameter") {
		return fmt.Errorf("%w: %w", errPooler, err)
	}
	return err
}
