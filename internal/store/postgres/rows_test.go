package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/drive"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	lock "github.com/lockbench/lockbench/strategies/postgres"
	"github.com/lockbench/lockbench/workloads"
)

// rowsOn returns the rows of the given run for this number of keys. The table must exist. The rows are closed when the
// test ends.
func rowsOn(t *testing.T, s *server, run, keys int) store.Rows {
	t.Helper()
	r, err := s.Rows(t.Context(), "lockbench:"+s.RunID+":run:rows", run, keys, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// withTable opens the shared server as a user's server and creates the session's table.
func withTable(t *testing.T) *server {
	t.Helper()
	s := opened(t, store.Options{Address: common(t).url()})
	if err := s.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRowGuards lets a second transaction begin before the first one commits. Without a guard, the second must
// overwrite the update of the first. With a guard, both updates must count, or the second must be refused.
func TestRowGuards(t *testing.T) {
	s := withTable(t)
	for i, test := range []struct {
		guard   workloads.RowGuard
		refused bool // the second transaction
		taken   int64
	}{
		{workloads.RowPlain, false, 1},
		{workloads.RowWhere, false, 2},
		{workloads.RowForUpdate, false, 2},
		{workloads.RowVersion, true, 1},
	} {
		t.Run(test.guard.String(), func(t *testing.T) {
			r := rowsOn(t, s, i, 2)
			begin := func() store.Transaction {
				tx, err := r.Begin(t.Context(), 1, test.guard)
				if err != nil {
					t.Fatal(err)
				}
				return tx
			}
			first := begin()
			if err := first.Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			var second store.Transaction
			var later sync.WaitGroup
			if test.guard == workloads.RowForUpdate {
				later.Go(func() { second = begin() }) // waits for the commit
				poll.Until(t, "the second transaction waits", func() bool {
					waiting, err := s.texts(t.Context(), `SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock'
						AND query LIKE '%' || $1 || '%FOR UPDATE'`, s.table())
					return err == nil && len(waiting) == 1
				})
			} else {
				second = begin()
			}
			if err := first.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			later.Wait()
			err := second.Write(t.Context())
			if refused := errors.Is(err, store.ErrStale); refused != test.refused || err != nil && !refused {
				t.Errorf("the second transaction wrote with %v", err)
			}
			if err == nil {
				err = second.Commit(t.Context())
			} else {
				second.Rollback()
				err = nil
			}
			if err != nil {
				t.Error(err)
			}
			taken, err := r.Taken(t.Context())
			if want := []int64{0, test.taken}; err != nil || !slices.Equal(taken, want) {
				t.Errorf("taken are %v, %v, want %v", taken, err, want)
			}
		})
	}
}

// late is a server on which no transaction commits before two transactions have read the row.
type late struct {
	*server
	read chan struct{} // closed by the second read
	seen int
	mu   sync.Mutex
}

type lateRows struct {
	store.Rows
	*late
}

type lateTransaction struct {
	store.Transaction
	*late
}

func (l *late) Rows(ctx context.Context, name string, run, keys, pool int) (store.Rows, error) {
	r, err := l.server.Rows(ctx, name, run, keys, pool)
	return lateRows{r, l}, err
}

func (r lateRows) Begin(ctx context.Context, key int, guard workloads.RowGuard) (store.Transaction, error) {
	tx, err := r.Rows.Begin(ctx, key, guard)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen++; r.seen == 2 {
		close(r.read)
	}
	return lateTransaction{tx, r.late}, err
}

func (tx lateTransaction) Commit(ctx context.Context) error {
	select {
	case <-tx.read:
	case <-ctx.Done():
	}
	return tx.Transaction.Commit(ctx)
}

// lostUpdates returns the number of lost updates in the run's report, or -1 if the report has no such number.
func lostUpdates(run *results.Run) int64 {
	if run.Safety.LostUpdates == nil {
		return -1
	}
	return *run.Safety.LostUpdates
}

// If the lock is released before the commit, updates must be lost, although the lock's holders do not overlap. If the
// lock is released after the commit, no update may be lost, whichever guard the row has.
func TestReleaseBeforeCommitLosesUpdates(t *testing.T) {
	s := withTable(t)
	local, err := baselines.Local().Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	noop, err := baselines.Noop().Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	run := func(j engine.Job, release workloads.Release, guard workloads.RowGuard) *results.Run {
		t.Helper()
		number++
		j.Workload, j.Session, j.Number = drive.Workload(30), s.RunID, number
		w := &j.Workload
		w.Work, w.Release, w.Row, w.Hold = workloads.WorkTransaction, release, guard, workloads.Dist{}
		ctx, cancel := context.WithTimeout(t.Context(), drive.Bound)
		defer cancel()
		got, err := j.Run(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Errors) > 0 {
			t.Errorf("errors %v", got.Errors)
		}
		return got
	}
	before := run(engine.Job{Strategy: local, Transactor: &late{server: s, read: make(chan struct{})}},
		workloads.ReleaseBeforeCommit, workloads.RowPlain)
	if lost := lostUpdates(before); lost <= 0 || before.Safety.Overlaps > 0 || len(before.Safety.Broken) > 0 {
		t.Errorf("released before the commit: lost %d, %+v", lost, before.Safety)
	}
	for _, test := range []struct {
		strategy strategies.Variant
		release  workloads.Release
		guard    workloads.RowGuard
	}{
		{local, workloads.ReleaseAfterCommit, workloads.RowPlain},
		{local, workloads.ReleaseBeforeCommit, workloads.RowVersion},
		{noop, workloads.ReleaseAfterCommit, workloads.RowVersion},
		{noop, workloads.ReleaseAfterCommit, workloads.RowWhere},
		{noop, workloads.ReleaseAfterCommit, workloads.RowForUpdate},
	} {
		got := run(engine.Job{Strategy: test.strategy, Transactor: s}, test.release, test.guard)
		if lost := lostUpdates(got); lost != 0 || len(got.Safety.Broken) > 0 {
			t.Errorf("%s, %s, %s: lost %d, %+v", test.strategy.Name(), test.release, test.guard, lost, got.Safety)
		}
	}
}

// TestFaultsOfRowHolders pauses a holder, and kills another, during a transaction. No update may be lost, and no
// transaction may stay open.
func TestFaultsOfRowHolders(t *testing.T) {
	t.Parallel()
	s := opened(t, store.Options{})
	if err := s.CreateTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	variant, err := lock.Strategy().Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []string{"holder-pause:at=50ms,for=100ms", "holder-crash:at=50ms"} {
		w := drive.Workload(20)
		w.Work, w.TTL, w.Faults = workloads.WorkTransaction, workloads.Duration(drive.Bound), drive.Faults(t, fault)
		run := drive.Run(t, s, store.NewRunID(), variant, w)
		if lost := lostUpdates(run); lost != 0 {
			t.Errorf("%s: lost %d", fault, lost)
		}
		open, err := s.texts(t.Context(), "SELECT query FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'")
		if err != nil || len(open) > 0 {
			t.Errorf("%s: open transactions: %q, %v", fault, open, err)
		}
		if err := s.exec(t.Context(), "DELETE FROM "+s.table()); err != nil {
			t.Fatal(err)
		}
	}
}

// The role may not create tables. CreateTable must return an error that says that the role lacks a right.
func TestRoleWithoutCreateTable(t *testing.T) {
	users := common(t)
	eye := connected(t, users.url())
	const role = "CREATE ROLE tableless LOGIN PASSWORD 'x'; REVOKE CREATE ON SCHEMA public FROM public"
	if _, err := eye.Exec(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	theirs := strings.Replace(users.url(), superuser+":"+users.password, "tableless:x", 1)
	err := opened(t, store.Options{Address: theirs}).CreateTable(t.Context())
	if !errors.Is(err, store.ErrConfig) || !strings.Contains(fmt.Sprint(err), "lacks a right") {
		t.Errorf("the error is %v", err)
	}
}

// TestSweepOfTables sweeps a server that has the table of a dead session, and tables that differ from it only in the
// name or in the missing comment. Only the first must be dropped.
func TestSweepOfTables(t *testing.T) {
	s := withTable(t)
	const dead, strange = tablePrefix + "abcdef01", tablePrefix + "abcdef02"
	const others = "CREATE TABLE " + dead + " (n int); COMMENT ON TABLE " + dead + " IS '" + tableComment + "'; " +
		"CREATE TABLE " + strange + " (n int); CREATE TABLE lockbench_cart (n int); " +
		"COMMENT ON TABLE lockbench_cart IS '" + tableComment + "'"
	eye := connected(t, common(t).url())
	if _, err := eye.Exec(t.Context(), others); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = eye.Exec(context.Background(), "DROP TABLE lockbench_cart, "+strange) })
	var swept store.Swept
	s.Sweep(t.Context(), &swept)
	if swept.Found != 1 || !slices.Equal(swept.Runs, []string{"abcdef01"}) || len(swept.Skipped) > 0 {
		t.Errorf("swept %+v", swept)
	}
	left := strings.Join(contents(t, eye), "\n")
	if strings.Contains(left, dead) || !strings.Contains(left, strange) || !strings.Contains(left, "lockbench_cart") ||
		!strings.Contains(left, s.table()) {
		t.Errorf("left are\n%s", left)
	}
}
