package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/lockbench/lockbench/internal/store"
)

// refusals are the errors with which etcd refuses a request at present, or to this user.
var refusals = []struct {
	err          error
	code         string
	unauthorised bool
}{
	{rpctypes.ErrPermissionDenied, "PermissionDenied", true},
	{rpctypes.ErrUserEmpty, "UserEmpty", true},
	{rpctypes.ErrAuthFailed, "AuthFailed", true},
	{rpctypes.ErrInvalidAuthToken, "InvalidAuthToken", true},
	{rpctypes.ErrNoSpace, "NoSpace", false},
	{rpctypes.ErrNoLeader, "NoLeader", false},
	{rpctypes.ErrTooManyRequests, "TooManyRequests", false},
	{rpctypes.ErrCorrupt, "Corrupt", false},
}

// Refused returns the code of a refusal; "" for any other error.
func (s *Server) Refused(err error) string {
	for _, r := range refusals {
		if err != nil && strings.Contains(err.Error(), r.err.Error()) {
			return r.code
		}
	}
	return ""
}

// Unauthorised says whether that code means a missing right.
func (s *Server) Unauthorised(code string) bool {
	for _, r := range refusals {
		if r.code == code {
			return r.unauthorised
		}
	}
	return false
}

const noTLS = "perhaps it speaks no TLS at that port: give the address with etcd:// instead of etcds://"

const credentials = "etcd://USER:PASSWORD@host:port, or in LOCKBENCH_ETCD_USER and LOCKBENCH_ETCD_PASSWORD"

// causes maps parts of error messages to advice.
var causes = []struct{ said, next string }{
	{"authentication failed", "user or password is wrong: give them as " + credentials},
	{"user name is empty", "etcd asks for a user: give it as " + credentials},
	{"authentication is not enabled", "etcd has no users: give the address without one"},
	{"permission denied", "the user lacks a right: it needs to read and write the keys that begin with lockbench"},
	{"database space exceeded", "etcd takes no writes: compact and defragment it, and disarm the alarm"},
	{"certificate signed by unknown authority", "have the server's certificate trusted with --ca-file FILE.pem"},
	{"does not look like a TLS handshake", noTLS},
	{"EOF", noTLS},
	{"connection reset", noTLS},
	{"connection refused", "nothing listens there: is the server running, and is the port right?"},
	{"no such host", "the name is not known: look for a typing error, or give an IP address"},
	{"deadline exceeded", "it does not answer: perhaps it has no leader, because most of its members are missing, " +
		"or only one side speaks TLS: then give the address with etcds:// instead of etcd://, or the other way round"},
}

// because returns an error that says why etcd could not be used, with advice.
func (s *Server) because(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.Is(err, store.ErrConfig):
		return err
	}
	sentinel := store.ErrUnreachable
	if s.Unauthorised(s.Refused(err)) {
		sentinel = store.ErrConfig
	}
	for _, cause := range causes {
		if strings.Contains(err.Error(), cause.said) {
			return fmt.Errorf("%w: etcd at %s: %w: %s", sentinel, strings.Join(s.to.endpoints, ","), err, cause.next)
		}
	}
	return fmt.Errorf("%w: etcd at %s: %w", sentinel, strings.Join(s.to.endpoints, ","), err)
}

// knock checks whether a server listens at one of the addresses, and with TLS its certificate. A client of etcd would
// retry without an explanation.
func (s *Server) knock(ctx context.Context) error {
	dial := new(net.Dialer).DialContext
	if s.to.tls != nil {
		dial = (&tls.Dialer{Config: s.to.tls}).DialContext
	}
	var problems []error
	for _, endpoint := range s.to.endpoints {
		conn, err := dial(ctx, "tcp", endpoint)
		if err == nil {
			return conn.Close()
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
