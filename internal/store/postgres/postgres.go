// Package postgres is the store PostgreSQL: a server that lockbench starts, or one of the user's.
//
// On a user's server lockbench creates one schema, lockbench_session_RUN, and only if a table or a
// sequence is needed: for the counter of --work counter, and for the locks that say so. The run
// removes it at its end; after a killed lockbench lockbench clean does.
package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

func init() { store.Register("postgres", Store{}) }

// Store is PostgreSQL.
type Store struct{}

// Title returns the store's name.
func (Store) Title() string { return "PostgreSQL" }

// Speaks says whether a PostgreSQL answers there to the request for TLS.
func (Store) Speaks(ctx context.Context, addr string) bool {
	const encrypt = "\x00\x00\x00\x08\x04\xd2\x16\x2f" // SSLRequest
	answer := store.Knock(ctx, addr, encrypt)
	return answer == "S" || answer == "N"
}

// Needs returns the rights that a user of PostgreSQL needs.
func (Store) Needs(string) []string {
	return []string{
		"GRANT CONNECT ON DATABASE bench TO bench",
		"for mode=row, fence=true and --work counter also GRANT CREATE ON DATABASE bench TO bench",
		"and a connection for each client that waits or holds: max_connections",
	}
}

// Schemes returns the schemes of its addresses.
func (Store) Schemes() []string { return []string{"postgres", "postgresql"} }

// Validate returns every error of the options, see store.Store.
func (Store) Validate(o store.Options) error {
	var problems []error
	if o.Topology != "" && o.Topology != single {
		problems = append(problems, fmt.Errorf("--topology %s: a PostgreSQL is single", o.Topology))
	}
	if _, err := store.ParseDurability(string(o.Durability)); err != nil {
		problems = append(problems, fmt.Errorf("--durability: %w", err))
	}
	if !o.Started() {
		if o.Durability != "" {
			problems = append(problems, errors.New("--durability needs a PostgreSQL that lockbench starts itself: it does not change the settings of yours"))
		}
		if o.Pin {
			problems = append(problems, errors.New("--pin needs a PostgreSQL that lockbench starts itself: it does not move a server of yours to other CPUs"))
		}
		_, err := parseAddress(o.Address, o.CAFile)
		problems = append(problems, err)
	} else if o.CAFile != "" {
		problems = append(problems, errors.New("--ca-file is for the URL of a PostgreSQL of yours"))
	}
	return errors.Join(problems...)
}

// Layout is one server.
func (Store) Layout(o store.Options) store.Layout { return layout{o.Started()} }

// single is the only topology.
const single = "single"

// layout is one server, with who started it.
type layout struct{ started bool }

// Unfit says why a strategy cannot run there; "" if it can.
func (layout) Unfit(info strategies.Info) string {
	switch {
	case info.Nodes > 0 && info.Store != "postgres":
		return "it does not lock in PostgreSQL"
	case info.Nodes > 1:
		return fmt.Sprintf("it needs %d independent nodes, and there is one", info.Nodes)
	}
	return ""
}

// Primaries returns 1.
func (layout) Primaries() int { return 1 }

// Impossible returns an error for every fault that is not possible.
func (l layout) Impossible(all []workloads.Fault) []error {
	var wrong []error
	for _, f := range all {
		switch kind := f.Kind(); {
		case kind.Place == workloads.InClients:
		case f.Name != workloads.Kill && f.Name != workloads.Pause:
			wrong = append(wrong, fmt.Errorf("--fault %s cannot be had on PostgreSQL so far: there are %s and %s, and those of clients", f.Name, workloads.Kill, workloads.Pause))
		case !l.started:
			wrong = append(wrong, fmt.Errorf("--fault %s needs a PostgreSQL that lockbench starts itself", f.Name))
		case f.Node > 0:
			wrong = append(wrong, fmt.Errorf("--fault %s: there is no node %d: a PostgreSQL is single", f.Name, f.Node))
		}
	}
	return wrong
}

// Open starts a server, or connects to the user's and tells what dead runs left there.
func (Store) Open(ctx context.Context, runID string, o store.Options) (store.Server, error) {
	if err := (Store{}).Validate(o); err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrConfig, err)
	}
	s, err := open(ctx, runID, o)
	if err != nil {
		return nil, err
	}
	return s, nil
}
