package all_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all"
)

// libraries maps a variant to the library that its Info must name first; "" means none. Files with a build tag add
// entries.
var libraries = map[string]string{
	"spin":                               "",
	"spin:backoff=fixed,base=100ms":      "redis redis.lock.Lock (Python)",
	"spin:backoff=fixed,wait-replicas=1": "",
	"pubsub":                             "org.redisson:redisson getLock (Java)",
	"pubsub-broadcast":                   "",
	"gated:fenced":                       "org.redisson:redisson getFencedLock (Java)",
	"semaphore":                          "org.redisson:redisson getSemaphore (Java)",
	"semaphore:expirable=true":           "",
	"redsync":                            "github.com/go-redsync/redsync/v4 Redsync.NewMutex (Go)",
	"redsync:tuned=true": "github.com/go-redsync/redsync/v4 Redsync.NewMutex WithRetryDelayFunc " +
		"(random, up to 4 ms at first and 1 s at last) (Go)",
	"redislock:tuned=true": "github.com/bsm/redislock Client.Obtain with a RetryStrategy (random, " +
		"up to 4 ms at first and 1 s at last) (Go)",
	"redislock": "github.com/bsm/redislock Client.Obtain (Go)",
	"handoff":   "",
	"cohort":    "",
}

// TestLibrariesFollowOptions checks which library each variant names first. The options of a variant decide this: spin
// names the Lock of redis-py only with a fixed backoff of 100 ms.
func TestLibrariesFollowOptions(t *testing.T) {
	t.Parallel()
	for list, want := range libraries {
		all, err := strategies.ParseVariants(list)
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %v", list, err)
		}
		got := ""
		if libraries := all[0].Info().Libraries; len(libraries) > 0 {
			got = libraries[0].String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", list, got, want)
		}
	}
}

// TestPackagesCanBeImported checks that every strategy except atomic names the Go package that a service imports.
func TestPackagesCanBeImported(t *testing.T) {
	t.Parallel()
	for _, s := range strategies.All() {
		if want := "github.com/lockbench/lockbench/strategies/"; s.Info.Name != "atomic" &&
			len(s.Info.Package) <= len(want) {
			t.Errorf("%s is in %q", s.Info.Name, s.Info.Package)
		}
	}
}
