package redissonspin_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func TestConformance(t *testing.T) {
	trial.Conform(t, "redisson-spin", "redisson-spin:watchdog=false")
}

// Nothing is published, and a waiter pays one script a try.
func TestCommands(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "redisson-spin", time.Minute)
	trial.Release(t, p.Acquire(t, "key")) // opens the pool's connection
	outside := server.Client(t)
	var lease strategies.Lease
	acquired := locktest.Calls(t, outside, func() { lease = p.Acquire(t, "key") })
	if want := map[string]int{"evalsha": 1, "exists": 1, "hincrby": 1, "pexpire": 1}; !maps.Equal(acquired, want) {
		t.Errorf("an acquire ran %v, want %v", acquired, want)
	}
	released := locktest.Calls(t, outside, func() { trial.Release(t, lease) })
	if want := map[string]int{"evalsha": 1, "hexists": 1, "hincrby": 1, "del": 1}; !maps.Equal(released, want) {
		t.Errorf("a release ran %v, want %v", released, want)
	}
}

// A lock is what RLock's is, and shared with it: pubsub, which has been tried against
// Redisson, waits for it and is waited for.
func TestWireFormat(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	spinning, told := trial.Start(t, server, "redisson-spin", time.Minute), trial.Start(t, server, "pubsub", time.Minute)
	lease := spinning.Acquire(t, "key")
	hash := outside.HGetAll(t.Context(), "trial:key").Val()
	owners := slices.Collect(maps.Keys(hash))
	if len(hash) != 1 || hash[owners[0]] != "1" || !regexp.MustCompile(`^[0-9a-f-]+:\d+$`).MatchString(owners[0]) {
		t.Errorf("the lock is %v", hash)
	}
	if _, err := told.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); err != strategies.ErrHeld {
		t.Errorf("pubsub got what redisson-spin holds: %v", err)
	}
	trial.Release(t, lease)
	lease = told.Acquire(t, "key")
	parked := trial.ParkOn(t, "key", 2, spinning)
	trial.Release(t, lease)
	trial.Release(t, parked.Next(t))
	trial.Release(t, parked.Next(t))
	if left := outside.Keys(t.Context(), "*").Val(); len(left) > 0 {
		t.Errorf("leftovers: %v", fmt.Sprint(left))
	}
}

func TestHoldsSentTwice(t *testing.T) { trial.HoldsSentTwice(t, "redisson-spin:watchdog=false") }

func TestHoldsNotShortened(t *testing.T) { trial.HoldsNotShortened(t, "redisson-spin:watchdog=false") }

func TestShortenedUnheard(t *testing.T) { trial.ShortenedUnheard(t, "redisson-spin:watchdog=false") }

func TestReleasedLate(t *testing.T) { trial.ReleasedLate(t, "redisson-spin:watchdog=false") }
