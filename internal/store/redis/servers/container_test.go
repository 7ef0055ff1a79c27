package servers

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
)

// needDocker skips a test of containers on a machine without Docker, where
// processes are what runs.
func needDocker(t *testing.T) launch.Engine {
	t.Helper()
	d, err := launch.OpenEngine(t.Context())
	if err != nil {
		t.Skipf("no Docker: %v", err)
	}
	return d
}

func TestContainer(t *testing.T) {
	needDocker(t)
	s := open(t, Options{Address: "container"})
	about := s.Describe()
	if about.Source != "container" || about.Version == "" || about.Image == "" || about.Mode != "standalone" || about.Why == "" {
		t.Errorf("incomplete description: %+v", about)
	}
	limits, err := s.Limits(t.Context())
	if err != nil || limits.MaxClients <= 10000 || limits.Connected < 1 {
		t.Errorf("limits = %+v, %v; want room for more than Redis's default of 10,000", limits, err)
	}
	config := s.nodes[0].observer.ConfigGet(t.Context(), "save").Val()
	if config["save"] != "" {
		t.Errorf("save = %q: a snapshot would fall into a window", config["save"])
	}
	testControl(t, s)
	refusesStrangers(t, s)
}

// A primary and a replica in containers, which keep or lose their data.
func TestContainersOfSeveralNodes(t *testing.T) {
	needDocker(t)
	s := open(t, Options{Address: "container", Topology: "replicas:1"})
	about := s.Describe()
	if about.Source != "container" || about.Topology != "replicas:1" || len(about.Nodes) != 2 {
		t.Errorf("description %+v", about)
	}
	refusesStrangers(t, s)
	testData(t, s.Owned()[0], s.nodes[0])
	ctx := t.Context()
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Promote(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(ctx); err != nil { // the old primary follows
		t.Fatal(err)
	}
	if role := s.nodes[1].observer.Info(ctx, "replication").Val(); !strings.Contains(role, "role:master") {
		t.Errorf("the promoted replica: %s", role)
	}
}

// testData restarts a server of our own with what it had saved, and without.
func testData(t *testing.T, own Own, n *node) {
	t.Helper()
	ctx := t.Context()
	keys := func() string { return strings.Join(n.observer.Keys(ctx, "*").Val(), " ") }
	set := func(key string) {
		if err := n.observer.Set(ctx, key, "v", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("saved")
	if err := own.Save(ctx); err != nil {
		t.Fatal(err)
	}
	set("lost")
	if err := own.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := own.RestartWithData(ctx); err != nil {
		t.Fatal(err)
	}
	if got := keys(); got != "saved" {
		t.Errorf("after a restart with data there is %q", got)
	}
	if ttl := n.observer.TTL(ctx, "saved").Val(); ttl <= 0 {
		t.Errorf("its TTL is %v", ttl)
	}
	if err := own.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if got := keys(); got != "" {
		t.Errorf("after a restart without data there is %q", got)
	}
	if err := own.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := own.Save(ctx); err == nil {
		t.Error("a dead server saved")
	}
	if err := own.Restart(ctx); err != nil {
		t.Fatal(err)
	}
}

// testControl kills, restarts, pauses and resumes a server of our own.
func testControl(t *testing.T, s *Server) {
	t.Helper()
	ctx := t.Context()
	own := s.Owned()[0]
	client := s.nodes[0].observer
	if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := own.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if err := own.Kill(ctx); err != nil {
		t.Errorf("killing it again: %v", err)
	}
	if err := s.Ping(ctx); err == nil || !strings.Contains(err.Error(), "Redis unreachable") {
		t.Errorf("ping of a killed server: %v", err)
	}
	if err := own.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Exists(ctx, "k").Result(); n != 0 || err != nil {
		t.Errorf("after a restart: %d keys, %v", n, err)
	}
	if err := own.Pause(ctx); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- s.Ping(ctx) }()
	select {
	case err := <-answered:
		t.Errorf("a paused server answered: %v", err)
		answered <- nil
	case <-time.After(200 * time.Millisecond):
	}
	if err := own.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestProcess(t *testing.T) {
	s := open(t, Options{Address: "process"})
	about := s.Describe()
	if about.Source != "process" || about.Version == "" || about.Network != "loopback" {
		t.Errorf("incomplete description: %+v", about)
	}
	testControl(t, s)
	testData(t, s.Owned()[0], s.nodes[0])
	refusesStrangers(t, s)
}

// Tests on a machine without redis-server run on a container.
func TestStartOwnWithoutBinary(t *testing.T) {
	d := needDocker(t)
	image, err := d.Obtain(t.Context(), image(""), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/nowhere")
	own, err := StartOwn(t.Context(), Options{Image: image}, "--databases", "3")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := own.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if _, ok := own.(*Container); !ok || !up(t, own.Addr()) {
		t.Errorf("%T at %s", own, own.Addr())
	}
}
