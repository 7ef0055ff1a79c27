package redisson_test

import (
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func token(lease strategies.Lease) int64 { return lease.(strategies.Fenced).FencingToken() }

// The token counter must have the same key as in Redisson, continue after the value that a Java client left, and never
// expire.
func TestFencedWireFormat(t *testing.T) {
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

// As in Redisson, each acquisition must draw a token, even if the owner already holds the lock. A failed attempt must
// draw none.
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
			t.Errorf("the try of another owner returned %v, want ErrHeld", err)
		}
		if token(lease) != want+1 {
			t.Errorf("acquisition %d drew token %d", want+1, token(lease))
		}
	}
}
