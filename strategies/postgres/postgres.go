// Package postgres is a lock on PostgreSQL: by default a session-level advisory lock,
// pg_advisory_lock, which a waiter blocks in until the server grants it.
//
//	config, err := pgx.ParseConfig("postgres://localhost/app")
//	locker, err := postgres.Open(gopgx.Config{
//		Nodes: []gopgx.Node{{Config: config}}, TTL: 10 * time.Second,
//	}, postgres.Defaults())
//	lease, err := locker.Acquire(ctx, "order:17")
//	defer lease.Release(context.WithoutCancel(ctx))
//
// Every waiter and every holder has a connection of his own. Connections that nobody uses
// are kept for the next acquire. An acquire is one round trip and a release is another, and
// nobody polls. The advisory lock writes nothing to the disk.
//
// There is no TTL: the connection is the lease. The lock is held until it is released or the
// server sees the connection end. When a process dies, the kernel closes its connections, and
// its locks are free within milliseconds. A process that stands still keeps its locks for as
// long as it does, so that there is no second holder, and nobody gets the lock either. A
// holder whose machine dies or whose network breaks is found out by TCP: the lock asks the
// server to probe (tcp_keepalives_idle, tcp_user_timeout), so that the connection ends about
// the TTL after the last that was heard, and no earlier. Lost tells a holder that its
// connection has ended.
//
// With expire=true the server ends a holder's session that was silent for the TTL
// (idle_session_timeout, idle_in_transaction_session_timeout): then the lock frees whatever
// has become of the holder, a lease says until when it is valid, and it can be extended. That
// is the TTL of other locks, with what breaks them: a holder that works on past ValidUntil.
//
// The modes:
//
//   - advisory: pg_advisory_lock of a hash of the key, in the session.
//   - xact: pg_advisory_xact_lock of the same hash, in a transaction that stays open while the
//     lock is held. It keeps nothing in the session, so it works through a PgBouncer that
//     pools transactions too, which a session's lock does not survive. The PgBouncer's pool
//     needs a connection for every waiter and every holder.
//   - row: SELECT … FOR UPDATE of the key's row, in such a transaction. It writes to the disk:
//     the row's lock and the end of the transaction. The rows stay: one for every key.
//
// An advisory lock has a number, not a name: it is the first 8 bytes of the SHA-256 of the
// prefix and the key, as a signed integer, most significant byte first. In SQL:
//
//	('x' || left(encode(sha256(convert_to('order:17', 'UTF8')), 'hex'), 16))::bit(64)::bigint
//
// Of n keys two have the same number with a probability of n²/2⁶⁵. They are then one lock:
// never two holders, but the holders of one key wait for those of the other. Advisory locks
// belong to a database, not to a schema, and everybody who locks such numbers shares them.
//
// It guarantees exclusion while the connection lives. With an advisory lock the server serves
// waiters in the order in which their requests reach it. Rows have no such order: who comes
// just when a transaction ends may go first.
//
// A wait that ends by its context is cancelled at the server (a cancel request, on a
// connection of its own); a lock that was granted in the same moment is given back. A release
// that fails ends the connection, and the lock with it.
//
// With fence=true (advisory only) a lease has a fencing token: the next value of a sequence,
// drawn once the lock is held, in the same round trip. PostgreSQL writes it to the disk once in
// 32 values. Tokens grow as long as the server keeps what it has confirmed: not with
// synchronous_commit=off and a crash, and not when a replica takes over that had not heard of
// the last values. A crash in the moment in which a value of another key is on its way to
// the disk may repeat a token too. In a transaction there is none of this: a value that was
// drawn is not safe before the commit, which is also the release.
//
// What breaks it: a standby, where advisory locks are its own and not the primary's; so
// connections to a standby are refused. A failover: the new primary knows of no lock. A
// PgBouncer that pools transactions or statements, but with mode=xact. Somebody who ends the
// holder's backend (pg_terminate_backend). The death of the server's first process alone (kill
// -9, or the kernel when memory is short): the others see it one after the other and end in good
// order, and until then each passes its lock to the next in the queue.
//
// It needs PostgreSQL 14 or newer, no right but CONNECT for advisory locks, and for fences and
// rows either CREATE on the schema or, made beforehand:
//
//	CREATE SEQUENCE lockbench_fence;                       -- USAGE
//	CREATE TABLE lockbench_lock (key bytea PRIMARY KEY);   -- SELECT, INSERT, UPDATE
package postgres

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/strategies"
)

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Name:        "postgres",
		Summary:     "pg_advisory_lock, queued by the server; the connection is the lease: no TTL",
		Claims:      strategies.Claims{Exclusion: true, FIFO: true},
		Capacity:    1,
		Store:       "postgres",
		Nodes:       1,
		Connections: strategies.Connections{PerWaiter: 1},
	}, Defaults(), Open)
}

// Mode is the kind of PostgreSQL lock.
type Mode string

// The modes; the package comment says what they are.
const (
	Advisory Mode = "advisory"
	Xact     Mode = "xact"
	Row      Mode = "row"
)

// MarshalText writes the mode's name.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m), nil }

// UnmarshalText reads a mode's name.
func (m *Mode) UnmarshalText(text []byte) error {
	switch mode := Mode(strings.ToLower(string(text))); mode {
	case Advisory, Xact, Row:
		*m = mode
		return nil
	}
	return fmt.Errorf("there is no mode %q: there are advisory, xact and row", text)
}

// Options choose the kind of lock.
type Options struct {
	Mode   Mode `opt:"mode" help:"advisory (of the session), xact (advisory, of a transaction: works behind a PgBouncer) or row (SELECT … FOR UPDATE)"`
	Expire bool `opt:"expire" help:"the server ends a holder's session that is silent for the TTL, so that a dead holder's lock frees by itself"`
	Fence  bool `opt:"fence" help:"draw a fencing token from a sequence with every lease; mode=advisory only"`
}

// Defaults returns an advisory lock without an end and without a token.
func Defaults() Options { return Options{Mode: Advisory} }

// Validate rejects tokens in a transaction.
func (o Options) Validate() error {
	if o.Fence && o.Mode != Advisory {
		return fmt.Errorf("fence cannot be had with mode=%s: a value drawn in a transaction is not safe before its end, which is the release", o.Mode)
	}
	return nil
}

// Refine says what is claimed with these options.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Claims.Recovery, info.Claims.Fencing = o.Expire, o.Fence
	info.Unwritten = o.Mode != Row && !o.Fence
	switch o.Mode {
	case Xact:
		info.Summary = "pg_advisory_xact_lock in a transaction that is open while the lock is held"
	case Row:
		info.Summary = "SELECT … FOR UPDATE in a transaction that is open while the lock is held"
		info.Claims.FIFO = false
		info.Persistent = []string{"{key}"}
	}
	if o.Expire {
		info.Summary += "; the server ends a session that is silent for the TTL"
	}
	return info
}
