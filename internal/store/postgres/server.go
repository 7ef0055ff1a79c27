package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockbench/lockbench/internal/intercept"
	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
)

const (
	// patience bounds what is asked of the server beside a run.
	patience = 5 * time.Second
	// dialsAtOnce bounds how many connections are being opened: each is a process.
	dialsAtOnce = 32
	// prefix begins all names of connections.
	prefix = "lockbench:"
)

// server is the PostgreSQL of a session.
type server struct {
	layout
	commands
	runID  string
	own    *own // nil for a user's
	config *pgx.ConnConfig
	pin    *launch.Pinning
	slots  chan struct{} // held while dialling

	observer *pgxpool.Pool // which looks on
	observed intercept.Traffic
	asked    atomic.Int64 // transactions of the observer

	about results.Redis
	runs  []string // what RunIDs returns

	mu      sync.Mutex
	traffic []*intercept.Traffic // one an instance, of closed ones too
	counter sync.Mutex           // held while the counters' table is being made
	counted atomic.Bool          // it is there
}

func open(ctx context.Context, runID string, o store.Options) (*server, error) {
	launch.Sweep(ctx)
	s := &server{layout: layout{started(o), o.AllowFaults}, runID: runID, slots: make(chan struct{}, dialsAtOnce)}
	var err error
	if o.Pin {
		if s.pin, err = launch.NewPinning(); err != nil {
			return nil, err
		}
	}
	if s.started {
		s.own, err = start(ctx, runID, o.Durability, s.pin.ServerCPUs())
		if err != nil {
			return nil, err
		}
		s.config = s.own.config(s.own.Process)
	} else if s.config, err = parseAddress(o.Address, o.CAFile); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrConfig, err)
	}
	if err := s.connect(ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	if s.own == nil {
		s.sweep(ctx)
	}
	return s, s.pin.PinGenerator()
}

// connect opens the observer's connections, and asks what server it is.
func (s *server) connect(ctx context.Context) error {
	pool, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	pool.ConnConfig = s.configFor(s.observerName(), &s.observed, nil)
	pool.MinConns, pool.MaxConns = 1, 2
	pool.MaxConnLifetime, pool.MaxConnIdleTime = 1000*time.Hour, 1000*time.Hour
	// A session without a connection is dead, so this one shows that it lives.
	conn, err := pgx.ConnectConfig(ctx, pool.ConnConfig)
	if err != nil {
		return s.unreached(ctx, err)
	}
	if err := s.learn(ctx, conn); err != nil {
		return errors.Join(s.unreached(ctx, err), conn.Close(ctx))
	}
	if s.observer, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), pool); err == nil {
		err = s.Ping(ctx)
	}
	return errors.Join(err, conn.Close(ctx))
}

// oldest is the version that the locks need: idle_session_timeout and
// client_connection_check_interval came with it.
const oldest = 140000

