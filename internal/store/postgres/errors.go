package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockbench/lockbench/internal/store"
)

// code returns the PostgreSQL code of an error from the server; "" for any other error.
func code(err error) string {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code
	}
	return ""
}

// causes maps PostgreSQL's error codes to advice. refusal is true if the server refuses requests of this user or,
// temporarily, of all users.
var causes = map[string]struct {
	refusal, unauthorised bool
	next                  string // advice
}{
	"28P01": {true, true, "user or password is wrong: percent-encode special characters, or set PGUSER, PGPASSWORD"},
	"28000": {true, true, "the server does not permit this user from this address: check its pg_hba.conf"},
	"42501": {true, true, "the user lacks a right"},
	"3D000": {false, false, "there is no such database: name an existing one, as in postgres://host:5432/postgres"},
	"53300": {true, false, "too many connections: raise max_connections, or use fewer --clients or --instances"},
	"25006": {true, false, "the server is read only"},
	"53100": {true, false, "its disk is full"},
	"57P03": {true, false, "it is starting, or shutting down"},
}

// Refused returns the code of an error with which the server refuses a request, such as 53300; "" for any other error.
func (*server) Refused(err error) string {
	if c := code(err); causes[c].refusal {
		return c
	}
	return ""
}

// Unauthorised reports whether a code from Refused means that the user lacks a right.
func (*server) Unauthorised(code string) bool { return causes[code].unauthorised }

// unreached adds advice to the error of a server that could not be reached or that refused access.
func (s *server) unreached(err error) error {
	if errors.Is(err, store.ErrConfig) {
		return err
	}
	text := err.Error()
	// Only the last part of pgx's text is used. Unlike the rest, this part names neither the user nor the database.
	sentinel, said, next := store.ErrUnreachable, text[strings.LastIndex(text, ": ")+1:], ""
	pg, answered := errors.AsType[*pgconn.PgError](err)
	switch {
	case answered:
		cause := causes[pg.Code]
		if cause.unauthorised || !cause.refusal {
			sentinel = store.ErrConfig
		}
		said, next = fmt.Sprintf(" %s (%s)", pg.Message, pg.Code), cause.next
	case strings.Contains(text, "server refused TLS"):
		sentinel, next = store.ErrConfig, "it uses no TLS: give the address with sslmode=disable"
	case strings.Contains(text, "x509:"):
		sentinel, next = store.ErrConfig, "give the authority's certificate with --ca-file FILE.pem, "+
			"and use the host name in the server's certificate"
	}
	if next != "" {
		said += ": " + next
	}
	return fmt.Errorf("%w: PostgreSQL at %s:%s", sentinel, shown(s.config), said)
}
