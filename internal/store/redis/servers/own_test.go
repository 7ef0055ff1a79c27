package servers

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
)

func TestOwnServers(t *testing.T) { testOwn(t, "process") }

// testOwn lets lockbench start a server from source, "process" or "container", and checks its description, its
// settings, its control and its password.
func testOwn(t *testing.T, source string) {
	t.Helper()
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
	assertPasswordRequired(t, s)
}

// testControl kills, restarts, pauses and resumes the server of s.
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

func TestDurability(t *testing.T) {
	for asked, want := range map[store.Durability]string{
		store.InMemory: "memory", store.Usual: "every second", store.Synced: "fsync",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			testDurability(t, "process", asked, want)
		})
	}
}

// testDurability starts a server with the durability `asked`, which the description must call `want`. It writes one key
// before a save and another after it, and kills the server. After a restart with the data, the keys that the durability
// promises must exist. After a restart without the data, there must be no key.
func testDurability(t *testing.T, source string, asked store.Durability, want string) {
	t.Helper()
	s := open(t, Options{Address: source, Durability: asked})
	if got := s.Describe().Durability; got != want {
		t.Errorf("it is described as %q, want %q", got, want)
	}
	ctx, n, own := t.Context(), s.nodes[0], s.Owned()[0]
	must(t, n.observer.Set(ctx, "saved", "v", time.Hour).Err(), own.Save(ctx))
	must(t, n.observer.Set(ctx, "confirmed", "v", time.Hour).Err())
	must(t, own.Kill(ctx), own.RestartWithData(ctx))
	saved, confirmed := n.observer.TTL(ctx, "saved").Val(), n.observer.Exists(ctx, "confirmed").Val()
	if want == "memory" && (saved <= 0 || confirmed != 0) || want == "fsync" && confirmed != 1 {
		t.Errorf("after a crash the saved key lives for %v, and there are %d confirmed ones", saved, confirmed)
	}
	must(t, own.Restart(ctx))
	if kept := n.observer.DBSize(ctx).Val(); kept != 0 {
		t.Errorf("after a restart without data there are %d keys", kept)
	}
}

// TestDurabilityOfUserServer opens a user's server with fsync, and one that refuses CONFIG and INFO. The description
// must contain the durability of the first, and none for the second.
func TestDurabilityOfUserServer(t *testing.T) {
	t.Parallel()
	synced := process(t, "--appendonly", "yes", "--appendfsync", "always")
	mute := process(t, "--user", "little", "on", "nopass", "~*", "&*", "+@all", "-info", "-config")
	for address, want := range map[string]string{synced.Addr(): "fsync", "redis://little:any@" + mute.Addr(): ""} {
		if got := open(t, Options{Address: address}).Describe().Durability; got != want {
			t.Errorf("%s is described as %q, want %q", address, got, want)
		}
	}
}
