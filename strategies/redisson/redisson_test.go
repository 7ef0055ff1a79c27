package redisson_test

import (
	"maps"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/redisson"
)

func init() {
	for _, s := range redisson.Strategies() {
		strategies.RegisterStrategy(s)
	}
}

func TestConformance(t *testing.T) {
	trial.Conform(t, "pubsub", "pubsub:watchdog=false", "pubsub:pipeline=true")
	trial.Conform(t, "pubsub-broadcast")
	trial.Conform(t, "fair")
	trial.Conform(t, "fenced")
}

func TestHolds(t *testing.T) {
	for name, check := range map[string]func(*testing.T, string){
		"sent twice":        trial.HoldsSentTwice,
		"not shortened":     trial.HoldsNotShortened,
		"shortened unheard": trial.ShortenedUnheard,
		"released late":     trial.ReleasedLate,
	} {
		for _, kind := range []string{"pubsub", "fair", "fenced"} {
			t.Run(name+"/"+kind, func(t *testing.T) { check(t, kind+":watchdog=false") })
		}
	}
}

func TestUncontendedCommands(t *testing.T) {
	type commands = map[string]int
	plain := commands{"evalsha": 1, "hexists": 1, "hincrby": 1, "del": 1, "publish": 1}
	for kind, want := range map[string]struct{ acquire, release commands }{
		"pubsub":           {commands{"evalsha": 1, "exists": 1, "hincrby": 1, "pexpire": 1}, plain},
		"pubsub-broadcast": {commands{"evalsha": 1, "exists": 1, "hincrby": 1, "pexpire": 1}, plain},
		"fenced":           {commands{"evalsha": 1, "exists": 1, "hincrby": 1, "pexpire": 1, "incr": 1}, plain},
		"fair": {
			commands{
				"evalsha": 1, "lindex": 1, "exists": 1, "lpop": 1, "zrem": 1, "zrange": 1, "hincrby": 1, "pexpire": 1,
			},
			commands{"evalsha": 1, "lindex": 1, "exists": 1, "hexists": 1, "hincrby": 1, "del": 1},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			server := redistest.Start(t)
			p := trial.Start(t, server, kind, time.Minute)
			trial.Release(t, p.Acquire(t, "key")) // opens the pool's connection
			outside := server.Client(t)
			var lease strategies.Lease
			acquired := locktest.Calls(t, outside, func() { lease = p.Acquire(t, "key") })
			if !maps.Equal(acquired, want.acquire) {
				t.Errorf("an acquire ran %v, want %v", acquired, want.acquire)
			}
			released := locktest.Calls(t, outside, func() { trial.Release(t, lease) })
			if !maps.Equal(released, want.release) {
				t.Errorf("a release ran %v, want %v", released, want.release)
			}
		})
	}
}
