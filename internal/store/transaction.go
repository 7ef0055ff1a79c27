package store

import (
	"context"

	"github.com/lockbench/lockbench/workloads"
)

// Transactor is a Server with transactions, which keeps the rows of --work transaction. Its Close also removes the
// table of the rows.
type Transactor interface {
	Server
	// CreateTable creates the session's table. The error wraps ErrConfig if the user lacks the right.
	CreateTable(ctx context.Context) error
	// Rows inserts a row for each of a run's keys, and opens a pool of connections of that name. A number identifies
	// the run in the session. The caller closes the Rows.
	Rows(ctx context.Context, name string, run, keys, pool int) (Rows, error)
}

// Rows are the rows of one run, with the connections of its clients. They are safe for concurrent use.
type Rows interface {
	// Begin begins a transaction on the row of a key, and reads the row as guard requires.
	Begin(ctx context.Context, key int, guard workloads.RowGuard) (Transaction, error)
	// Taken returns what the committed transactions have subtracted from each row.
	Taken(ctx context.Context) ([]int64, error)
	// Close closes the connections. Further calls do nothing.
	Close()
}

// Transaction subtracts 1 from the number of a row. The caller ends it with Commit or Rollback.
type Transaction interface {
	// Write writes the number. It returns ErrStale if the row refuses it.
	Write(ctx context.Context) error
	// Commit commits. After an error it is unknown whether the transaction was committed.
	Commit(ctx context.Context) error
	// Rollback gives the transaction up.
	Rollback()
}
