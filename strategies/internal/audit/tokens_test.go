package audit

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// kept is how long Redis keeps the longest-lived key of the locks.
func kept(t *testing.T, server *redis.Client) (longest time.Duration) {
	t.Helper()
	for _, key := range server.Keys(t.Context(), prefix+"*").Val() {
		left := server.PTTL(t.Context(), key).Val()
		if left < 0 {
			left = math.MaxInt64
		}
		longest = max(longest, left)
	}
	return longest
}

// Redis keeps a lock for as long as it is held, whatever others do meanwhile.
func TestLockIsKeptForItsLease(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		outside := server.Client(t)
		holder, other := open(t, name, server.Addr, nil, time.Minute), open(t, name, server.Addr, nil, time.Minute)
		lease := acquire(t, holder)
		for _, ttl := range []time.Duration{12 * time.Hour, math.MaxInt64} {
			if err := lease.(strategies.Extender).Extend(t.Context(), ttl); err != nil {
				t.Fatalf("extend by %v: %v", ttl, err)
			}
			if left := time.Until(until(lease)); left < 11*time.Hour {
				t.Errorf("extended by %v the lease is valid for %v", ttl, left)
			}
			for range 3 {
				if _, err := other.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
					t.Errorf("a try-lock returned %v, want ErrHeld", err)
				}
				if left := kept(t, outside); left < time.Until(until(lease)) {
					t.Errorf("the lease is valid for %v, and Redis keeps the lock for %v", time.Until(until(lease)), left)
				}
			}
		}
		if err := release(t, lease); err != nil {
			t.Error(err)
		}
		if left := kept(t, outside); left == math.MaxInt64 {
			t.Error("Redis keeps a free lock for ever")
		}
	})
}

// Tokens grow, also after a restart from a snapshot that is older than the last of them.
func TestTokensAfterASnapshot(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		locker := open(t, name, server.Addr, nil, time.Minute)
		var last int64
		turn := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			for {
				lease, err := locker.Acquire(ctx, "key")
				if ctx.Err() != nil {
					t.Fatal(err)
				}
				if err != nil {
					time.Sleep(20 * time.Millisecond)
					continue
				}
				if token(lease) <= last {
					t.Errorf("token %d came after %d", token(lease), last)
				}
				last = max(last, token(lease))
				_ = release(t, lease)
				return
			}
		}
		for range 3 {
			turn()
		}
		server.Save()
		for range 50 {
			turn()
		}
		server.Kill()
		server.RestartWithData(t)
		for range 3 {
			turn()
		}
	})
}

// A process does not go on passing a lock on among its own clients after Redis has lost
// it and granted it to another process.
func TestFlushEndsPassingOn(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		const clients = 200
		server := redistest.Start(t)
		outside := server.Client(t)
		locker, other := open(t, name, server.Addr, nil, time.Minute), open(t, name, server.Addr, nil, time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		var turns, passed atomic.Int64
		var theirs atomic.Bool // the other's
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		for range clients {
			all.Go(func() {
				for ctx.Err() == nil {
					lease, err := locker.Acquire(ctx, "key")
					if err != nil {
						continue
					}
					turns.Add(1)
					if theirs.Load() {
						passed.Add(1)
					}
					time.Sleep(2 * time.Millisecond)
					_ = lease.Release(context.Background())
				}
			})
		}
		for turns.Load() < clients/2 { // they are passing it on
			time.Sleep(time.Millisecond)
		}
		var lease strategies.Lease
		for end := time.Now().Add(patience); lease == nil && time.Now().Before(end); {
			if err := outside.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			lease, _ = other.(strategies.Trier).TryAcquire(t.Context(), "key") // or they were quicker
		}
		if lease == nil {
			t.Fatal("the other never got it")
		}
		theirs.Store(true)
		time.Sleep(500 * time.Millisecond)
		theirs.Store(false)
		if n := passed.Load(); n > clients/4 {
			t.Errorf("%d of its clients got the lock while another process held it", n)
		}
		_ = release(t, lease)
	})
}
