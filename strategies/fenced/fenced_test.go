package fenced_test

import (
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/fenced"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

func init() { strategies.RegisterStrategy(fenced.Strategy()) }

func TestConformance(t *testing.T) { trial.Conform(t, "fenced") }

func token(lease strategies.Lease) int64 { return lease.(strategies.Fenced).FencingToken() }

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "fenced", time.Minute)
	trial.Release(t, p.Acquire(t, "key")) // opens the pool's connection
	outside := server.Client(t)
	var lease strategies.Lease
	acquired := locktest.Calls(t, outside, func() { lease = p.Acquire(t, "key") })
	if want := map[string]int{"evalsha": 1, "exists": 1, "hincrby": 1, "pexpire": 1, "incr": 1}; !maps.Equal(acquired, want) {
		t.Errorf("an acquire ran %v, want %v", acquired, want)
	}
	released := locktest.Calls(t, outside, func() { trial.Release(t, lease) })
	if want := map[string]int{"evalsha": 1, "hexists": 1, "hincrby": 1, "del": 1, "publish": 1}; !maps.Equal(released, want) {
		t.Errorf("a release ran %v, want %v", released, want)
	}
}

// The counter is where Redisson looks for it, and lives on.
func TestWireFormat(t *testing.T) {
	for key, counter := range map[string]string{
		"key":    "redisson_lock_token:{trial:key}",
		"{a}key": "redisson_lock_token:trial:{a}key",
	} {
		t.Run(key, func(t *testing.T) {
			server := redistest.Start(t)
			outside := server.Client(t)
			outside.Set(t.Context(), counter, 41, 0) // a client in Java was here before
			p := trial.Start(t, server, "fenced", time.Minute)
			lease := p.Acquire(t, key)
			if token(lease) != 42 {
				t.Errorf("the token after 41 is %d", token(lease))
			}
			if kind := outside.Type(t.Context(), "trial:"+key).Val(); kind != "hash" {
				t.Errorf("the lock is a %s", kind)
			}
			trial.Release(t, lease)
			if got := outside.Get(t.Context(), counter).Val(); got != "42" {
				t.Errorf("the counter is %q, want \"42\"", got)
			}
			if ttl := outside.PTTL(t.Context(), counter).Val(); ttl != -1 {
				t.Errorf("the counter has a TTL: %v", ttl)
			}
			if keys := outside.DBSize(t.Context()).Val(); keys != 1 {
				t.Errorf("%d keys are left, want the counter alone", keys)
			}
		})
	}
}

// As in Redisson each acquisition draws a token, also that of an owner who holds the
// lock already; a try that fails draws none.
func TestEachAcquisitionDrawsAToken(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "fenced", time.Minute)
	owner := p.Locker.(strategies.Reentrant)
	for want := range int64(3) {
		lease, err := owner.AcquireAs(t.Context(), "key", "me")
		if err != nil {
			t.Fatal(err)
		}
		defer trial.Release(t, lease)
		if _, err := p.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
			t.Errorf("somebody else's try returned %v, want ErrHeld", err)
		}
		if token(lease) != want+1 {
			t.Errorf("acquisition %d drew token %d", want+1, token(lease))
		}
	}
}

// Tokens grow in the order in which the lock is held, over processes.
func TestTokensGrowUnderLoad(t *testing.T) {
	const clients, turns = 5, 20
	server := redistest.Start(t)
	var last int64 // guarded by the lock itself, which the race detector checks
	var all sync.WaitGroup
	for range 3 {
		p := trial.Start(t, server, "fenced", time.Minute)
		for range clients {
			all.Go(func() {
				for range turns {
					lease, err := p.Locker.Acquire(t.Context(), "key")
					if err != nil {
						t.Errorf("acquire: %v", err)
						return
					}
					if token(lease) != last+1 {
						t.Errorf("token %d came after %d", token(lease), last)
					}
					last = token(lease)
					if err := lease.Release(t.Context()); err != nil {
						t.Errorf("release: %v", err)
					}
				}
			})
		}
	}
	all.Wait()
	if want := int64(3 * clients * turns); last != want {
		t.Errorf("the last token is %d after %d acquisitions", last, want)
	}
}

func TestHoldsSentTwice(t *testing.T) { trial.HoldsSentTwice(t, "fenced:watchdog=false") }

func TestHoldsNotShortened(t *testing.T) { trial.HoldsNotShortened(t, "fenced:watchdog=false") }

func TestShortenedUnheard(t *testing.T) { trial.ShortenedUnheard(t, "fenced:watchdog=false") }

func TestReleasedLate(t *testing.T) { trial.ReleasedLate(t, "fenced:watchdog=false") }
