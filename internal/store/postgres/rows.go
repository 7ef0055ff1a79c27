package postgres

import (
	"context"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// The table of --work transaction, lockbench_SESSION, has a row for each key of each run. Close drops the table. Sweep
// drops the tables of killed sessions. It recognises such a table by the table's name and comment.
const (
	tablePrefix  = "lockbench_"
	tableComment = "made by lockbench --work transaction, which drops it at the end"
	// stock is the number in a new row. It is larger than the number of transactions that any run makes.
	stock = 1_000_000_000_000
	// undefinedTable is PostgreSQL's error code for a table that does not exist.
	undefinedTable = "42P01"
)

// table returns the name of the session's table. The name needs no quotes in SQL.
func (s *server) table() string { return tablePrefix + s.RunID }

// CreateTable implements store.Transactor. It creates the session's table.
func (s *server) CreateTable(ctx context.Context) error {
	err := s.exec(ctx, fmt.Sprintf(`CREATE TABLE %s
		(run int, key int, n bigint NOT NULL, version bigint NOT NULL DEFAULT 0, PRIMARY KEY (run, key))`, s.table()))
	if err == nil {
		s.tabled = true
		err = s.exec(ctx, fmt.Sprintf("COMMENT ON TABLE %s IS '%s'", s.table(), tableComment))
	}
	if err != nil {
		return fmt.Errorf("create the table of --work transaction: %w", s.unreached(err))
	}
	return nil
}

// dropTable drops the session's table on a user's server. A server that lockbench started is removed with its tables.
func (s *server) dropTable(ctx context.Context) error {
	if !s.tabled || s.Started {
		return nil
	}
	if err := s.exec(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS "+s.table()); err != nil {
		return fmt.Errorf("drop the table %s of --work transaction: %w", s.table(), s.unreached(err))
	}
	s.tabled = false
	return nil
}

// rows are the rows of a run, with the pool of connections that its clients use. They implement store.Rows.
type rows struct {
	pool  *pgxpool.Pool
	table string
	run   int
}

// Rows inserts a row for each key and opens the pool. If a fault has removed the table, Rows first creates it again.
func (s *server) Rows(ctx context.Context, name string, run, keys, pool int) (store.Rows, error) {
	insert := func() error {
		return s.exec(ctx, fmt.Sprintf("INSERT INTO %s (run, key, n) SELECT $1, key, $2 FROM generate_series(0, $3) AS key",
			s.table()), run, int64(stock), keys-1)
	}
	err := insert()
	if code(err) == undefinedTable { // a fault took the server's data
		if err = s.CreateTable(ctx); err == nil {
			err = insert()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("insert the rows of the run: %w", err)
	}
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, err
	}
	config.ConnConfig = s.configFor(name, new(netfault.Traffic), nil)
	config.MaxConns = int32(pool)
	opened, err := pgxpool.NewWithConfig(context.WithoutCancel(ctx), config)
	if err != nil {
		return nil, err
	}
	r := &rows{opened, s.table(), run}
	if err := r.fill(ctx, pool); err != nil {
		r.Close()
		return nil, s.unreached(err)
	}
	return r, nil
}

// fill opens n connections of the pool, so that no client of a run waits for a dial.
func (r *rows) fill(ctx context.Context, n int) error {
	var all []*pgxpool.Conn
	defer func() {
		for _, conn := range all {
			conn.Release()
		}
	}()
	for range n {
		conn, err := r.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		all = append(all, conn)
	}
	return nil
}

// Close closes the connections of the pool.
func (r *rows) Close() { r.pool.Close() }

// Taken returns, in the order of the keys, how much the committed transactions have subtracted from each row.
func (r *rows) Taken(ctx context.Context) ([]int64, error) {
	found, err := r.pool.Query(ctx, fmt.Sprintf("SELECT $1 - n FROM %s WHERE run = $2 ORDER BY key", r.table),
		int64(stock), r.run)
	if err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	taken, err := pgx.CollectRows(found, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	return taken, nil
}

// transaction is an open transaction on the row of a key. It implements store.Transaction.
type transaction struct {
	pgx.Tx
	rows       *rows
	key        int
	guard      workloads.RowGuard
	n, version int64 // as read
}

// Begin begins a transaction at READ COMMITTED, PostgreSQL's default isolation level. At a stricter level, the server
// would refuse the second of two overlapping writes and so hide a fault of the lock.
func (r *rows) Begin(ctx context.Context, key int, guard workloads.RowGuard) (store.Transaction, error) {
	tx, err := r.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return nil, fmt.Errorf("begin a transaction: %w", err)
	}
	t := &transaction{Tx: tx, rows: r, key: key, guard: guard}
	if guard == workloads.RowWhere {
		return t, nil
	}
	query := "SELECT n, version FROM " + r.table + " WHERE run = $1 AND key = $2"
	if guard == workloads.RowForUpdate {
		query += " FOR UPDATE"
	}
	if err := tx.QueryRow(ctx, query, r.run, key).Scan(&t.n, &t.version); err != nil {
		t.Rollback()
		return nil, fmt.Errorf("read the row: %w", err)
	}
	return t, nil
}

// Write reduces the row's number by 1. If the guard's condition no longer holds, it changes no row and returns
// ErrStale.
func (t *transaction) Write(ctx context.Context) error {
	set, where, args := "n = $3", "", []any{t.rows.run, t.key, t.n - 1}
	switch t.guard {
	case workloads.RowWhere:
		set, where, args = "n = n - 1", " AND n > 0", args[:2]
	case workloads.RowVersion:
		set, where, args = "n = $3, version = version + 1", " AND version = $4", append(args, t.version)
	}
	done, err := t.Exec(ctx, "UPDATE "+t.rows.table+" SET "+set+" WHERE run = $1 AND key = $2"+where, args...)
	switch {
	case err != nil:
		return fmt.Errorf("write the row: %w", err)
	case done.RowsAffected() == 0:
		return store.ErrStale
	}
	return nil
}

// Commit commits the transaction. After an error it is unknown whether the server has committed it.
func (t *transaction) Commit(ctx context.Context) error {
	if err := t.Tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// Rollback ends the transaction, or closes its connection if the server does not reply within patience.
func (t *transaction) Rollback() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = t.Tx.Rollback(ctx) // which closes a connection that does not answer
}

var tableOfSession = regexp.MustCompile("^" + tablePrefix + "(" + store.IDPattern + ")$")

// Sweep implements store.Sweeper. It drops the tables of dead sessions. A session is alive as long as it has a
// connection.
func (s *server) Sweep(ctx context.Context, swept *store.Swept) {
	swept.Noun = "table"
	skip := func(err error) { swept.Skipped = append(swept.Skipped, fmt.Sprintf("%s: %v", shown(s.config), err)) }
	// The tables are listed before the connections, because a session connects before it creates its table.
	tables, err := s.texts(ctx, `SELECT relname FROM pg_class WHERE relkind = 'r' AND pg_table_is_visible(oid)
		AND pg_get_userbyid(relowner) = current_user AND obj_description(oid, 'pg_class') = $1`, tableComment)
	if err != nil {
		skip(err)
		return
	}
	for _, table := range tables {
		of := tableOfSession.FindStringSubmatch(table)
		if of == nil {
			continue
		}
		connected, err := s.texts(ctx,
			"SELECT application_name FROM pg_stat_activity WHERE starts_with(application_name, $1)", prefix+of[1]+":")
		if err == nil && len(connected) == 0 {
			err = s.exec(ctx, "DROP TABLE "+table)
			swept.Add(1, of[1])
		}
		if err != nil {
			skip(err)
		}
	}
}
