// Package postgres is a lock on PostgreSQL: by default a session-level advisory lock,
// pg_advisory_lock, which a waiter blocks in until the server grants it.
//
// postgres.md has the rest: what it guarantees, what breaks it, and what it costs.
package postgres

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/strategies"
)

//go:embed postgres.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:         doc,
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

// The modes; postgres.md says what they are.
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
