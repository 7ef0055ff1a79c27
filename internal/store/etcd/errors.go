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

const (
	noRight = "the user lacks a right: it needs to read and write the keys that begin with lockbench"
	aUser   = "give the user and the password as etcd://USER:PASSWORD@host:port, or in LOCKBENCH_ETCD_USER and " +
		"LOCKBENCH_ETCD_PASSWORD"
	noTLS = "if it uses no TLS on that port, give the address with etcd:// instead of etcds://"
)

// causes maps parts of error texts to advice. An entry with a code is a refusal: etcd refuses requests of this user or,
// temporarily, of all users.
var causes = []struct {
	said, code   string
	unauthorised bool
	next         string // advice
}{
	{rpctypes.ErrPermissionDenied.Error(), "PermissionDenied", true, noRight},
	{rpctypes.ErrUserEmpty.Error(), "UserEmpty", true, "etcd requires a user: " + aUser},
	{rpctypes.ErrAuthFailed.Error(), "AuthFailed", true, "user or password is wrong: " + aUser},
	{rpctypes.ErrInvalidAuthToken.Error(), "InvalidAuthToken", true, aUser},
	{rpctypes.ErrNoSpace.Error(), "NoSpace", false, "etcd accepts no writes: compact, defragment and disarm the alarm"},
	{rpctypes.ErrNoLeader.Error(), "NoLeader", false, "it has no leader: a majority of its members is not available"},
	{rpctypes.ErrTooManyRequests.Error(), "TooManyRequests", false, "it is overloaded"},
	{rpctypes.ErrCorrupt.Error(), "Corrupt", false, "its data is damaged"},
	{said: "authentication is not enabled", next: "etcd has no users: give the address without a user"},
	{said: "unknown authority", next: "give the authority's certificate with --ca-file FILE.pem"},
	{said: "does not look like a TLS handshake", next: noTLS},
	{said: "EOF", next: noTLS},
	{said: "connection reset", next: noTLS},
	{said: "deadline exceeded", next: "it does not answer. Either it has no leader, because a majority of its members " +
		"is unavailable, or only one side uses TLS: then give the address with etcds:// instead of etcd://, or the " +
		"other way round"},
}

// Refused returns the code of an error with which etcd refuses a request, such as NoSpace; "" for any other error.
func (s *Server) Refused(err error) string {
	for _, c := range causes {
		if err != nil && c.code != "" && strings.Contains(err.Error(), c.said) {
			return c.code
		}
	}
	return ""
}

// Unauthorised reports whether a code from Refused means that the user lacks a right.
func (s *Server) Unauthorised(code string) bool {
	for _, c := range causes {
		if code != "" && c.code == code {
			return c.unauthorised
		}
	}
	return false
}

// because wraps an error with the address of etcd and with advice.
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

// checkReachable checks that a server listens at one of the addresses and, with TLS, that its certificate is valid. An
// etcd client would only retry and not report the cause.
func (s *Server) checkReachable(ctx context.Context) error {
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
