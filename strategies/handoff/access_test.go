package handoff_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// provider hands out credentials, and new ones to all connections that it serves.
type provider struct {
	mu        sync.Mutex
	now       auth.Credentials
	listeners map[auth.CredentialsListener]bool
	asked     int
}

func (p *provider) Subscribe(listener auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	p.listeners[listener] = true
	return p.now, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.listeners, listener)
		return nil
	}, nil
}

// rotate has new credentials be used, on present connections too.
func (p *provider) rotate(now auth.Credentials) {
	p.mu.Lock()
	p.now = now
	all := maps.Clone(p.listeners)
	p.mu.Unlock()
	for listener := range all {
		listener.OnNext(now)
	}
}

// All connections of a lock have the client's options: they go over TLS, ask the client's
// StreamingCredentialsProvider for credentials, and are set up by its OnConnect.
func TestClientOptionsAreUsed(t *testing.T) {
	each(t, both, func(t *testing.T, variant string) {
		cert, key, roots := certificate(t)
		port, err := launch.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		own := strconv.Itoa(port)
		q := newQueue(t, redistest.Start(t, "--tls-port", own, "--tls-cert-file", cert, "--tls-key-file", key,
			"--tls-auth-clients", "no"))
		q.do("ACL SETUSER app on >first allkeys allchannels allcommands")
		q.do("ACL SETUSER default -@all +client +acl +ping +info +hello")
		secrets := &provider{listeners: map[auth.CredentialsListener]bool{}}
		secrets.rotate(auth.NewBasicCredentials("app", "first"))
		options := &redis.UniversalOptions{
			Addrs: []string{net.JoinHostPort("127.0.0.1", own)}, StreamingCredentialsProvider: secrets,
			TLSConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DialTimeout: patience,
			OnConnect:   func(ctx context.Context, cn *redis.Conn) error { return cn.ClientSetName(ctx, "ours").Err() },
		}
		a, b := open(t, options, variant, time.Hour), open(t, options, variant, time.Hour)
		pass := func() {
			t.Helper()
			lease := acquire(t, a)
			q.join("b", b)
			trial.Release(t, q.turns(lease, "b"))
		}
		pass()
		connections := 0
		for line := range strings.Lines(q.server.ClientList(t.Context()).Val()) {
			if strings.Contains(line, "cmd=client|list") {
				continue // the test's own
			}
			connections++
			if !strings.Contains(line, " name=ours ") || !strings.Contains(line, " user=app ") {
				t.Errorf("a connection that the client's options did not set up: %s", line)
			}
		}
		secrets.mu.Lock()
		if connections < 2 || secrets.asked < connections {
			t.Errorf("%d connections of two processes asked %d times for their credentials", connections, secrets.asked)
		}
		secrets.mu.Unlock()
		q.do("ACL SETUSER app >second")
		secrets.rotate(auth.NewBasicCredentials("app", "second"))
		q.do("ACL SETUSER app <first")
		pass()
		disconnect(t, q.server)
		pass()
	})
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

// A right that is missing is named by Prepare, before anybody waits.
func TestMissingRightsAreNamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	q := newQueue(t, server)
	user := strings.Replace(handoff.Rights().SetUser("service", "trial:"), "PASSWORD", "secret", 1)
	options := &redis.UniversalOptions{Addrs: []string{server.Addr}, Username: "service", Password: "secret"}
	for missing, named := range map[string]string{
		"-info":       "", // none
		"-ssubscribe": "ssubscribe", "-evalsha": "evalsha", "-rpushx": "rpushx", "resetkeys": "permission",
		"resetchannels": "permission",
	} {
		q.do(user + " " + missing)
		err := locker(open(t, options, "handoff", time.Hour)).Prepare(t.Context(), nil)
		if (err == nil) != (named == "") || err != nil && !strings.Contains(err.Error(), named) {
			t.Errorf("with %s Prepare returned %v", missing, err)
		}
	}
}
