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

// A sweep must recognise the keys of these strategies.
func init() {
	strategies.RegisterStrategy(append(polled.Strategies(), redisson.Strategies()...)...)
	strategies.RegisterStrategy(append(peers.Strategies(), handoff.Strategy())...)
}

// go-redis checks once a second whether a dead server is back, and only then notices that its pool has been closed.
func TestMain(m *testing.M) {
	Quiet()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// open opens the servers that the options describe, and closes them when the test ends.
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

// closed closes a server when the test ends.
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

// must ends the test if there is an error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// refuses fails the test unless opening fails with an error of this kind. It returns the error's text.
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

// clientsName is the CLIENT name of the clients from clientsOf.
const clientsName = "lockbench:test:clients"

// clientsOf returns the clients of an instance, with pools of this size.
func clientsOf(t *testing.T, s *Server, pool int) []goredis.Node {
	t.Helper()
	nodes, err := s.Clients(t.Context(), clientsName, pool, nil)
	must(t, err)
	t.Cleanup(func() { _ = instance(nodes).Close() })
	return nodes
}

// readOf reads the counters.
func readOf(t *testing.T, s *Server) results.Reading {
	t.Helper()
	r, err := s.Read(t.Context())
	must(t, err)
	return r
}

// answers reports whether a Redis without TLS answers at addr, even with a refusal.
func answers(ctx context.Context, addr string) bool {
	err := redisserver.Control(addr, "", func(client *redis.Client) error { return client.Ping(ctx).Err() })
	return err == nil || refused(err)
}

// up reports whether a server answers within 20 s.
func up(t *testing.T, addr string) bool {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if answers(t.Context(), addr) {
			return true
		}
	}
	return false
}

// urls returns the URLs of the nodes that lockbench started, with their password.
func urls(s *Server) []string { return strings.Split(s.Address(), ",") }

// refusesStrangers fails the test unless every node that lockbench started refuses a client without its password, and
// other users of the machine cannot read that password.
func refusesStrangers(t *testing.T, s *Server) {
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

// process starts a redis-server for the test, which plays a user's server.
func process(t *testing.T, args ...string) *Own {
	t.Helper()
	return begin(t, Options{}.fleet(single{}, args...))
}

// begin starts a server as a process.
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
