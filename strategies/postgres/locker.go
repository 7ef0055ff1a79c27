package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/background"
)

const (
	// closing is the time limit for closing a connection.
	closing = time.Second
	// opening is the largest number of connections that Prepare opens at the same time.
	opening = 8
)

// Locker acquires locks for all goroutines of one process. It owns the connections whose sessions hold the locks.
type Locker struct {
	config  Config
	connect *pgx.ConnConfig

	mu       sync.Mutex
	closed   bool
	idle     []*pgx.Conn
	cleaning background.Group // goroutines that wait until a connection is closed
}

// Open returns a Locker on the first node. It does not contact PostgreSQL yet.
func Open(config Config, _ Options) (*Locker, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	connect := config.Nodes[0].Copy()
	if connect.ValidateConnect == nil { // because a standby has separate advisory locks
		connect.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	for name, value := range settings(config.TTL) {
		if _, set := connect.RuntimeParams[name]; !set {
			connect.RuntimeParams[name] = value
		}
	}
	return &Locker{config: config, connect: connect}, nil
}

// settings returns the settings of the lock's sessions. A setting in the node's configuration takes precedence.
func settings(ttl time.Duration) map[string]string {
	return map[string]string{
		// If a holder is unreachable, the server ends the holder's session after the TTL or soon afterwards, which frees the
		// session's locks.
		"tcp_keepalives_idle":     strconv.Itoa(max(1, int(ttl/time.Second)/2)),
		"tcp_keepalives_interval": "1",
		"tcp_keepalives_count":    strconv.Itoa(int(math.Ceil(ttl.Seconds())) + 1), // tcp_user_timeout comes first
		"tcp_user_timeout":        strconv.FormatInt(max(ttl, time.Second).Milliseconds(), 10),
		// If the process of a waiter ends, the server removes the waiter from the queue within this time.
		"client_connection_check_interval": "1s",
		// No server-side timeout may end a wait or a lease. A wait ends by its context, and a lease by its release.
		"statement_timeout": "0", "lock_timeout": "0", "idle_session_timeout": "0",
	}
}

// Prepare opens a connection for each expected caller.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	var all errgroup.Group
	all.SetLimit(opening)
	for range l.config.Callers {
		all.Go(func() error {
			conn, err := l.open(ctx)
			if err == nil {
				l.put(conn)
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	return nil
}

// take returns an idle connection, or a new one if there is none. kept is true for an idle connection, which may be
// dead by now.
func (l *Locker) take(ctx context.Context) (conn *pgx.Conn, kept bool, err error) {
	l.mu.Lock()
	closed, last := l.closed, len(l.idle)-1
	if last >= 0 {
		conn = l.idle[last]
		l.idle = l.idle[:last]
	}
	l.mu.Unlock()
	switch {
	case closed:
		return nil, false, strategies.ErrClosed
	case conn != nil:
		return conn, true, nil
	}
	conn, err = l.open(ctx)
	return conn, false, err
}

// open opens a connection, and checks that no pooler shares its session with other clients.
func (l *Locker) open(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, l.connect)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", because(ctx, poolerRefuses(err)))
	}
	if err := ownSession(ctx, conn); err != nil {
		l.end(conn)
		return nil, fmt.Errorf("connect: %w", because(ctx, err))
	}
	return conn, nil
}

// put keeps a connection without a lock for the next caller. If the Locker or the connection is closed, put ends the
// connection.
func (l *Locker) put(conn *pgx.Conn) {
	l.mu.Lock()
	keep := !l.closed && !conn.IsClosed()
	if keep {
		l.idle = append(l.idle, conn)
	}
	l.mu.Unlock()
	if !keep {
		l.end(conn)
	}
}

// end closes a connection, so that the server releases the locks of its session.
func (l *Locker) end(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	_ = conn.Close(ctx)
	wait := func() { <-conn.PgConn().CleanupDone() }
	if !l.cleaning.Go(wait) { // after Close the caller itself waits
		wait()
	}
}

// Close closes the connections that hold no lock. Leases can still be released.
func (l *Locker) Close() error {
	l.mu.Lock()
	idle := l.idle
	l.idle, l.closed = nil, true
	l.mu.Unlock()
	for _, conn := range idle {
		l.end(conn)
	}
	l.cleaning.Close()
	return nil
}

// Acquire waits at the server until the caller holds the lock or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, false)
}

// TryAcquire makes one attempt, and returns ErrHeld if another client holds the lock.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, true)
}

// acquire locks on one connection. If a kept connection turns out to be dead, acquire tries again on another
// connection. This is safe, because a dead connection holds no lock. If ctx ends during the wait, pgx closes the
// connection.
func (l *Locker) acquire(ctx context.Context, key string, try bool) (strategies.Lease, error) {
	name := l.config.Key(key)
	for ctx.Err() == nil {
		conn, kept, err := l.take(ctx)
		if err != nil {
			return nil, err
		}
		l.config.Probe.Attempt()
		got, err := lock(ctx, conn, name, try)
		switch {
		case err == nil && got && ctx.Err() == nil && !l.isClosed():
			return &lease{locker: l, conn: conn, name: name}, nil
		case err == nil && !got:
			l.put(conn)
			return nil, strategies.ErrHeld
		case err == nil:
			err = cmp.Or(ctx.Err(), strategies.ErrClosed)
		}
		dead := conn.IsClosed()
		l.end(conn)
		if !kept || !dead {
			return nil, fmt.Errorf("lock %q: %w", name, because(ctx, err))
		}
	}
	return nil, fmt.Errorf("lock %q: %w", name, ctx.Err())
}

func (l *Locker) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// lock takes the advisory lock of name. If try is true, it does not wait, and got is false if another session holds the
// lock.
func lock(ctx context.Context, conn *pgx.Conn, name string, try bool) (got bool, err error) {
	if try {
		err = conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", number(name)).Scan(&got)
		return got, err
	}
	_, err = conn.Exec(ctx, "SELECT pg_advisory_lock($1)", number(name))
	return true, err
}

// number returns the number of the advisory lock for key, the lock's name with its prefix. It is the first 8 bytes of
// the SHA-256 of key.
func number(key string) int64 {
	sum := sha256.Sum256([]byte(key))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// lease is a connection whose session holds the advisory lock.
type lease struct {
	locker *Locker
	conn   *pgx.Conn
	name   string
	over   bool
}

// Release releases the lock. It always ends the lease: if the command fails, Release closes the connection, and the
// server frees the lock when it detects the closed connection.
func (held *lease) Release(ctx context.Context) error {
	if held.over {
		return strategies.ErrNotHeld
	}
	held.over = true
	if held.conn.IsClosed() {
		held.locker.end(held.conn)
		return strategies.ErrNotHeld
	}
	var freed bool
	err := held.conn.QueryRow(ctx, "SELECT pg_advisory_unlock($1)", number(held.name)).Scan(&freed)
	if err == nil && freed {
		held.locker.put(held.conn)
		return nil
	}
	held.locker.end(held.conn)
	if err == nil || ended[code(err)] {
		return strategies.ErrNotHeld
	}
	return fmt.Errorf("unlock %q: %w", held.name, because(ctx, err))
}

// ended are the error codes with which the server ends a session before it reads a statement.
var ended = map[string]bool{"57P01": true, "57P02": true, "57P05": true}

// code returns the SQLSTATE of an error from the server; "" for any other error.
func code(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// because returns err, joined with ctx.Err() if ctx has ended.
func because(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
