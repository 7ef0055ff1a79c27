package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// session is one connection, of one caller at a time.
type session struct {
	conn      *pgx.Conn
	canceller *canceller
	used      bool      // it has been kept for the next caller
	since     time.Time // when it was kept
	altered   bool      // it is not as it was opened: do not keep it
}

// configFor is the configuration of a session's connection.
func (l *Locker) configFor(s *session) *pgx.ConnConfig {
	config := l.config.Nodes[0].Config.Copy()
	config.DialFunc = l.sockets.through(config.DialFunc)
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		s.canceller = &canceller{conn: conn}
		return s.canceller
	}
	if config.ValidateConnect == nil { // a standby's advisory locks are not the primary's
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	if l.options.Mode == Xact {
		// Whatever is kept in a session may be lost behind a PgBouncer: statements and settings.
		if config.DefaultQueryExecMode != pgx.QueryExecModeSimpleProtocol {
			config.DefaultQueryExecMode = pgx.QueryExecModeExec
		}
		return config
	}
	for name, value := range l.settings() {
		if _, set := config.RuntimeParams[name]; !set {
			config.RuntimeParams[name] = value
		}
	}
	return config
}

// settings are those of the lock's sessions. A setting in the Node's Config wins.
func (l *Locker) settings() map[string]string {
	ttl := l.config.TTL
	settings := map[string]string{
		// A holder out of reach keeps the lock for the TTL, and not for much longer.
		"tcp_keepalives_idle":     strconv.Itoa(max(1, int(ttl/time.Second)/2)),
		"tcp_keepalives_interval": "1",
		"tcp_keepalives_count":    strconv.Itoa(int(math.Ceil(ttl.Seconds())) + 1), // tcp_user_timeout comes first
		"tcp_user_timeout":        strconv.FormatInt(max(ttl, time.Second).Milliseconds(), 10),
		// A waiter whose process is gone leaves the queue within that time.
		"client_connection_check_interval": "1s",
		// A wait ends by its context, and a lease by its release.
		"statement_timeout": "0", "lock_timeout": "0",
		"idle_session_timeout": "0", "idle_in_transaction_session_timeout": "0",
	}
	if l.options.Expire {
		silence := "idle_session_timeout"
		if l.sql.transaction {
			silence = "idle_in_transaction_session_timeout"
		}
		settings[silence] = strconv.FormatInt(ttl.Milliseconds(), 10)
	}
	return settings
}

// connect opens a session.
func (l *Locker) connect(ctx context.Context) (*session, error) {
	s := new(session)
	var err error
	if s.conn, err = pgx.ConnectConfig(ctx, l.configFor(s)); err != nil {
		return nil, fmt.Errorf("connect: %w", because(ctx, err))
	}
	return s, nil
}

// usable says whether a session can be kept.
func (s *session) usable() bool {
	return !s.conn.IsClosed() && !s.altered && !s.canceller.indeterminate
}

// raw is the connection as it was dialled.
func (s *session) raw() net.Conn {
	conn := s.conn.PgConn().Conn()
	if encrypted, ok := conn.(interface{ NetConn() net.Conn }); ok {
		return encrypted.NetConn()
	}
	return conn
}

// ended says whether an error means that the server had ended the session before it read the
// statement.
func ended(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	switch pg.Code {
	case "57P01", "57P02", "57P05", "25P03": // shutdown, crash of another backend, silence
		return true
	}
	return false
}

// because returns an error for which errors.Is(err, ctx.Err()) holds if ctx has ended.
func because(ctx context.Context, err error) error {
	cause := ctx.Err()
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}
