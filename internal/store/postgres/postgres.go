// Package postgres is the store PostgreSQL: a server that lockbench starts, or a user's server.
//
// Its locks are advisory locks, which end with their connections even if lockbench is killed. Only --work transaction
// creates an object in the database: the table of the session, see rows.go.
package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/store/ensemble"
	"github.com/lockbench/lockbench/workloads"
)

func init() { store.Register("postgres", Store()) }

// Store returns PostgreSQL as a store of package ensemble.
func Store() ensemble.Store {
	return ensemble.Store{
		Name: "postgres", Official: "PostgreSQL", URLs: []string{"postgres", "postgresql"}, Most: 1,
		Rights: []string{
			"GRANT CONNECT ON DATABASE bench TO bench",
			"and one connection per waiting or holding client: see max_connections",
		},
		Refuses: func(f workloads.Fault) error {
			switch {
			case f.Kind().Place == workloads.InClients, f.Name == workloads.Kill, f.Name == workloads.Pause:
				return nil
			}
			return errors.New("is not supported with PostgreSQL: use kill, pause or a fault of clients")
		},
		Address: func(o store.Options) error {
			_, err := parseAddress(o.Address, o.CAFile)
			return err
		},
		New: func(s ensemble.Servers) ensemble.Server {
			return &server{Servers: s, dials: make(chan struct{}, dialsAtOnce)}
		},
	}
}

// errAddress reports a malformed address. It does not quote the address, because any part of it may be a password.
var errAddress = errors.New("a PostgreSQL address must be " +
	"postgres://[user:password@]host:port/database[?sslmode=…]; " +
	"percent-encode special characters of a password, or give PGUSER and PGPASSWORD")

// connectTimeout limits one dial and login. Open may take 5 s; the remaining time is for finding out whether another
// kind of server listens at the address.
const connectTimeout = 3 * time.Second

// parseAddress parses a user's address. libpq's environment variables supply the parts that the URL omits.
func parseAddress(address, caFile string) (*pgx.ConnConfig, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" ||
		strings.Contains(u.Path, "@") || u.Fragment != "" {
		return nil, errAddress
	}
	query := u.Query()
	if caFile != "" {
		if query.Get("sslmode") == "disable" {
			return nil, errors.New("--ca-file is for encrypted connections, but the address sets sslmode=disable")
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
		return nil, fmt.Errorf("--ca-file: %s cannot be read, or holds no PEM certificate", caFile)
	case err != nil:
		return nil, errAddress
	}
	config.ConnectTimeout = min(connectTimeout, cmp.Or(config.ConnectTimeout, connectTimeout))
	return config, nil
}

// shown returns host:port, or the directory of the socket, without the user and the password.
func shown(config *pgx.ConnConfig) string {
	if strings.HasPrefix(config.Host, "/") {
		return config.Host
	}
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
}
