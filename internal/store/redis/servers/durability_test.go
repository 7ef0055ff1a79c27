package servers

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
)

// What was confirmed is there after a crash where it was asked to be, and nowhere else;
// it is gone where the data are to be lost.
func TestDurability(t *testing.T) {
	for _, source := range []string{"process", "container"} {
		for asked, want := range map[store.Durability]string{"": "memory", store.InMemory: "memory", store.Usual: "every second", store.Synced: "fsync"} {
			t.Run(source+" "+want, func(t *testing.T) {
				t.Parallel()
				if source == "container" {
					needDocker(t)
				}
				s := open(t, Options{Address: source, Durability: asked})
				if got := s.Describe().Durability; got != want {
					t.Errorf("it is described as %q, want %q", got, want)
				}
				ctx, n, own := t.Context(), s.nodes[0], s.Owned()[0]
				if err := n.observer.Set(ctx, "confirmed", "v", time.Hour).Err(); err != nil {
					t.Fatal(err)
				}
				if err := own.Kill(ctx); err != nil {
					t.Fatal(err)
				}
				if err := own.RestartWithData(ctx); err != nil {
					t.Fatal(err)
				}
				kept := n.observer.Exists(ctx, "confirmed").Val()
				if want == "memory" && kept != 0 || want == "fsync" && kept != 1 {
					t.Errorf("after a crash there are %d keys", kept)
				}
				if err := own.Restart(ctx); err != nil {
					t.Fatal(err)
				}
				if kept := n.observer.DBSize(ctx).Val(); kept != 0 {
					t.Errorf("after a restart without data there are %d keys", kept)
				}
			})
		}
	}
}

// How a user's own server keeps its writes is told as far as it says so.
func TestDurabilityOfAUsersServer(t *testing.T) {
	t.Parallel()
	synced := process(t, "--appendonly", "yes", "--appendfsync", "always")
	mute := process(t, "--user", "little", "on", "nopass", "~*", "&*", "+@all", "-info", "-config")
	for address, want := range map[string]string{synced.Addr(): "fsync", process(t).Addr(): "memory", "redis://little:any@" + mute.Addr(): ""} {
		if got := open(t, Options{Address: address}).Describe().Durability; got != want {
			t.Errorf("%s is described as %q, want %q", address, got, want)
		}
	}
}
