package store

import (
	"context"
	"regexp"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/strategies"
)

// TestOwnKeys checks that a key belongs to lockbench only if its whole name matches a strategy's key and contains a
// run ID.
func TestOwnKeys(t *testing.T) {
	names := NamesOf(strategies.Info{Keys: []string{"{key}", "queue:{key}", "{key}/*"}})
	for _, key := range []string{
		"lockbench:{a1b2c3d4:0:0}", "queue:lockbench:{a1b2c3d4:12:345}", "lockbench:{a1b2c3d4:1:0}/694dfa",
		"lockbench:{a1b2c3d4:1:0}:counter", "lockbench:{a1b2c3d4:1:0}:counter:floor",
	} {
		if session, _, ours := names.Run(key); !ours || session != "a1b2c3d4" {
			t.Errorf("%q: %q, %v", key, session, ours)
		}
	}
	if session, number, _ := names.Run("queue:lockbench:{fedcba98:12:345}"); session != "fedcba98" || number != 12 {
		t.Errorf("session %q, run %d", session, number)
	}
	for _, key := range []string{
		"", "{key}", "queue:{key}", "lockbench:{",
		"lockbench:{cart:1:0}", "lockbench:{12345678:1:0}", "lockbench:{A1B2C3D4:1:0}",
		"lockbench:{a1b2c3d:1:0}", "lockbench:{a1b2c3d45:1:0}", "lockbench:{a1b2c3d4:1}", "lockbench:{a1b2c3d4:1:0:0}",
		"lockbench:{a1b2c3d4:01:0}", "lockbench:{a1b2c3d4:1:x}", "lockbench:{a1b2c3d4:1:-1}",
		"lockbench:{a1b2c3d4:1:9999999999}",
		"Lockbench:{a1b2c3d4:1:0}", "{a1b2c3d4:1:0}", "app:{a1b2c3d4:1:0}",
		"lockbench:{{a1b2c3d4:1:0}}", "lockbench:a1b2c3d4:1:0",
		"mylockbench:{a1b2c3d4:1:0}", "shop:lockbench:{a1b2c3d4:1:0}:items", "lockbench:{a1b2c3d4:1:0}:items",
		"lockbench:{a1b2c3d4:1:0}\n",
		"lockbench:{a1b2c3d4:1:0}lockbench:{a1b2c3d4:1:0}", "queue:queue:lockbench:{a1b2c3d4:1:0}",
		"lockbench:{a1b2c3d4:1:0}/cart",
		"lockbench:{a1b2c3d4:1:0}/", "lockbench:{a1b2c3d4:1:0}/6/9", "lockbench:{a1b2c3d4:1:0}:counter:items",
	} {
		if _, _, ours := names.Run(key); ours {
			t.Errorf("%q belongs to another program", key)
		}
	}
}

func TestRunIDs(t *testing.T) {
	form := regexp.MustCompile("^" + IDPattern + "$")
	seen := map[string]bool{}
	for range 1000 {
		seen[NewRunID()] = true
	}
	if len(seen) < 998 {
		t.Errorf("of 1000 only %d differ", len(seen))
	}
	for id := range seen {
		if !form.MatchString(id) {
			t.Errorf("%q can belong to another program", id)
		}
	}
}

// TestSweepRecognisesUnlistedKeys sweeps keys of a dead and a live run, and a key that no strategy uses. The strategy
// is known only from Swept.unlisted, like a driver. Only its key of the dead run must be removed.
func TestSweepRecognisesUnlistedKeys(t *testing.T) {
	var removed []string
	keys := Keys{
		Scan: func(_ context.Context, visit func(string)) error {
			for _, key := range []string{
				"mutex:lockbench:{a1b2c3d4:1:0}", "mutex:lockbench:{b1b2c3d4:1:0}", "cart:lockbench:{a1b2c3d4:1:0}",
			} {
				visit(key)
			}
			return nil
		},
		Connected: func(context.Context) ([]string, error) { return []string{"lockbench:b1b2c3d4:1"}, nil },
		Remove:    func(_ context.Context, keys []string) error { removed = keys; return nil },
	}
	swept := Swept{unlisted: []strategies.Info{{Keys: []string{"mutex:{key}"}}}}
	keys.Sweep(t.Context(), &swept)
	if want := []string{"mutex:lockbench:{a1b2c3d4:1:0}"}; !slices.Equal(removed, want) || swept.Found != 1 {
		t.Errorf("removed %q, want %q", removed, want)
	}
}
