package driver

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/locktest/redisservers"
	"github.com/lockbench/lockbench/workloads"
)

// The owner of an RLock is a thread. Coroutines on one thread therefore hold the lock at the same time. If coroutines
// move between several threads, a coroutine may release the lock from a thread that does not own it, and Redisson
// refuses that release. Neither happens with one thread per client. The lock with coroutines does not meet the claims
// of the lock with threads: locktest must report its try-lock as broken.
func TestCoroutinesShareAnRLock(t *testing.T) {
	const built, program = "../../drivers/redisson/target/driver-1.jar", "../../drivers/redisson/driver"
	if _, err := os.Stat(built); err != nil {
		t.Skip("its driver is not built: make drivers")
	}
	w := small()
	w.Hold = workloads.Fixed(20 * time.Millisecond)
	w.Warmup, w.Duration = workloads.Duration(2*time.Second), workloads.Duration(2*time.Second)
	for _, test := range []struct {
		words    []string
		together bool // several clients hold the lock at the same time; not checked if strange
		strange  bool // releases come from a thread that is not the owner
	}{
		{[]string{"lock"}, false, false},
		{[]string{"coroutines"}, true, false},
		{[]string{"coroutines", "4"}, false, true},
	} {
		t.Run(strings.Join(test.words, " "), func(t *testing.T) { // not in parallel, because each needs the processor
			run := onRedis(t, "exec:redisson", append([]string{program}, test.words...), w)
			s := run.Safety
			if (s.MaxHolders > 1) != test.together && !test.strange || run.Speed.Acquisitions == 0 {
				t.Errorf("%d hold the lock at a time, in %d acquisitions", s.MaxHolders, run.Speed.Acquisitions)
			}
			if (s.LostLeases > 0) != test.strange {
				t.Errorf("%d releases found that the lock was not their own: %v", s.LostLeases, run.Errors)
			}
		})
	}
	t.Run("suite", func(t *testing.T) {
		variants := map[string]strategies.Variant{}
		for _, kind := range []string{"lock", "coroutines"} {
			words := []string{program, kind}
			hello, err := Greet(t.Context(), words)
			if err != nil {
				t.Fatal(err)
			}
			variants[kind] = variant("exec:redisson "+kind, words, hello, usual)
		}
		if variants["coroutines"].Info().Caveat == "" {
			t.Error("it has no caveat")
		}
		fixture := redisservers.Fixture(t, 1, func(c goredis.Config) (strategies.Locker, error) {
			return OpenThrough(t.Context(), variants["coroutines"], c)
		})
		for _, check := range locktest.Checks() {
			if check.Name != "try-lock" {
				continue
			}
			got := check.Judge(t.Context(), fixture, variants["lock"].Info())
			if t.Log(got); got.Verdict != locktest.Broken {
				t.Errorf("the suite finds the try-lock of coroutines %s, want broken", got.Verdict)
			}
		}
	})
}
