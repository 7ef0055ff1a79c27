// Package gopgx is how locks on PostgreSQL reach it: by the configuration of a connection
// of pgx.
package gopgx

import (
	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/strategies"
)

// Config is what a lock on PostgreSQL is opened with.
type Config = strategies.ConfigOf[Node]

// Node is one PostgreSQL. A lock copies Config and opens its own connections with it.
type Node struct {
	Config *pgx.ConnConfig
	// Schema is where a lock that needs a table or a sequence has it. The lock makes what is
	// missing. "" means the first schema of the connections' search_path.
	Schema string
}
