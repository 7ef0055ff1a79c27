package servers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/launch/containers"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/polled"
)

// go-redis looks every second whether a dead server is back, and notices that
// late that its pool has been closed.
func TestMain(m *testing.M) {
	Quiet()
	containers.Quiet()
	for _, s := range polled.Strategies() { // a sweep knows what their keys are called
		strategies.RegisterStrategy(s)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// open opens what the options name and closes it when the test ends.
func open(t *testing.T, options Options) *Server {
	t.Helper()
	options.Logf = t.Logf
	if options.RunID == "" {
		options.RunID = "test"
	}
	s, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// up says whether a server answers, be it after a while.
func up(t *testing.T, addr string) bool {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if answers(t.Context(), addr) {
			return true
		}
	}
	return false
}

// urls are those of the nodes of our own, with their password.
func urls(s *Server) []string { return strings.Split(s.Address(), ",") }

// refusesStrangers fails the test unless every node of our own refuses a client without its
// password, which other users of the machine cannot read.
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
			err := control(n.addr(), password, func(stranger *redis.Client) error { return stranger.Ping(t.Context()).Err() })
			if !refused(err) || !strings.Contains(err.Error(), "NOAUTH") && !strings.Contains(err.Error(), "WRONGPASS") {
				t.Errorf("%s answers a client with the password %q: %v", n.addr(), password, err)
			}
		}
		own := n.own
		if m, ok := own.(member); ok {
			own = m.Own
		}
		p, ok := own.(*Process)
		if !ok {
			continue
		}
		file, err := os.Stat(filepath.Join(p.Dir(), "..", secrets))
		if err != nil || file.Mode().Perm() != 0o600 {
			t.Errorf("the file with the password: %v, %v", file, err)
		}
		arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID()))
		if err == nil && strings.Contains(string(arguments), s.password) {
			t.Errorf("the arguments have the password: %q", arguments)
		}
	}
}

// process starts a redis-server of the test's own, as a user's.
func process(t *testing.T, args ...string) *Process {
	t.Helper()
	p, err := Options{RunID: "test"}.startProcess(t.Context(), launch.FreePort, nil, args...)
	if err != nil {
		t.Fatalf("this test needs redis-server: %v", err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p
}