// learn asks what server it is.
func (s *server) learn(ctx context.Context, conn *pgx.Conn) error {
	var version string
	var number int
	var standby bool
	var began time.Time
	var encrypted bool
	var fsync, commit string
	err := conn.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('server_version_num')::int, pg_is_in_recovery(), pg_postmaster_start_time(),
		coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false), current_setting('fsync'), current_setting('synchronous_commit')`).
		Scan(&version, &number, &standby, &began, &encrypted, &fsync, &commit)
	switch {
	case err != nil:
		return err
	case number < oldest:
		return fmt.Errorf("%w: PostgreSQL %s is too old: the locks need 14 or newer", store.ErrConfig, version)
	case standby:
		return fmt.Errorf("%w: %s is a standby, whose advisory locks are not the primary's: give the primary's address", store.ErrConfig, shown(s.config))
	}
	s.runs = []string{fmt.Sprintf("%s@%d", shown(s.config), began.UnixMicro())}
	version, _, _ = strings.Cut(version, " ") // what a package adds
	s.about = results.Redis{
		Source: "address", Address: shown(s.config), Topology: single, Name: "postgres", Version: version,
		Network: networkTo(s.config), TLS: encrypted, PinnedCPUs: s.pin.ServerCPUs(),
	}
	switch {
	case fsync == "off":
		s.about.Durability = string(store.InMemory)
	case commit != "off":
		s.about.Durability = string(store.Synced)
	}
	if s.own != nil {
		s.about.Source = "process"
		s.about.Why = "a process of " + s.own.bin
	}
	return nil
}

func (s *server) observerName() string { return prefix + s.runID + ":observer" }

// schema is where tables and sequences of the session are.
func (s *server) schema() string { return schemaPrefix + strings.ToLower(s.runID) }

// configFor is the configuration of connections of that name. What they carry is counted
// below the detour.
func (s *server) configFor(name string, traffic *intercept.Traffic, detour store.Through) *pgx.ConnConfig {
	config := s.config.Copy()
	config.RuntimeParams["application_name"] = name
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return nil, fmt.Errorf("wait to dial: %w", ctx.Err())
		}
		conn, err := (&net.Dialer{KeepAlive: 5 * time.Minute}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return traffic.Conn(conn), nil
	}
	config.DialFunc = dial
	if detour != nil {
		config.DialFunc = detour(dial)
	}
	return config
}

// Describe says which PostgreSQL it is, without any secret.
func (s *server) Describe() results.Redis { return s.about }

// RunIDs tell the server from others, and from itself after a restart.
func (s *server) RunIDs() []string { return s.runs }

// Local says whether the server is on this machine.
func (s *server) Local() bool { return s.about.Network != "remote" }

// GeneratorCPUs are the CPUs the generator was pinned to.
func (s *server) GeneratorCPUs() []int { return s.pin.GeneratorCPUs() }

// Ping says whether the server answers.
func (s *server) Ping(ctx context.Context) error {
	_, err := s.exec(ctx, "SELECT 1")
	return err
}

// Settle waits until the server answers again.
func (s *server) Settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		err := s.Ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: wait for PostgreSQL: %w", store.ErrUnreachable, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Limits are max_connections, without those that are kept for superusers, and how many
// there are.
func (s *server) Limits(ctx context.Context) (store.Limits, error) {
	var limits store.Limits
	err := s.query(ctx, func(row pgx.Row) error { return row.Scan(&limits.MaxClients, &limits.Connected) },
		`SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
		(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`)
	if err != nil {
		return store.Limits{}, fmt.Errorf("%w: read the limits: %w", store.ErrUnreachable, err)
	}
	return limits, nil
}

// query asks for a row.
func (s *server) query(ctx context.Context, scan func(pgx.Row) error, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.asked.Add(1)
	return scan(s.observer.QueryRow(ctx, sql, args...))
}

// exec does something, and says how many rows it concerned.
func (s *server) exec(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.asked.Add(1)
	tag, err := s.observer.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

// texts asks for a column of texts.
func (s *server) texts(ctx context.Context, sql string, args ...any) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s.asked.Add(1)
	rows, err := s.observer.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Close removes what is the session's, and the server that Open started. It works with a
// context that has ended.
func (s *server) Close(ctx context.Context) error {
	faults := []error{s.pin.Unpin()}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if s.observer != nil {
		s.observer.Close()
		if s.own == nil {
			faults = append(faults, s.dropSchema(ctx))
		}
	}
	if s.own != nil {
		faults = append(faults, s.own.Close(ctx))
	}
	return errors.Join(faults...)
}

// dropSchema removes the session's schema, unless another generator of the session is
// still there, who will.
func (s *server) dropSchema(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, s.configFor(s.observerName(), &s.observed, nil))
	if err != nil {
		return nil //nolint:nilerr // nobody is there to remove it from; the next session does
	}
	defer conn.Close(ctx)
	var there, others bool
	err = conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL, EXISTS (SELECT FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND starts_with(application_name, $2))",
		pgx.Identifier{s.schema()}.Sanitize(), prefix+s.runID+":").Scan(&there, &others)
	if err == nil && there && !others {
		_, err = conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{s.schema()}.Sanitize()+" CASCADE")
	}
	if err != nil {
		return fmt.Errorf("remove the schema %s: %w", s.schema(), err)
	}
	return nil
}

// schemaPrefix begins the names of lockbench's schemas.
const schemaPrefix = "lockbench_"

// sweep removes the schemas of sessions that are dead: no connection has their name. What
// somebody else owns stays.
func (s *server) sweep(ctx context.Context) {
	dead, err := s.texts(ctx, `SELECT nspname::text FROM pg_namespace n WHERE starts_with(nspname, $1) AND pg_has_role(nspowner, 'USAGE')
		AND nspname <> $2 AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE starts_with(lower(application_name), $3 || substr(nspname, length($1) + 1) || ':'))
		AND NOT EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND NOT starts_with(relname, $1))`, schemaPrefix, s.schema(), prefix)
	if err != nil {
		return
	}
	for _, schema := range dead {
		_, _ = s.exec(ctx, "DROP SCHEMA IF EXISTS "+pgx.Identifier{schema}.Sanitize()+" CASCADE") // the next one tries again
	}
}

// Read takes one reading. The counters of transactions are up to a second old, since every
// backend tells of its own no more often.
func (s *server) Read(ctx context.Context) (results.Reading, error) {
	began := time.Now()
	var transactions, clients int64
	err := s.query(ctx, func(row pgx.Row) error { return row.Scan(&transactions, &clients) },
		`SELECT xact_commit + xact_rollback, (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
		FROM pg_stat_database WHERE datname = current_database()`)
	if err != nil {
		return results.Reading{}, fmt.Errorf("read the counters: %w", err)
	}
	r := results.Reading{
		At: began.Add(time.Since(began) / 2), Clients: clients,
		Commands: map[string]int64{"transaction": transactions},
		Observer: results.ObserverCounts{
			Commands:   map[string]int64{"transaction": s.asked.Load()},
			RoundTrips: s.observed.Requests(), BytesOut: s.observed.Written(), BytesIn: s.observed.Read(),
		},
	}
	if s.own != nil {
		r.CPU = s.own.CPU()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range append([]*intercept.Traffic{&s.observed}, s.traffic...) {
		r.RoundTrips += t.Requests()
		r.ClientBytesOut += t.Written()
		r.ClientBytesIn += t.Read()
	}
	return r, nil
}

// Subscriptions are none: no lock listens.
func (*server) Subscriptions(context.Context) *int64 { return nil }

// Connected lists the names of connections that begin so, each once.
func (s *server) Connected(ctx context.Context, begin string) ([]string, error) {
	return s.texts(ctx, "SELECT DISTINCT application_name FROM pg_stat_activity WHERE starts_with(application_name, $1)", begin)
}

// Leftovers names the rows that contain mark, the advisory locks that connections of the
// run hold, and the connections of that name.
func (s *server) Leftovers(ctx context.Context, mark, name string) (results.Leftovers, error) {
	var left results.Leftovers
	for _, t := range tables {
		table := pgx.Identifier{s.schema(), t.name}.Sanitize()
		var there bool
		if err := s.query(ctx, func(row pgx.Row) error { return row.Scan(&there) }, "SELECT to_regclass($1) IS NOT NULL", table); err != nil {
			return left, err
		} else if !there {
			continue
		}
		keys, err := s.texts(ctx, "SELECT convert_from("+t.key+", 'UTF8') FROM "+table+" WHERE position($1::bytea IN "+t.key+") > 0", []byte(mark))
		if err != nil {
			return left, err
		}
		left.Keys = append(left.Keys, keys...)
	}
	// An advisory lock has a number, which does not tell its key.
	if session, run, ok := strings.Cut(strings.Trim(mark, "{:"), ":"); ok {
		held, err := s.texts(ctx, `SELECT format('advisory lock %s of %s, process %s', classid::bigint << 32 | objid::bigint, application_name, pid)
			FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND (application_name = $1 OR starts_with(application_name, $1 || ':'))`,
			prefix+session+":run"+run)
		if err != nil {
			return left, err
		}
		left.Keys = append(left.Keys, held...)
	}
	if name == "" {
		return left, nil
	}
	connections, err := s.texts(ctx, "SELECT format('process %s, %s for %s: %s', pid, state, date_trunc('milliseconds', now() - state_change), query) FROM pg_stat_activity WHERE application_name = $1", name)
	left.Connections = connections
	return left, err
}

// tables are those with rows of keys.
var tables = []struct{ name, key string }{{"lockbench_lock", "key"}, {counterTable, "name"}}

// Remove deletes the rows of keys. Advisory locks end with their connections.
func (s *server) Remove(ctx context.Context, keys []string) error {
	raw := make([][]byte, len(keys))
	for n, key := range keys {
		raw[n] = []byte(key)
	}
	for _, t := range tables {
		table := pgx.Identifier{s.schema(), t.name}.Sanitize()
		if _, err := s.exec(ctx, "DELETE FROM "+table+" WHERE "+t.key+" = ANY($1)", raw); err != nil && cmp.Or(code(err), "") != undefinedTable {
			return fmt.Errorf("delete %d rows: %w", len(keys), err)
		}
	}
	return nil
}
