// Package postgres is a lock on PostgreSQL: by default a session-level advisory lock, pg_advisory_lock, which a waiter
// blocks in until the server grants it.
//
// postgres.md says what it guarantees, what breaks it, and what it costs.
package postgres

import (
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

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

// Config is what the lock is opened with. A node is one PostgreSQL: the lock copies its configuration, and opens
// connections of its own with it.
type Config = strategies.ConfigOf[*pgx.ConnConfig]

// Mode is the kind of PostgreSQL lock.
type Mode string

// The modes; postgres.md says what they are.
const (
	Advisory Mode = "advisory"
	Row      Mode = "row"
)

// Options choose the kind of lock.
type Options struct {
	Mode Mode `opt:"mode" help:"advisory (of the session), or row (SELECT … FOR UPDATE in a transaction)"`
}

// Defaults returns an advisory lock.
func Defaults() Options { return Options{Mode: Advisory} }

// Validate returns an error for an unknown mode.
func (o Options) Validate() error {
	if o.Mode != Advisory && o.Mode != Row {
		return fmt.Errorf("there is no mode %q: there are %s and %s", o.Mode, Advisory, Row)
	}
	return nil
}

// Refine says what is claimed with these options.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Unwritten = o.Mode == Advisory
	if o.Mode == Row {
		info.Summary = "SELECT … FOR UPDATE in a transaction that is open while the lock is held"
		info.Claims.FIFO = false
		info.Format = "rows of PostgreSQL"
		info.Persistent = []string{"{key}"}
	}
	return info
}
