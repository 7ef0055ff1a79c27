package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/workloads"
)

const (
	// patience limits the time of each request that is not part of the measured work.
	patience = 5 * time.Second
	// dialsAtOnce limits the number of concurrent dials, because the server starts a process for each connection.
	dialsAtOnce = 32
	// prefix is the prefix of the application_name of all connections of lockbench.
	prefix = "lockbench:"
)

// server is the PostgreSQL of a session.
type server struct {
	ensemble.Servers
	bin, password string // directory of programs and password of a server that lockbench started
	config        *pgx.ConnConfig
	dials         chan struct{} // limits concurrent dials

	observer *pgxpool.Pool // the connections of lockbench's own observation
	tabled   bool          // the table of the session exists, see rows.go

	runs    []string    // result of RunIDs
	logLost atomic.Bool // the server that lockbench started has restarted without its data
}

// Begin implements ensemble.Server. It starts a server, or connects to the user's server.
func (s *server) Begin(ctx context.Context, o store.Options) (err error) {
	if s.Started {
		err = s.start(ctx, o)
	} else if s.config, err = parseAddress(o.Address, o.CAFile); err == nil {
		s.Find(ctx, o, shown(s.config))
	}
	if err != nil {
		return err
	}
	return s.connect(ctx)
}

// connect opens the observer's connections and identifies the server.
func (s *server) connect(ctx context.Context) error {
	pool, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	pool.ConnConfig = s.configFor(prefix+s.RunID+":observer", &s.Meter.Observed, nil)
	pool.MaxConns = 2
	if s.observer, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), pool); err != nil {
		return err
	}
	if err = s.learn(ctx); err != nil {
		return s.unreached(err)
	}
	return nil
}

// oldest is the oldest version of PostgreSQL with which the locks work. This version introduced idle_session_timeout
// and client_connection_check_interval.
const oldest = 140000

// learn reads the server's version and settings, and records them for Describe. It returns an error if the server is a
// standby or its version is below oldest.
func (s *server) learn(ctx context.Context) error {
	var version string
	var number int
	var standby bool
	var began time.Time
	var encrypted bool
	var fsync, commit string
	err := s.observer.QueryRow(ctx, `SELECT
		current_setting('server_version'), current_setting('server_version_num')::int,
		pg_is_in_recovery(), pg_postmaster_start_time(),
		coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false),
		current_setting('fsync'), current_setting('synchronous_commit')`).
		Scan(&version, &number, &standby, &began, &encrypted, &fsync, &commit)
	switch {
	case err != nil:
		return err
	case number < oldest:
		return fmt.Errorf("%w: PostgreSQL %s is too old: the locks need 14 or newer", store.ErrConfig, version)
	case standby:
		return fmt.Errorf("%w: %s is a standby, which does not share the primary's advisory locks: "+
			"give the primary's address",
			store.ErrConfig, shown(s.config))
	}
	s.runs = []string{fmt.Sprintf("%s@%d", shown(s.config), began.UnixMicro())}
	version, _, _ = strings.Cut(untrusted.Printable(version), " ") // without the package's suffix
	about := &s.About
	about.Name, about.Version, about.Topology, about.Address = s.Store.Name, version, s.Topology(), shown(s.config)
	about.TLS, about.Durability = encrypted, ""
	switch {
	case fsync == "off":
		about.Durability = string(store.InMemory)
	case commit != "off":
		about.Durability = string(store.Synced)
	}
	if s.Started {
		about.Why += "; of " + s.bin
	}
	return nil
}

// configFor returns the configuration of connections with the given application_name. Their traffic is counted between
// the detour and the server.
func (s *server) configFor(name string, traffic *netfault.Traffic, detour store.Through) *pgx.ConnConfig {
	config := s.config.Copy()
	config.RuntimeParams["application_name"] = name
	dial := traffic.Through(func(ctx context.Context, network, addr string) (net.Conn, error) {
		select {
		case s.dials <- struct{}{}:
			defer func() { <-s.dials }()
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for earlier dials to finish: %w", ctx.Err())
		}
		return (&net.Dialer{KeepAlive: 5 * time.Minute}).DialContext(ctx, network, addr)
	})
	config.DialFunc = dial
	if detour != nil {
		config.DialFunc = detour(dial)
	}
	return config
}

// RunIDs returns the ID of the server's process. A restart changes the ID.
func (s *server) RunIDs() []string { return s.runs }

// Ping returns an error if the server does not reply to SELECT 1 within patience.
func (s *server) Ping(ctx context.Context) error {
	err := s.exec(ctx, "SELECT 1")
	return err
}

// Settle waits until the server replies to SELECT 1 again.
func (s *server) Settle(ctx context.Context) error {
	return s.Servers.Settle(ctx, s.Ping, func(ctx context.Context, p launch.Starting) error {
		return launch.Await(ctx, p, lastLine, s.Ping)
	})
}

// Limits returns max_connections minus the connections reserved for superusers, and the current number of connections.
func (s *server) Limits(ctx context.Context) (store.Limits, error) {
	var limits store.Limits
	err := s.query(ctx, func(row pgx.Row) error { return row.Scan(&limits.MaxClients, &limits.Connected) },
		`SELECT current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
		(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')`)
	if err != nil {
		return store.Limits{}, fmt.Errorf("%w: read the connection limits: %w", store.ErrUnreachable, err)
	}
	return limits, nil
}

// query runs a query on an observer's connection, within patience, and passes the first row of the result to scan.
func (s *server) query(ctx context.Context, scan func(pgx.Row) error, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return scan(s.observer.QueryRow(ctx, sql, args...))
}

// exec executes a statement on an observer's connection, within patience.
func (s *server) exec(ctx context.Context, sql string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := s.observer.Exec(ctx, sql, args...)
	return err
}

// texts runs a query on an observer's connection, within patience, and returns the single column of the result.
func (s *server) texts(ctx context.Context, sql string, args ...any) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rows, err := s.observer.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Close drops the session's table, disconnects, and removes the server that Open started. It works even if ctx is
// already done.
func (s *server) Close(ctx context.Context) error {
	var dropped error
	if s.observer != nil {
		dropped = s.dropTable(ctx)
		s.observer.Close()
	}
	return errors.Join(dropped, s.Servers.Close(ctx))
}

// Faults returns an Injector for the faults of the server's process.
func (s *server) Faults([]workloads.Fault) store.Injector {
	return injector{ensemble.Faults{Layout: s.Layout, Own: s.Own}, s}
}

// injector extends ensemble.Faults: it also replaces the data directory and resets the observer's connections.
type injector struct {
	ensemble.Faults
	server *server
}

// Prepare implements store.Faults. It checks that a fault is possible and prepares the fault.
func (i injector) Prepare(ctx context.Context, fault workloads.Fault, at store.RunMarks) (store.Action, error) {
	action, err := i.Faults.Prepare(ctx, fault, at)
	if err != nil || fault.Name != workloads.Kill {
		return action, err
	}
	action.Loses = fault.Data != workloads.DataKeep
	if action.Loses {
		if err := i.server.refresh(ctx, i.server.Own[0].(*launch.Process)); err != nil {
			return store.Action{}, fmt.Errorf("%s: %w", fault.Name, err)
		}
	}
	kill := action.Hit
	action.Hit = func(ctx context.Context) error {
		if action.Loses {
			i.server.logLost.Store(true)
		}
		return kill(ctx)
	}
	action.End = func(ctx context.Context) error {
		err := i.server.again(context.WithoutCancel(ctx), action.Loses)
		i.server.observer.Reset() // its connections have ended with the server
		return err
	}
	return action, nil
}
