package postgres

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// errAddress never repeats the given text: if the text cannot be parsed, any part of it may be a
// password.
var errAddress = errors.New("the address of a PostgreSQL must be postgres://[user:password@]host:port/database[?sslmode=…]; " +
	"percent-encode special characters of a password, or give PGUSER and PGPASSWORD")

// connectTimeout leaves time, within 5 s, to find out what else is at the address.
const connectTimeout = 3 * time.Second

// parseAddress parses a user's address. libpq's environment variables supply what the URL omits.
func parseAddress(address, caFile string) (*pgx.ConnConfig, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || strings.Contains(u.Path, "@") || u.Fragment != "" {
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
