package handoff_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// Those that the package comment asks for.
var (
	commands = strings.Fields(`get set del append pttl pexpire exists rpush rpushx lpush lpop lpos lrange lrem
		time ping eval evalsha spublish ssubscribe sunsubscribe`)
	patterns = strings.Fields(`~trial:* &trial:*`)
)

// service is a server that is reached by TLS, as a user with those rights alone.
type service struct {
	t     *testing.T
	admin *redis.Client
	port  string
	roots *x509.CertPool
}

func newService(t *testing.T) *service {
	cert, key, roots := certificate(t)
	s := &service{t: t, port: freePort(t), roots: roots}
	s.admin = redistest.Start(t, "--tls-port", s.port, "--tls-cert-file", cert, "--tls-key-file", key,
		"--tls-auth-clients", "no").Client(t)
	return s
}

// allow makes a user with all rights but one.
func (s *service) allow(user, without string) {
	s.t.Helper()
	args := []any{"ACL", "SETUSER", user, "reset", "on", ">secret"}
	for _, right := range slices.Concat(patterns, commands) {
		if right == without {
			continue
		}
		if !strings.ContainsAny(right, "~&") {
			right = "+" + right
		}
		args = append(args, right)
	}
	if err := s.admin.Do(s.t.Context(), args...).Err(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *service) open(user string, trust *x509.CertPool, ttl time.Duration) trial.Process {
	s.t.Helper()
	options := &redis.UniversalOptions{
		Addrs: []string{net.JoinHostPort("127.0.0.1", s.port)}, Username: user, Password: "secret",
		TLSConfig: &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12}, DialerRetries: 1, DialTimeout: patience,
	}
	return open(s.t, options, "handoff", ttl)
}

func (s *service) prepare(p trial.Process) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	return locker(p).Prepare(ctx, nil)
}

// Over TLS, as a user who has the rights that are asked for, all goes as ever, also what is
// rare; and if one of them is missing it is named before anybody waits.
func TestOverTLSAsAUser(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const user = "service"
	s.allow(user, "nothing")
	dead := s.open(user, s.roots, 300*time.Millisecond)
	a, b := s.open(user, s.roots, time.Hour), s.open(user, s.roots, time.Hour)
	for _, p := range []trial.Process{dead, a, b} {
		if err := s.prepare(p); err != nil {
			t.Fatal(err)
		}
	}
	trial.Calm(t, func(int) string {
		held := acquire(t, dead)
		if err := held.Extend(t.Context(), 400*time.Millisecond); err != nil {
			return err.Error()
		}
		return ""
	})
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := a.Locker.Acquire(short, "key"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait with a deadline returned %v", err)
	}
	q := newQueueOn(t, s.admin)
	q.insist = true // a busy machine keeps a server silent
	q.join("a1", a) // which looks when the dead holder's TTL is over
	q.join("b1", b)
	held := q.next("a1")
	killSubscriptions(t, s.admin) // b comes back to the head
	trial.Release(t, held)
	trial.Release(t, q.next("b1"))
	q.nothingLeft(a, b)
	denied, err := s.admin.ACLLog(t.Context(), 10).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range denied {
		t.Errorf("it is not allowed, and was tried: %s %s", entry.Reason, entry.Object)
	}
	err = s.prepare(s.open(user, x509.NewCertPool(), time.Hour))
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with a certificate of nobody known Prepare returned %v", err)
	}
}

// Each of the rights is needed, and Prepare says so when it is missing: it names those
// that are not used in scripts, of which Redis says no more than that they can't be run.
func TestMissingRightsAreNamed(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for n, missing := range slices.Concat([]string{"eval"}, patterns, commands) {
		if missing == "sunsubscribe" || missing == "eval" && n > 0 { // in a cluster; seen already
			continue
		}
		try := func(t *testing.T) {
			user := fmt.Sprint("service-", n)
			s.allow(user, missing)
			err := s.prepare(s.open(user, s.roots, time.Hour))
			if err == nil {
				t.Fatal("Prepare said nothing")
			}
			said := err.Error()
			t.Log(said)
			if missing[0] == '~' || missing[0] == '&' {
				missing = "permission"
			}
			if !strings.Contains(said, missing) && !strings.Contains(said, "can't run") {
				t.Errorf("Prepare said: %s", said)
			}
		}
		if n == 0 { // before anybody has loaded a script
			try(t)
			continue
		}
		t.Run(missing, try) // one after the other: handshakes of a crowd time out on a busy machine
	}
}

// certificate is one for 127.0.0.1, as files and as who is to be trusted.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil) // has one
	defer server.Close()
	private, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roots = x509.NewCertPool()
	roots.AddCert(server.Certificate())
	return file("cert.pem", "CERTIFICATE", server.Certificate().Raw), file("key.pem", "PRIVATE KEY", private), roots
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}
