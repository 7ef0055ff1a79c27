package handoff_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/cohort"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// rights are those that the package comment asks for, and no others.
var rights = strings.Fields(`on >secret resetkeys ~shop:* resetchannels &shop:* -@all
	+time +lrange +get +lset +pexpire +rpush +ltrim +lindex +lrem +linsert +publish
	+evalsha +script|load +rpushx +set +del +subscribe`)

// Over TLS, as a user who has the rights that are asked for, everything goes as ever; if
// one of them is missing it is said before anybody waits.
func TestOverTLSAsAUser(t *testing.T) {
	t.Parallel()
	cert, key, roots := certificate(t)
	port := freePort(t)
	server := redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	admin := server.Client(t)
	user := func(change ...string) {
		t.Helper()
		args := []any{"ACL", "SETUSER", "service"}
		for _, rule := range append(rights, change...) {
			args = append(args, rule)
		}
		if err := admin.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	open := func(name string, ttl time.Duration, trust *x509.CertPool) strategies.Locker {
		t.Helper()
		options := &redis.UniversalOptions{
			Addrs: []string{net.JoinHostPort("127.0.0.1", port)}, Username: "service", Password: "secret",
			TLSConfig: &tls.Config{RootCAs: trust, MinVersion: tls.VersionTLS12},
		}
		client := redis.NewUniversalClient(options)
		t.Cleanup(func() { _ = client.Close() })
		locker, err := trial.Variant(t, name).Open(strategies.Config{
			Nodes: []strategies.Node{{Client: client, Options: options}}, Prefix: "shop:", TTL: ttl,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locker.Close() })
		return locker
	}
	prepare := func(l strategies.Locker) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return l.(strategies.Preparer).Prepare(ctx, nil)
	}
	for _, name := range []string{"handoff", "cohort"} {
		user()
		dead, a, b := open(name, time.Hour, roots), open(name, time.Hour, roots), open(name, time.Hour, roots)
		for _, l := range []strategies.Locker{dead, a, b} {
			if err := prepare(l); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		holder := trial.Process{Locker: dead}.Acquire(t, "key")
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := a.Acquire(short, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: a wait with a deadline returned %v", name, err)
		}
		if err := holder.(strategies.Extender).Extend(t.Context(), 300*time.Millisecond); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, l := range []strategies.Locker{a, a, b} { // a's when the dead holder's TTL is over
			trial.Release(t, trial.Process{Locker: l}.Acquire(t, "key"))
		}
		for _, missing := range []string{"-publish", "-subscribe", "-rpushx", "-set", "-script|load", "resetchannels"} {
			user(missing)
			err := prepare(open(name, time.Hour, roots))
			if err == nil || !strings.Contains(err.Error(), "permission") && !strings.Contains(err.Error(), "can't run") {
				t.Errorf("%s: with %s Prepare returned %v", name, missing, err)
			}
		}
	}
	if err := prepare(open("cohort", time.Hour, x509.NewCertPool())); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with a certificate of nobody known Prepare returned %v", err)
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
