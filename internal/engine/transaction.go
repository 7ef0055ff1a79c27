package engine

// This file implements the transaction on a row that a lock protects with --work transaction. At the end, finish.go
// compares the rows with the commits.

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// transacts reports whether the holders change rows in transactions.
func (r *run) transacts() bool { return r.Workload.Work == workloads.WorkTransaction }

// openRows inserts the run's rows and opens the clients' connections to PostgreSQL.
func (r *run) openRows(ctx context.Context) error {
	if !r.transacts() {
		return nil
	}
	if r.Transactor == nil {
		return errors.New("the run has no PostgreSQL for --work transaction")
	}
	w := r.Workload
	rows, err := r.Transactor.Rows(ctx, r.name+":rows", r.Number, w.Keys, w.Instances*w.PoolSize())
	if err != nil {
		return fmt.Errorf("connect for --work transaction: %w", err)
	}
	r.rows = rows
	return nil
}

// closeRows closes the clients' connections to PostgreSQL. Further calls do nothing.
func (r *run) closeRows() {
	if r.rows != nil {
		r.rows.Close()
	}
}

// transact updates the row of a key and calls hold between reading and writing. With optimistic locking by version,
// transact starts again if another client has changed the row. It returns the commit if that must follow the release,
// else nil.
func (r *run) transact(key int, hold func()) (commit func() error, err error) {
	for {
		// The context is not the context of acquisitions, because a holder must finish its work even if the run ends.
		tx, err := r.rows.Begin(r.control.release, key, r.Workload.Row)
		if err != nil {
			return nil, err
		}
		hold()
		commit, err := r.conclude(key, tx)
		switch {
		case !errors.Is(err, store.ErrStale):
			return commit, err
		case r.Workload.Row != workloads.RowVersion, r.control.stopping.Load():
			return nil, nil
		}
	}
}

// conclude writes the row of a key and commits. If the commit must follow the release, conclude returns the commit as a
// function instead of calling it. Otherwise it returns nil.
func (r *run) conclude(key int, tx store.Transaction) (commit func() error, err error) {
	if err := tx.Write(r.control.release); err != nil {
		tx.Rollback()
		if errors.Is(err, store.ErrStale) {
			r.refused.Add(1)
		}
		return nil, err
	}
	commit = func() error {
		if err := tx.Commit(r.control.release); err != nil {
			r.uncertain.Add(1)
			return err
		}
		r.done[key].Add(1)
		return nil
	}
	if r.Workload.Release == workloads.ReleaseBeforeCommit {
		return commit, nil
	}
	return nil, commit()
}

// lostRows compares each row with the commits. It returns nil if it is unknown which commits were made or kept.
func (r *run) lostRows(ctx context.Context) *int64 {
	if r.dead.Load() || len(r.hung) > 0 || r.uncertain.Load() > 0 || r.rowsWithLocks() && r.faults.loses {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	taken, err := r.rows.Taken(ctx)
	if err == nil && len(taken) != len(r.keys) {
		err = fmt.Errorf("the table has %d rows instead of %d", len(taken), len(r.keys))
	}
	if err != nil {
		r.errors.add(fmt.Errorf("compare the rows with the commits: %w", err))
		return nil
	}
	return r.missing(taken)
}

// rowsWithLocks reports whether the rows are on the server of the locks.
func (r *run) rowsWithLocks() bool { return r.Target != nil && any(r.Transactor) == any(r.Target) }

// readRows returns a reading of the server with the rows. It returns nil if the reading fails, or if the rows are on
// the locks' server.
func (r *run) readRows(ctx context.Context) *results.Reading {
	if r.Transactor == nil || r.rowsWithLocks() {
		return nil
	}
	return r.readFrom(ctx, r.Transactor)
}
