package internal_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/pending"
	"github.com/lockbench/lockbench/strategies/internal/token"
)

// take acquires the lock "key" with SET NX for owner, and returns the Lease.
func take(t *testing.T, client redis.UniversalClient, owner string, ttl time.Duration) *token.Lease {
	t.Helper()
	held := &token.Lease{Client: client, Releases: new(pending.Releases), Name: "key", Token: owner}
	t.Cleanup(held.Releases.Close)
	held.Until.Set(time.Now().Add(ttl))
	if ok, err := client.SetNX(t.Context(), held.Name, held.Token, ttl).Result(); err != nil || !ok {
		t.Fatalf("take the lock: %v, %v", ok, err)
	}
	return held
}

func TestOnlyItsTokenFreesAndExtends(t *testing.T) {
	client := redistest.Start(t).Node(t).Client
	mine := take(t, client, "mine", time.Minute)
	other := &token.Lease{Client: client, Releases: mine.Releases, Name: mine.Name, Token: "min"}
	for what, do := range map[string]func() error{
		"release": func() error { return other.Release(t.Context()) },
		"extend":  func() error { return other.Extend(t.Context(), time.Hour) },
	} {
		if err := do(); !errors.Is(err, strategies.ErrNotHeld) {
			t.Errorf("a stranger's %s returned %v, want ErrNotHeld", what, err)
		}
	}
	other.GiveBack(t.Context(), nil)
	if got := client.Get(t.Context(), "key").Val(); got != "mine" {
		t.Errorf("after a stranger's calls the lock is %q", got)
	}
	if ttl := client.PTTL(t.Context(), "key").Val(); ttl > time.Minute {
		t.Errorf("a stranger has extended it to %v", ttl)
	}
	if !other.ValidUntil().IsZero() {
		t.Errorf("a stranger's lease is valid until %v", other.ValidUntil())
	}
	if err := mine.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
	if err := mine.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a second release returned %v, want ErrNotHeld", err)
	}
}

// ValidUntil must count the TTL of an extension from an instant before it was sent, so that the lease does not outlive
// the key.
func TestExtend(t *testing.T) {
	client := redistest.Start(t).Node(t).Client
	held := take(t, client, "mine", time.Minute)
	before := time.Now()
	if err := held.Extend(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	after, left := time.Now(), client.PTTL(t.Context(), "key").Val()
	if until := held.ValidUntil(); until.Before(before.Add(time.Hour)) || until.After(after.Add(time.Hour)) ||
		until.After(time.Now().Add(left+time.Millisecond)) {
		t.Errorf("extended by an hour it is valid for %v, and Redis keeps it for %v", until.Sub(before), left)
	}
	if err := held.Extend(t.Context(), time.Microsecond); err != nil { // no TTL is below 1 ms
		t.Errorf("extend by a microsecond: %v", err)
	}
}

// Free must succeed after SCRIPT FLUSH. If the key is a list, Release and Extend must return WRONGTYPE, not ErrNotHeld.
func TestErrors(t *testing.T) {
	client := redistest.Start(t).Node(t).Client
	held := take(t, client, "mine", time.Minute)
	if err := client.ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if freed, err := held.Free(t.Context()); err != nil || !freed {
		t.Errorf("with its script flushed: %v, %v", freed, err)
	}
	client.RPush(t.Context(), "key", "mine")
	for what, err := range map[string]error{
		"release": held.Release(t.Context()),
		"extend":  held.Extend(t.Context(), time.Minute),
	} {
		if !redis.HasErrorPrefix(err, "WRONGTYPE") || errors.Is(err, strategies.ErrNotHeld) {
			t.Errorf("%s of a list returned %v", what, err)
		}
	}
}
