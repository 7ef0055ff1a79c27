// Package postgres implements a lock on PostgreSQL: a session-level advisory lock. The connection is the lease.
//
//  1. Acquire sends SELECT pg_advisory_lock(N) on an unused connection. N is the first 8 bytes of the SHA-256 of the
//     prefix and the key.
//  2. A waiter blocks in that statement. The server keeps the queue.
//  3. Release sends SELECT pg_advisory_unlock(N), and keeps the connection for a later acquire.
//
// The server grants the lock to the next waiter when the holder releases it or the holder's connection ends.
//
// postgres.md describes guarantees, costs and failure modes.
package postgres

import (
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/strategies"
)

//go:embed postgres.md
var doc string

// Strategy returns the Info, the options and the constructor of the lock, for registration as postgres.
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

// Config is the configuration of the lock. A node is the connection configuration of one PostgreSQL server; the lock
// opens its own connections with it.
type Config = strategies.ConfigOf[*pgx.ConnConfig]

// Options is empty, because the lock has no options.
type Options struct{}
