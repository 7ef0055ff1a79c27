package all_test

import (
	"testing"

	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all"
)

// libraries are those of some variants. Files with a tag add others.
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

// TestLibrariesAreThoseOfTheOptions: a lock names a library only while it does as that does.
func TestLibrariesAreThoseOfTheOptions(t *testing.T) {
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

// TestPackagesAreKnown checks that the package of each recommended lock can be imported.
func TestPackagesAreKnown(t *testing.T) {
	t.Parallel()
	for _, s := range strategies.All() {
		if want := "github.com/lockbench/lockbench/strategies/"; s.Info.Name != "atomic" &&
			len(s.Info.Package) <= len(want) {
			t.Errorf("%s is in %q", s.Info.Name, s.Info.Package)
		}
	}
}
