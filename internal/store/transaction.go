package store

import (
	"context"

	"github.com/lockbench/lockbench/workloads"
)

// Transactor is a Server that supports transactions and keeps the rows of --work transaction. Its Close also removes
// the table that contains the rows.
type Transactor interface {
	Server
	// CreateTable creates the session's table. The error wraps ErrConfig if the user lacks the right.
	CreateTable(ctx context.Context) error
	// Rows inserts a row for each of a run's keys, and opens a pool of connections with the given name. run is the number
	// of the run in the session. The caller closes the Rows.
	Rows(ctx context.Context, name string, run, keys, pool int) (Rows, error)
}

// Rows are the rows of one run, with the connections of its clients. They are safe for concurrent use.
type Rows interface {
	// Begin begins a transaction on the row of a key, and reads the row as guard requires.
	Begin(ctx context.Context, key int, guard workloads.RowGuard) (Transaction, error)
	// Taken returns how much the committed transactions have subtracted from each row.
	Taken(ctx context.Context) ([]int64, error)
	// Close closes the connections. Further calls of Close do nothing.
	Close()
}

// Transaction subtracts 1 from the number of a row. The caller ends it with Commit or Rollback.
type Transaction interface {
	// Write writes the new number to the row. It returns ErrStale if the row refuses the write.
	Write(ctx context.Context) error
	// Commit commits the transaction. After an error it is unknown whether the server has committed it.
	Commit(ctx context.Context) error
	// Rollback ends the transaction and discards its change.
	Rollback()
}
