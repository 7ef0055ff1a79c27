package servers

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/launch/containers"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/spin"
)

// go-redis looks every second whether a dead server is back, and notices that
// late that its pool has been closed.
func TestMain(m *testing.M) {
	Quiet()
	containers.Quiet()
	strategies.RegisterStrategy(spin.Strategy()) // a sweep knows what its keys are called
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
