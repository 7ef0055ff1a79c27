package driver

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// ShedLock releases its lock late, when another client holds it. By default ShedLock must delete the other client's
// key. With safeUpdate it compares the owner first, so it must leave that key.
func TestLateShedLockReleaseDeletesOtherLock(t *testing.T) {
	const built, program = "../../drivers/redisson/target/driver-1.jar", "../../drivers/shedlock"
	if _, err := os.Stat(built); err != nil {
		t.Skip("its driver is not built: make drivers")
	}
	for _, test := range []struct {
		words   []string
		deletes bool
	}{
		{[]string{program}, true},
		{[]string{program, "safe"}, false},
	} {
		t.Run(strings.Join(append([]string{"shedlock"}, test.words[1:]...), " "), func(t *testing.T) {
			hello, err := Greet(t.Context(), test.words)
			if err != nil {
				t.Fatal(err)
			}
			server := redistest.Start(t)
			outside := server.Client(t)
			v := variant("exec:shedlock", test.words, hello, usual)
			locker, err := goredis.Open(v, goredis.Config{
				Nodes: []goredis.Node{server.Node(t)}, Prefix: "late:", TTL: time.Minute,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = locker.Close() }()
			if err := locker.(*Driver).Prepare(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			key := strings.ReplaceAll(v.Info().Keys[0], "{key}", "late:key")
			release := func(another bool) {
				t.Helper()
				lease, err := locker.Acquire(t.Context(), "key")
				if err != nil {
					t.Fatal(err)
				}
				if outside.Exists(t.Context(), key).Val() == 0 {
					t.Fatalf("it has no key %s", key)
				}
				if another {
					outside.Set(t.Context(), key, "another's", 0)
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Errorf("release: %v", err)
				}
			}
			release(false)
			if outside.Exists(t.Context(), key).Val() > 0 {
				t.Error("a release in time leaves the key")
			}
			release(true)
			if deletes := outside.Exists(t.Context(), key).Val() == 0; deletes != test.deletes {
				t.Errorf("a late release deletes the lock of another: %v, want %v", deletes, test.deletes)
			}
		})
	}
}
