// Package etcdtest gives tests a real etcd of their own.
package etcdtest

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockbench/lockbench/internal/launch"
)

// Etcd is a running etcd that belongs to one test.
type Etcd struct {
	Endpoints []string // host:port of each member

	t       testing.TB
	members []*launch.Process
	tls     *tls.Config
}

// Start starts an etcd of so many members and stops it when the test ends. Where there is no
// etcd the test fails. LOCKBENCH_ETCD_SERVER names another program than the one on PATH. With
// a --cert-file its clients speak TLS.
func Start(t testing.TB, members int, args ...string) *Etcd {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("LOCKBENCH_ETCD_SERVER"), "etcd"))
	if err != nil {
		t.Fatalf("this test needs an etcd (apt-get install etcd-server): %v", err)
	}
	s := &Etcd{t: t}
	scheme := "http://"
	if slices.Contains(args, "--cert-file") {
		scheme, s.tls = "https://", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // of a test
	}
	var peers []string
	for n := range members {
		s.Endpoints = append(s.Endpoints, free(t))
		peers = append(peers, fmt.Sprintf("m%d=http://%s", n, free(t)))
	}
	for n, endpoint := range s.Endpoints {
		_, peer, _ := strings.Cut(peers[n], "=")
		m, err := launch.Start(t.Context(), launch.Program{
			Name: "etcd", Path: path, Args: func(*launch.Process) []string {
				return append([]string{
					"--name", fmt.Sprint("m", n), "--data-dir", "data", "--logger", "zap", "--log-level", "error",
					"--listen-client-urls", scheme + endpoint, "--advertise-client-urls", scheme + endpoint,
					"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
					"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-token", t.Name(),
				}, args...)
			},
			Ready: func(context.Context, *launch.Process) error { return nil }, // see Ready
		}, launch.FreePort, "test")
		if err != nil {
			t.Fatal(err)
		}
		s.members = append(s.members, m)
		t.Cleanup(func() { s.done(m.Close(context.Background())) })
	}
	s.Ready()
	return s
}

// done tells a fault.
func (s *Etcd) done(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Error(err)
	}
}

// free is an address that nobody listens on.
func free(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// Ready waits until all members answer.
func (s *Etcd) Ready() {
	s.t.Helper()
	for n := range s.members {
		client := s.ClientOf(s.t, n)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		for {
			if _, err := client.Get(ctx, "ready"); err == nil {
				break
			} else if ctx.Err() != nil {
				s.t.Fatalf("etcd does not answer: %v\n%s", err, s.members[n].Log(ctx))
			}
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
		_ = client.Close()
	}
}

// Config is that of a client of all members.
func (s *Etcd) Config() clientv3.Config {
	return clientv3.Config{Endpoints: s.Endpoints, TLS: s.tls, Logger: zap.NewNop(), MaxUnaryRetries: 1, DialTimeout: 5 * time.Second}
}

// Client is a client of all members, closed when the test ends.
func (s *Etcd) Client(t testing.TB) *clientv3.Client { t.Helper(); return dial(t, s.Config()) }

// ClientOf is a client of one member.
func (s *Etcd) ClientOf(t testing.TB, member int) *clientv3.Client {
	t.Helper()
	config := s.Config()
	config.Endpoints = s.Endpoints[member : member+1]
	return dial(t, config)
}

func dial(t testing.TB, config clientv3.Config) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Leader is the place of the member that leads.
func (s *Etcd) Leader() int {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for n := range s.members {
			client := s.ClientOf(s.t, n)
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			status, err := client.Status(ctx, s.Endpoints[n])
			cancel()
			_ = client.Close()
			if err == nil && status.Leader == status.Header.MemberId {
				return n
			}
		}
	}
	s.t.Fatal("there is no leader")
	return 0
}

// Kill ends a member as a crash would.
func (s *Etcd) Kill(member int) {
	s.t.Helper()
	s.done(s.members[member].Kill(context.Background()))
}

// Again starts a member that was killed, with its data, and waits until it answers.
func (s *Etcd) Again(member int) {
	s.t.Helper()
	s.done(s.members[member].Again(context.Background()))
	s.Ready()
}

// Pause stops a member with its connections open; Resume lets it go on.
func (s *Etcd) Pause(member int) {
	s.t.Helper()
	s.done(s.members[member].Pause(context.Background()))
}

// Resume lets a paused member go on.
func (s *Etcd) Resume(member int) {
	s.t.Helper()
	s.done(s.members[member].Resume(context.Background()))
}
