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
	"slices"
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

// provider is a StreamingCredentialsProvider that hands out the credentials of the user "app". It counts the calls of
// Subscribe.
type provider struct{ asked atomic.Int64 }

func (p *provider) Subscribe(auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	p.asked.Add(1)
	return auth.NewBasicCredentials("app", "secret"), func() error { return nil }, nil
}

// The lock dials every connection with the client's options. This test covers the options StreamingCredentialsProvider
// and OnConnect. TestDialKeepsOptions in package goredis covers all options.
func TestClientOptionsAreUsed(t *testing.T) {
	each(t, both, func(t *testing.T, variant string) {
		server := redistest.Start(t)
		q := newQueue(t, server)
		q.do("ACL SETUSER app on >secret allkeys allchannels allcommands")
		q.do("ACL SETUSER default -@all +client +acl +ping +info +hello")
		secrets := new(provider)
		options := &redis.UniversalOptions{
			Addrs: []string{server.Addr}, StreamingCredentialsProvider: secrets, DialTimeout: patience,
			OnConnect: func(ctx context.Context, cn *redis.Conn) error { return cn.ClientSetName(ctx, "ours").Err() },
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

// If the client uses TLS, the lock uses TLS on all its connections and verifies the server's certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(nil) // its certificate is for 127.0.0.1
	web.Close()
	private, err := x509.MarshalPKCS8PrivateKey(web.TLS.Certificates[0].PrivateKey)
	file := filepath.Join(t.TempDir(), "both.pem")
	written := os.WriteFile(file, slices.Concat(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})), 0o600)
	port, taken := launch.FreePort()
	if err := errors.Join(err, written, taken); err != nil {
		t.Fatal(err)
	}
	q := newQueue(t, redistest.Start(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file", file,
		"--tls-key-file", file, "--tls-auth-clients", "no"))
	process := func(trusted *x509.CertPool) trial.Process {
		return open(t, &redis.UniversalOptions{
			Addrs: []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, DialTimeout: patience,
			TLSConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12},
		}, "handoff", time.Hour)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(web.Certificate())
	a, b := process(trusted), process(trusted)
	lease := acquire(t, a)
	q.join("b", b)
	trial.Release(t, q.turns(lease, "b"))
	if _, err := locker(process(x509.NewCertPool())).TryAcquire(t.Context(), "key"); err == nil {
		t.Error("the lock was acquired on a server that is not trusted")
	}
}

// If the Redis user lacks a right that the lock needs, Prepare returns Redis's error, which names the missing right. A
// service thus learns of the problem before its first Acquire.
func TestMissingRightsAreNamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	q := newQueue(t, server)
	user := strings.Replace(handoff.Strategy().Info.Rights.SetUser("service", "trial:"), "PASSWORD", "secret", 1)
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
