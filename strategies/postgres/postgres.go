// Package postgres is a lock on PostgreSQL: a session-level advisory lock, pg_advisory_lock, which a waiter blocks in
// until the server grants it.
//
// postgres.md says what it guarantees, what breaks it, and what it costs.
package postgres

import (
	_ "embed"

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
		Unwritten:   true,
	}, Options{}, Open)
}

// Config is what the lock is opened with. A node is one PostgreSQL: the lock copies its configuration, and opens
// connections of its own with it.
type Config = strategies.ConfigOf[*pgx.ConnConfig]

// Options are none.
type Options struct{}
