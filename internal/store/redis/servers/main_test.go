package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/launch/redisserver"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/peers"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/redisson"
)

// These are the strategies that the tests use. A sweep recognises only the keys of registered strategies.
func init() {
	strategies.RegisterStrategy(append(polled.Strategies(), redisson.Strategies()...)...)
	strategies.RegisterStrategy(append(peers.Strategies(), handoff.Strategy())...)
}

// go-redis dials a dead server once a second. The goroutine that dials notices only at its next try that the pool has
// been closed, so goleak must ignore it.
func TestMain(m *testing.M) {
	Quiet()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func open(t *testing.T, options Options) *Server {
	t.Helper()
	options.Logf = t.Logf
	if options.RunID == "" {
		options.RunID = "test"
	}
	s, err := Open(t.Context(), options)
	must(t, err)
	closed(t, s)
	return s
}

// closed closes `of` at the end of the test, which fails if Close returns an error.
func closed(t *testing.T, of interface {
	Close(ctx context.Context) error
},
) {
	t.Cleanup(func() {
		if err := of.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// must ends the test if one of the errors is not nil.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// refuses opens a server with these options and returns the text of the error, which must wrap reason.
func refuses(t *testing.T, options Options, reason error) string {
	t.Helper()
	options.RunID = "refused"
	s, err := Open(t.Context(), options)
	if err == nil {
		closed(t, s)
		err = errors.New("it opened")
	}
	if !errors.Is(err, reason) {
		t.Errorf("%s as %q: %v, want %v", options.Address, options.Topology, err, reason)
	}
	return err.Error()
}

const clientsName = "lockbench:test:clients"

// clientsOf returns a go-redis client for each node of s. Each client has a pool of `pool` open connections, which are
// named clientsName.
func clientsOf(t *testing.T, s *Server, pool int) []goredis.Node {
	t.Helper()
	nodes, err := s.Clients(t.Context(), clientsName, pool, nil)
	must(t, err)
	t.Cleanup(func() { _ = instance(nodes).Close() })
	return nodes
}

func readOf(t *testing.T, s *Server) results.Reading {
	t.Helper()
	r, err := s.Read(t.Context())
	must(t, err)
	return r
}

// answers reports whether a Redis without TLS replies at addr, even if the reply is an error.
func answers(ctx context.Context, addr string) bool {
	err := redisserver.Control(addr, "", func(client *redis.Client) error { return client.Ping(ctx).Err() })
	return err == nil || refused(err)
}

// up reports whether a Redis at addr begins to reply within 20 s.
func up(t *testing.T, addr string) bool {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if answers(t.Context(), addr) {
			return true
		}
	}
	return false
}

// urls returns the URL of each node of s, with the password. lockbench must have started s.
func urls(s *Server) []string { return strings.Split(s.Address(), ",") }

// assertPasswordRequired fails the test unless every node of s refuses a client without the password. Neither the
// report nor a process's arguments may contain the password, and no other user of the machine may read it. lockbench
// must have started s.
func assertPasswordRequired(t *testing.T, s *Server) {
	t.Helper()
	if len(s.Owned()) == 0 || len(s.password) < 26 {
		t.Fatalf("%d nodes of our own with a password of %d characters", len(s.Owned()), len(s.password))
	}
	if about := fmt.Sprintf("%+v", s.Describe()); strings.Contains(about, s.password) {
		t.Errorf("the report has the password: %s", about)
	}
	for _, n := range s.nodes {
		for _, password := range []string{"", "wrong"} {
			err := redisserver.Control(n.addr(), password,
				func(stranger *redis.Client) error { return stranger.Ping(t.Context()).Err() })
			if !refused(err) || !strings.Contains(err.Error(), "NOAUTH") &&
				!strings.Contains(err.Error(), "WRONGPASS") {
				t.Errorf("%s answers a client with the password %q: %v", n.addr(), password, err)
			}
		}
		p, ok := n.own.Started.(*launch.Process)
		if !ok {
			continue
		}
		file, err := os.Stat(filepath.Join(p.Dir(), "..", redisserver.Secrets))
		if err != nil || file.Mode().Perm() != 0o600 {
			t.Errorf("the file with the password: %v, %v", file, err)
		}
		arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID()))
		if err == nil && strings.Contains(string(arguments), s.password) {
			t.Errorf("the arguments have the password: %q", arguments)
		}
	}
}

// process starts a redis-server, which the test then opens by its address like a user's server.
func process(t *testing.T, args ...string) *Own {
	t.Helper()
	return begin(t, Options{}.fleet(single{}, args...))
}

// begin starts the first server of a fleet as a process, which ends with the test.
func begin(t *testing.T, of launch.Fleet) *Own {
	t.Helper()
	_, started, err := of.Start(t.Context(), launch.Request{Address: "process"})
	if err != nil {
		t.Fatalf("this test needs redis-server: %v", err)
	}
	own := &Own{Started: started[0]}
	closed(t, own)
	return own
}
