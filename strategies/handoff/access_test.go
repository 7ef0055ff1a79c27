package handoff_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// provider hands out credentials, and counts how often it is asked.
type provider struct{ asked atomic.Int64 }

func (p *provider) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.asked.Add(1)
	return auth.NewBasicCredentials("app", "secret"), func() error { return nil }, nil
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
		q.do("ACL SETUSER app on >secret allkeys allchannels allcommands")
		q.do("ACL SETUSER default -@all +client +acl +ping +info +hello")
		secrets := new(provider)
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
		connections := int64(0)
		for line := range strings.Lines(q.server.ClientList(t.Context()).Val()) {
			if strings.Contains(line, "cmd=client|list") {
				continue // the test's own
			}
			connections++
			if !strings.Contains(line, " name=ours ") || !strings.Contains(line, " user=app ") {
				t.Errorf("a connection that the client's options did not set up: %s", line)
			}
		}
		if asked := secrets.asked.Load(); connections < 2 || asked < connections {
			t.Errorf("%d connections of two processes asked %d times for their credentials", connections, asked)
		}
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
