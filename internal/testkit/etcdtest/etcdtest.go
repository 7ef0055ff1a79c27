// Package etcdtest gives tests a real etcd of their own.
package etcdtest

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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

// Start starts an etcd with this number of members and stops it when the test ends. The test
// fails if there is no etcd. LOCKBENCH_ETCD_SERVER names another program than the one on
// PATH. With a --cert-file its clients speak TLS.
func Start(t testing.TB, members int, args ...string) *Etcd {
	t.Helper()
	path, err := exec.LookPath(cmp.Or(os.Getenv("LOCKBENCH_ETCD_SERVER"), "etcd"))
	if err != nil {
		t.Fatalf("this test needs an etcd (apt-get install etcd-server): %v", err)
	}
	const attempts = 5 // another process may take a chosen port before etcd does
	for attempt := 1; ; attempt++ {
		s := &Etcd{t: t}
		s.start(path, members, args)
		err := s.answers()
		if err == nil {
			t.Cleanup(s.stop)
			return s
		}
		s.stop()
		if attempt == attempts || !errors.Is(err, errTaken) {
			t.Fatal(err)
		}
	}
}

// errTaken means that another process listens on a member's port.
var errTaken = errors.New("address already in use")

// start starts the members on ports that were free.
func (s *Etcd) start(path string, members int, args []string) {
	s.t.Helper()
	scheme := "http://"
	if slices.Contains(args, "--cert-file") {
		scheme, s.tls = "https://", &tls.Config{InsecureSkipVerify: true} //nolint:gosec // of a test
	}
	ports, err := launch.FreePorts(2 * members)
	if err != nil {
		s.t.Fatal(err)
	}
	var peers []string
	for n := range members {
		s.Endpoints = append(s.Endpoints, fmt.Sprintf("127.0.0.1:%d", ports[n]))
		peers = append(peers, fmt.Sprintf("m%d=http://127.0.0.1:%d", n, ports[members+n]))
	}
	for n, endpoint := range s.Endpoints {
		_, peer, _ := strings.Cut(peers[n], "=")
		m, err := launch.Start(s.t.Context(), launch.Program{
			Name: "etcd", Path: path, Args: func(*launch.Process) []string {
				return append([]string{
					"--name", fmt.Sprint("m", n), "--data-dir", "data", "--logger", "zap", "--log-level", "error",
					"--listen-client-urls", scheme + endpoint, "--advertise-client-urls", scheme + endpoint,
					"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
					"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-token", s.t.Name(),
				}, args...)
			},
			Beside: func(int) []int { return ports[members+n : members+n+1] },
			Ready:  func(context.Context, *launch.Process) error { return nil }, // see answers
		}, func() (int, error) { return ports[n], nil }, "test")
		if err != nil {
			s.stop()
			s.t.Fatal(err)
		}
		s.members = append(s.members, m)
	}
}

// stop ends all members.
func (s *Etcd) stop() {
	for _, m := range s.members {
		s.done(m.Close(context.Background()))
	}
}

// done reports an error.
func (s *Etcd) done(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Error(err)
	}
}

// Ready waits until all members answer.
func (s *Etcd) Ready() {
	s.t.Helper()
	if err := s.answers(); err != nil {
		s.t.Fatal(err)
	}
}

// answers waits until all members answer. It returns errTaken if a member has ended because
// another process has its port.
func (s *Etcd) answers() error {
	for n, member := range s.members {
		client := s.ClientOf(s.t, n)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for {
			// The timeout bounds how long a member that has ended is waited for.
			attempt, end := context.WithTimeout(ctx, time.Second)
			_, err := client.Get(attempt, "ready")
			end()
			if err == nil {
				break
			}
			log := member.Log(ctx)
			if member.Ended(ctx) && strings.Contains(log, errTaken.Error()) {
				return fmt.Errorf("start etcd: %w", errTaken)
			}
			if ctx.Err() != nil || member.Ended(ctx) {
				return fmt.Errorf("etcd does not answer: %w\n%s", err, log)
			}
			time.Sleep(20 * time.Millisecond)
		}
		_ = client.Close()
	}
	return nil
}

// Config returns the configuration of a client of all members.
func (s *Etcd) Config() clientv3.Config {
	return clientv3.Config{Endpoints: s.Endpoints, TLS: s.tls, Logger: zap.NewNop(), MaxUnaryRetries: 1, DialTimeout: 5 * time.Second}
}

// Client returns a client of all members; it is closed when the test ends.
func (s *Etcd) Client(t testing.TB) *clientv3.Client { t.Helper(); return dial(t, s.Config()) }

// ClientOf returns a client of one member; it is closed when the test ends.
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

// Leader returns the index of the member that leads.
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
