//go:build !redisonly

package servers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/launch/containers"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/poll"
)

func init() { containers.Quiet() }

// needDocker returns the container engine. It skips the test if there is none.
func needDocker(t *testing.T) launch.Engine {
	t.Helper()
	d, err := launch.OpenEngine(t.Context())
	if err != nil {
		t.Skipf("no Docker: %v", err)
	}
	return d
}

func TestOwnContainers(t *testing.T) {
	needDocker(t)
	testOwn(t, "container")
}

func TestDurabilityInContainers(t *testing.T) {
	needDocker(t)
	for asked, want := range map[store.Durability]string{"": "memory", store.Synced: "fsync"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			testDurability(t, "container", asked, want)
		})
	}
}

// TestContainersOfSeveralNodes starts a primary and a replica in containers. Both must require the password, and a
// promotion must make the replica the primary.
func TestContainersOfSeveralNodes(t *testing.T) {
	needDocker(t)
	ctx, s := t.Context(), open(t, Options{Address: "container", Topology: "replicas:1"})
	about := s.Describe()
	if about.Source != "container" || about.Topology != "replicas:1" || len(about.Nodes) != 2 {
		t.Errorf("description %+v", about)
	}
	assertPasswordRequired(t, s)
	must(t, s.promote(ctx, s.nodes[1]), s.Settle(ctx)) // the old primary becomes a replica
	if role := s.nodes[1].observer.Info(ctx, "replication").Val(); !strings.Contains(role, "role:master") {
		t.Errorf("the promoted replica: %s", role)
	}
}

// On a machine without redis-server, StartOwn must start a container.
func TestStartOwnWithoutBinary(t *testing.T) {
	image, err := needDocker(t).Obtain(t.Context(), Options{}.fleet(single{}).Image, t.Logf)
	must(t, err)
	t.Setenv("PATH", "/nowhere")
	own, err := StartOwn(t.Context(), Options{Image: image}, "--databases", "3")
	must(t, err)
	closed(t, own)
	if _, isProcess := own.Started.(*launch.Process); isProcess || !up(t, own.Addr()) {
		t.Errorf("%T at %s", own.Started, own.Addr())
	}
}

// On Linux lockbench prefers the host's network, so the test makes it publish a port instead, as it does where Docker
// does not share the host's network. The server must be reachable at that port, also after a restart.
func TestPublishedPort(t *testing.T) {
	needDocker(t)
	of := Options{}.fleet(single{})
	server := of.Server(0, nil)
	server.Container.Network = launch.OnPort
	of.Server = func(int, [][]int) launch.Definition { return server }
	_, started, err := of.Start(t.Context(), launch.Request{Address: "container", Logf: t.Logf})
	must(t, err)
	c := &Own{Started: started[0]}
	closed(t, c)
	before := c.Addr()
	if !up(t, before) {
		t.Error("no answer")
	}
	must(t, c.Restart(t.Context()))
	if c.Addr() != before || !up(t, before) {
		t.Errorf("after a restart it is at %s, not %s", c.Addr(), before)
	}
}

// brokenDocker starts a container engine that replies to pings and fails every other request. It returns the NAME=VALUE
// of the environment variable that selects this engine.
func brokenDocker(t *testing.T) string {
	t.Helper()
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Api-Version", "1.41")
		switch {
		case strings.HasSuffix(r.URL.Path, "/_ping"), strings.HasSuffix(r.URL.Path, "/info"):
			_, _ = w.Write([]byte("{}"))
		default:
			http.Error(w, `{"message":"out of order"}`, http.StatusInternalServerError)
		}
	}))
	t.Cleanup(engine.Close)
	return "DOCKER_HOST=tcp://" + engine.Listener.Addr().String()
}

// Without a working container engine, Open must start a process. If redis-server is missing too, the error must name
// all ways to get a Redis.
func TestAuto(t *testing.T) {
	v, said := tryVictim(t, "auto", brokenDocker(t), "LOCKBENCH_REDIS_IMAGE=")
	if v.addr == "" || !up(t, v.addr) {
		t.Fatalf("no answer: %s", said)
	}
	if !strings.Contains(said, "Source:process") || !strings.Contains(said, "out of order") {
		t.Errorf("the description says neither process nor why: %s", said)
	}
	v.kill()
	launch.SweepMachine(t.Context())
	v, said = tryVictim(t, "auto", brokenDocker(t), "LOCKBENCH_REDIS_IMAGE=", "PATH=/nowhere")
	if v.addr != "" {
		t.Fatalf("it opened %s", v.addr)
	}
	for _, way := range []string{"Redis unreachable", "--redis redis://", "install redis-server", "start Docker"} {
		if !strings.Contains(said, way) {
			t.Errorf("it does not say %q: %s", way, said)
		}
	}
}

// TestInterruptedContainer cancels the start of a container at several moments. It must leave no container and no file.
func TestInterruptedContainer(t *testing.T) {
	needDocker(t)
	engine, err := testcontainers.NewDockerClientWithOpts(t.Context())
	must(t, err)
	defer engine.Close()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, after := range []time.Duration{0, 100, 200, 300, 400} {
		ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
		s, err := Open(ctx, Options{Address: "container"})
		cancel()
		if err == nil {
			must(t, s.Close(ctx))
		}
	}
	list, err := engine.ContainerList(t.Context(), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", "lockbench.owner"),
	})
	must(t, err)
	for _, c := range list.Items {
		if strings.HasPrefix(c.Labels["lockbench.owner"], dir) {
			t.Errorf("left behind: %s", c.Status)
		}
	}
	if homes, err := os.ReadDir(dir); err != nil || len(homes) > 0 {
		t.Errorf("left behind: %v, %v", homes, err)
	}
}

// A sweep must remove the containers of a killed lockbench and keep those of a live one.
func TestSweepAfterKill(t *testing.T) {
	needDocker(t)
	v := startVictim(t, "container")
	bystander := open(t, Options{Address: "container"})
	launch.SweepMachine(t.Context())
	if !up(t, v.addr) {
		t.Fatal("a Redis of a living lockbench was swept")
	}
	v.kill()
	if swept := sweepTwice(t.Context()); len(swept.Skipped) > 0 {
		t.Errorf("skipped %v", swept.Skipped)
	}
	poll.Until(t, "the server of the dead run does not answer", func() bool { return !answers(t.Context(), v.addr) })
	must(t, bystander.Ping(t.Context()))
}
