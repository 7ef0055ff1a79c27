package servers

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/launch"
	"github.com/lockbench/lockbench/internal/store"
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

func TestServersOfOurOwn(t *testing.T) {
	for _, source := range []string{"process", "container"} {
		t.Run(source, func(t *testing.T) {
			if source == "container" {
				needDocker(t)
			}
			s := open(t, Options{Address: source})
			about := s.Describe()
			if about.Source != source || about.Version == "" || about.Mode != "standalone" || about.Why == "" ||
				(about.Image != "") != (source == "container") ||
				source == "process" && about.Network != "loopback" {
				t.Errorf("incomplete description: %+v", about)
			}
			limits, err := s.Limits(t.Context())
			if err != nil || limits.MaxClients <= 10000 || limits.Connected < 1 {
				t.Errorf("limits = %+v, %v; want room for more than Redis's default of 10,000", limits, err)
			}
			if save := s.nodes[0].observer.ConfigGet(t.Context(), "save").Val()["save"]; save != "" {
				t.Errorf("save = %q: a snapshot would fall into a window", save)
			}
			testControl(t, s)
			refusesStrangers(t, s)
		})
	}
}

// testControl kills, restarts, pauses and resumes a server of our own.
func testControl(t *testing.T, s *Server) {
	t.Helper()
	ctx, own := t.Context(), s.Owned()[0]
	must(t, own.Kill(ctx))
	if err := own.Kill(ctx); err != nil {
		t.Errorf("killing it again: %v", err)
	}
	if err := s.Ping(ctx); err == nil || !strings.Contains(err.Error(), "Redis unreachable") {
		t.Errorf("ping of a killed server: %v", err)
	}
	if err := own.Save(ctx); err == nil {
		t.Error("a dead server saved")
	}
	must(t, own.Restart(ctx), own.Pause(ctx))
	answered := make(chan error, 1)
	go func() { answered <- s.Ping(ctx) }()
	select {
	case err := <-answered:
		t.Errorf("a paused server answered: %v", err)
		answered <- nil
	case <-time.After(200 * time.Millisecond):
	}
	must(t, own.Resume(ctx), <-answered)
}

// A primary and a replica in containers.
func TestContainersOfSeveralNodes(t *testing.T) {
	needDocker(t)
	ctx, s := t.Context(), open(t, Options{Address: "container", Topology: "replicas:1"})
	about := s.Describe()
	if about.Source != "container" || about.Topology != "replicas:1" || len(about.Nodes) != 2 {
		t.Errorf("description %+v", about)
	}
	refusesStrangers(t, s)
	must(t, s.promote(ctx, s.nodes[1]), s.Settle(ctx)) // the old primary follows
	if role := s.nodes[1].observer.Info(ctx, "replication").Val(); !strings.Contains(role, "role:master") {
		t.Errorf("the promoted replica: %s", role)
	}
}

// What was saved, or confirmed, is there after a crash where it was asked to be, and nowhere else; it is gone
// where the data are to be lost.
func TestDurability(t *testing.T) {
	for _, test := range []struct {
		source string
		asked  store.Durability
		want   string
	}{
		{"process", store.InMemory, "memory"},
		{"process", store.Usual, "every second"},
		{"process", store.Synced, "fsync"},
		{"container", "", "memory"},
		{"container", store.Synced, "fsync"},
	} {
		t.Run(test.source+" "+test.want, func(t *testing.T) {
			t.Parallel()
			if test.source == "container" {
				needDocker(t)
			}
			s := open(t, Options{Address: test.source, Durability: test.asked})
			if got := s.Describe().Durability; got != test.want {
				t.Errorf("it is described as %q, want %q", got, test.want)
			}
			ctx, n, own := t.Context(), s.nodes[0], s.Owned()[0]
			must(t, n.observer.Set(ctx, "saved", "v", time.Hour).Err(), own.Save(ctx))
			must(t, n.observer.Set(ctx, "confirmed", "v", time.Hour).Err())
			must(t, own.Kill(ctx), own.RestartWithData(ctx))
			saved, confirmed := n.observer.TTL(ctx, "saved").Val(), n.observer.Exists(ctx, "confirmed").Val()
			if test.want == "memory" && (saved <= 0 || confirmed != 0) || test.want == "fsync" && confirmed != 1 {
				t.Errorf("after a crash the saved key lives for %v, and there are %d confirmed ones", saved, confirmed)
			}
			must(t, own.Restart(ctx))
			if kept := n.observer.DBSize(ctx).Val(); kept != 0 {
				t.Errorf("after a restart without data there are %d keys", kept)
			}
		})
	}
}

// How a user's own server keeps its writes is told as far as it says so.
func TestDurabilityOfAUsersServer(t *testing.T) {
	t.Parallel()
	synced := process(t, "--appendonly", "yes", "--appendfsync", "always")
	mute := process(t, "--user", "little", "on", "nopass", "~*", "&*", "+@all", "-info", "-config")
	for address, want := range map[string]string{synced.Addr(): "fsync", "redis://little:any@" + mute.Addr(): ""} {
		if got := open(t, Options{Address: address}).Describe().Durability; got != want {
			t.Errorf("%s is described as %q, want %q", address, got, want)
		}
	}
}

// Tests on a machine without redis-server run on a container.
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

// The published port is for machines whose Docker has a network of its own; it
// is tried here by hand, since on Linux the host's network comes first.
func TestPublishedPort(t *testing.T) {
	needDocker(t)
	of := Options{}.fleet(single{})
	server := of.Server(0, nil)
	server.Container.Network = launch.OnPort
	of.Server = func(int, [][]int) launch.Server { return server }
	_, started, err := of.Start(t.Context(), store.Options{Address: "container", Logf: t.Logf}, "test", nil)
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
