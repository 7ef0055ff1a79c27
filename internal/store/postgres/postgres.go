// Package postgres is the store PostgreSQL: a server that lockbench starts, or one of the user's.
//
// On a user's server lockbench creates one schema, lockbench_session_RUN, and only if a table or a
// sequence is needed: for the counter of --work counter, and for the locks that say so. The run
// removes it at its end; after a killed lockbench lockbench clean does.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/workloads"
)

func init() { store.Register("postgres", Store{}) }

// kind is what PostgreSQL is among such stores.
var kind = ensemble.Kind{
	Name: "postgres", Title: "PostgreSQL", A: "a", Most: 1,
	Refuses: func(f workloads.Fault) error {
		switch {
		case f.Kind().Place == workloads.InClients, f.Name == workloads.Kill, f.Name == workloads.Pause:
			return nil
		}
		return errors.New("is not supported by PostgreSQL: there are kill, pause, and the faults of clients")
	},
}

// Store is PostgreSQL.
type Store struct{}

// Title returns the store's name.
func (Store) Title() string { return kind.Title }

// Needs returns the rights that a user of PostgreSQL needs.
func (Store) Needs(string) []string {
	return []string{
		"GRANT CONNECT ON DATABASE bench TO bench",
		"for mode=row and --work counter also GRANT CREATE ON DATABASE bench TO bench",
		"and a connection for each client that waits or holds: max_connections",
	}
}

// Schemes returns the schemes of its addresses.
func (Store) Schemes() []string { return []string{"postgres", "postgresql"} }

// Validate returns every error of the options, see store.Store.
func (Store) Validate(o store.Options) (err error) {
	if !o.Started() {
		_, err = parseAddress(o.Address, o.CAFile)
	} else if o.CAFile != "" {
		err = errors.New("--ca-file is for the URL of a PostgreSQL of yours")
	}
	return kind.Validate(o, err)
}

// Layout is one server.
func (Store) Layout(o store.Options) store.Layout { return kind.Layout(o) }

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

// errAddress never repeats the given text: if the text cannot be parsed, any part of it may be a
// password.
var errAddress = errors.New("the address of a PostgreSQL must be " +
	"postgres://[user:password@]host:port/database[?sslmode=…]; " +
	"percent-encode special characters of a password, or give PGUSER and PGPASSWORD")

// connectTimeout leaves time, within 5 s, to find out what else is at the address.
const connectTimeout = 3 * time.Second

// parseAddress parses a user's address. libpq's environment variables supply what the URL omits.
func parseAddress(address, caFile string) (*pgx.ConnConfig, error) {
	u, err := url.Parse(address)
	if err != nil || !slices.Contains(Store{}.Schemes(), u.Scheme) ||
		strings.Contains(u.Path, "@") || u.Fragment != "" {
		return nil, errAddress
	}
	query := u.Query()
	if caFile != "" {
		if query.Get("sslmode") == "disable" {
			return nil, errors.New("--ca-file is for encrypted connections, and the address says sslmode=disable")
		}
		if _, err := os.Stat(caFile); err != nil {
			return nil, fmt.Errorf("--ca-file: %w", err)
		}
		query.Set("sslrootcert", caFile)
		if query.Get("sslmode") == "" {
			query.Set("sslmode", "verify-full")
		}
		u.RawQuery = query.Encode()
	}
	config, err := pgx.ParseConfig(u.String())
	switch {
	case err != nil && caFile != "" && strings.Contains(err.Error(), "CA"):
		return nil, fmt.Errorf("--ca-file: %s holds no PEM certificate", caFile)
	case err != nil:
		return nil, errAddress
	}
	config.ConnectTimeout = min(connectTimeout, cmp.Or(config.ConnectTimeout, connectTimeout))
	return config, nil
}

// shown returns the address without any secret.
func shown(config *pgx.ConnConfig) string {
	if strings.HasPrefix(config.Host, "/") {
		return config.Host
	}
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
}
