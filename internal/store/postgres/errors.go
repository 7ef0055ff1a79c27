package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lockbench/lockbench/internal/store"
)

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

// Unauthorised reports whether that code means a missing right.
func (*server) Unauthorised(code string) bool { return causes[code].unauthorised }

// unreached returns an error with the reason why a server could not be reached or refused access.
func (s *server) unreached(err error) error {
	if errors.Is(err, store.ErrConfig) {
		return err
	}
	text := err.Error()
	// Its last part names neither the user nor the database.
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
		sentinel, next = store.ErrConfig, "it speaks no TLS: give the address with sslmode=disable"
	case strings.Contains(text, "x509:"):
		sentinel, next = store.ErrConfig, "--ca-file FILE.pem has it trusted, for the host name that it is for"
	}
	if next != "" {
		said += ": " + next
	}
	return fmt.Errorf("%w: PostgreSQL at %s:%s", sentinel, shown(s.config), said)
}
