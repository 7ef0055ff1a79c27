package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockbench/lockbench/internal/store"
)

// undefinedTable is an error code from PostgreSQL's appendix A.
const undefinedTable = "42P01"

// code returns the code of an error from the server; "" for any other.
func code(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// causes are PostgreSQL's error codes. With the codes of refusals a server refuses this user, or everyone at present.
var causes = map[string]struct {
	refusal, unauthorised bool
	next                  string // advice
}{
	"28P01": {true, true, "user or password is wrong: percent-encode special characters, or set PGUSER, PGPASSWORD"},
	"28000": {true, true, "the server does not let this user in from here: look at pg_hba.conf"},
	"42501": {true, true, "the user lacks a right"},
	"3D000": {false, false, "there is no such database: name one that is there, as in postgres://host:5432/postgres"},
	"53300": {true, false, "too many connections: raise max_connections, or use fewer --clients or --instances"},
	"25006": {true, false, "the server is read only"},
	"53100": {true, false, "its disk is full"},
	"57P03": {true, false, "it is starting, or shutting down"},
}

// Refused returns the code of a refusal; "" for any other error.
func (*server) Refused(err error) string {
	if c := code(err); causes[c].refusal {
		return c
	}
	return ""
}

// Unauthorised says whether that code means a missing right.
func (*server) Unauthorised(code string) bool { return causes[code].unauthorised }

// unreached returns an error that says why a server could not be reached, or refused access.
func (s *server) unreached(ctx context.Context, err error) error {
	if errors.Is(err, store.ErrConfig) || errors.Is(err, store.ErrUnreachable) {
		return err
	}
	at := shown(s.config)
	if c := code(err); c != "" {
		sentinel := store.ErrConfig
		if causes[c].refusal && !causes[c].unauthorised {
			sentinel = store.ErrUnreachable
		}
		pg, _ := errors.AsType[*pgconn.PgError](err)
		said := fmt.Errorf("%w: PostgreSQL at %s: %s (%s)", sentinel, at, pg.Message, c)
		if next := causes[c].next; next != "" {
			return fmt.Errorf("%w: %s", said, next)
		}
		return said
	}
	// The library's error also names the user and the database; leave these out.
	text := err.Error()
	switch dial, isDial := errors.AsType[*net.OpError](err); {
	case strings.Contains(text, "server refused TLS"):
		return fmt.Errorf("%w: %s speaks no TLS: give the address with sslmode=disable", store.ErrConfig, at)
	case strings.Contains(text, "x509:"):
		return fmt.Errorf("%w: the certificate of %s is not trusted: "+
			"--ca-file FILE.pem has it trusted, for the host name that it is for", store.ErrConfig, at)
	case isDial && dial.Op == "dial":
		return fmt.Errorf("%w: PostgreSQL at %s: %w", store.ErrUnreachable, at, dial.Err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: PostgreSQL at %s does not answer: does a firewall drop it, is the server stopped, "+
			"or does the port speak another protocol?", store.ErrUnreachable, at)
	}
	return fmt.Errorf("%w: at %s something listens that does not speak PostgreSQL's protocol, or hangs up:%s",
		store.ErrUnreachable, at, text[strings.LastIndex(text, ":")+1:])
}
