package redistest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
)

// go-redis looks every second whether a dead server is back, and notices that
// late that its pool has been closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

func TestServerIsEmptyAfterRestart(t *testing.T) {
	server := redistest.Start(t, "--databases", "3")
	node := server.Node(t)
	ctx := t.Context()
	if err := node.Client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := server.Client(t).ConfigGet(ctx, "databases").Val()["databases"]; got != "3" {
		t.Errorf("databases = %q: the extra arguments did not reach the server", got)
	}
	server.Kill()
	if err := node.Client.Ping(ctx).Err(); err == nil {
		t.Error("a killed server answered")
	}
	server.Restart(t)
	if n, err := node.Client.Exists(ctx, "k").Result(); n != 0 || err != nil {
		t.Errorf("after a restart: %d keys, %v", n, err)
	}
}

func TestPausedServerAnswersOnceResumed(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(t)
	server.Pause()
	answered := make(chan error, 1)
	go func() { answered <- client.Ping(t.Context()).Err() }()
	server.Resume()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
