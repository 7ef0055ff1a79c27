package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

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
		if err != nil && (errors.Is(err, r.err) || strings.Contains(err.Error(), r.err.Error())) {
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

// causes maps parts of error messages to advice.
var causes = []struct{ said, next string }{
	{"authentication failed", "user or password is wrong: give them as etcd://USER:PASSWORD@host:port, or in LOCKBENCH_ETCD_USER and LOCKBENCH_ETCD_PASSWORD"},
	{"user name is empty", "etcd asks for a user: give it as etcd://USER:PASSWORD@host:port, or in LOCKBENCH_ETCD_USER and LOCKBENCH_ETCD_PASSWORD"},
	{"authentication is not enabled", "etcd has no users: give the address without one"},
	{"permission denied", "the user lacks a right: it needs to read and write the keys that begin with lockbench"},
	{"database space exceeded", "etcd takes no writes, since its quota is used up: compact and defragment it, and disarm the alarm"},
	{"certificate signed by unknown authority", "have the server's certificate trusted with --ca-file FILE.pem"},
	{"connection refused", "nothing listens there: is the server running, and is the port right?"},
	{"no such host", "the name is not known: look for a typing error, or give an IP address"},
}

// because returns an error that says why etcd could not be used, with advice. It may contact the
// addresses again.
func (s *Server) because(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	where := strings.Join(s.to.endpoints, ",")
	sentinel := store.ErrUnreachable
	if s.Unauthorised(s.Refused(err)) {
		sentinel = store.ErrConfig
	}
	for _, cause := range causes {
		if strings.Contains(err.Error(), cause.said) {
			return fmt.Errorf("%w: etcd at %s: %w: %s", sentinel, where, err, cause.next)
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	stranger := make(chan error, 1)
	go func() { stranger <- store.Stranger(ctx, s.to.endpoints[0], Name) }() // waited for below
	why := s.secondLook(ctx)
	if other := <-stranger; other != nil {
		return other
	}
	if why != "" {
		return fmt.Errorf("%w: etcd at %s: %s", store.ErrUnreachable, where, why)
	}
	return fmt.Errorf("%w: etcd at %s: %w", store.ErrUnreachable, where, err)
}

// knock checks whether a server listens at one of the addresses, and with TLS its certificate. A
// client of etcd would retry without an explanation.
func (s *Server) knock(ctx context.Context) error {
	var problems []error
	for _, endpoint := range s.to.endpoints {
		conn, err := plain.DialContext(ctx, "tcp", endpoint)
		if err == nil && s.to.tls != nil {
			err = s.greet(ctx, conn, endpoint)
		}
		if conn != nil {
			_ = conn.Close()
		}
		if err == nil {
			return nil
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// greet does a TLS handshake.
func (s *Server) greet(ctx context.Context, conn net.Conn, endpoint string) error {
	config := s.to.tls.Clone()
	config.ServerName, _, _ = net.SplitHostPort(endpoint)
	return tls.Client(conn, config).HandshakeContext(ctx)
}

// secondLook says what is at the first address; "" if unknown.
func (s *Server) secondLook(ctx context.Context) string {
	endpoint := s.to.endpoints[0]
	brief, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	encrypted := store.SpeaksTLS(brief, endpoint)
	switch {
	case s.to.tls == nil && encrypted:
		return "it speaks TLS at that port, and nothing else: give the address with etcds:// instead of etcd://"
	case s.to.tls != nil && !encrypted:
		return "it speaks no TLS at that port: give the address with etcd:// instead of etcds://"
	}
	if s.leaderless(ctx) {
		return "it has no leader: most of its members are not there, and without them it answers nothing"
	}
	return ""
}

// leaderless says whether a member that answers has no leader. It connects without a user: etcd
// checks a password only with the agreement of most members.
func (s *Server) leaderless(ctx context.Context) bool {
	nobody := s.to
	nobody.user, nobody.password = "", ""
	client, err := dial(clientConfig(nobody), nil)
	if err != nil {
		return false
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan bool, len(nobody.endpoints))
	for _, endpoint := range nobody.endpoints {
		go func() { // ends with ctx; the loop below waits for all
			status, err := client.Status(ctx, endpoint)
			answers <- err == nil && status.Leader == 0
		}()
	}
	without := false
	for range nobody.endpoints {
		if <-answers {
			without = true
			cancel()
		}
	}
	return without
}
