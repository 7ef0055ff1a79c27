package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// When Redis loses a part of a lock, such as the list of those who wait, nobody waits for
// as long as a lease lasts.
func TestPartOfALockIsLost(t *testing.T) {
	t.Parallel()
	for what, kind := range map[string]string{"the list": "list", "the lock": "string", "all": ""} {
		t.Run(what, func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				server := redistest.Start(t)
				outside := server.Client(t)
				holder := open(t, name, server.Addr, nil, time.Hour)
				lockers := []strategies.Locker{open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, nil, time.Hour)}
				lease := acquire(t, holder)
				b := &book{t: t}
				b.enter("the holder", lease)
				w := b.wait(0, lockers...)
				b.leave(lease) // it may be the waiters' from now on
				for _, key := range keysOf(t, outside, kind) {
					if err := outside.Del(t.Context(), key).Err(); err != nil {
						t.Fatal(err)
					}
				}
				_ = release(t, lease)
				w.all.Wait()
			})
		})
	}
}

// keysOf are the keys of a kind, or all.
func keysOf(t *testing.T, server *redis.Client, kind string) []string {
	t.Helper()
	keys, _, err := server.ScanType(t.Context(), 0, "*", 1000, kind).Result()
	if kind == "" {
		keys, err = server.Keys(t.Context(), "*").Result()
	}
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// Nothing is left of a lock that nobody wants, but what has a TTL.
func TestNothingIsLeft(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		outside := server.Client(t)
		a, b := open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, nil, time.Hour)
		for n := range 20 {
			contend(t.Context(), t, fmt.Sprint("key", n), a, b)
		}
		for _, key := range keysOf(t, outside, "") {
			if left := outside.PTTL(t.Context(), key).Val(); left < 0 {
				t.Errorf("%s stays for ever", key)
			}
		}
	})
}

// Redis without memory to spare still lets a lock be released.
func TestReleaseWithoutMemory(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		outside := server.Client(t)
		holder, other := open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, nil, time.Hour)
		lease := acquire(t, holder)
		refusals["OOM"].begin(t, outside)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := lease.Release(ctx); err != nil {
			t.Errorf("an uncontended release returned %v", err)
		}
		refusals["OOM"].relieve(t, outside)
		_ = release(t, free(t, other))
	})
}

// A TTL of a few milliseconds is refused, or works; Redis is not flooded either way.
func TestShortTTL(t *testing.T) {
	t.Parallel()
	for _, ttl := range []time.Duration{time.Microsecond, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 20 * time.Millisecond} {
		t.Run(ttl.String(), func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				const length = 500 * time.Millisecond
				server := redistest.Start(t)
				outside := server.Client(t)
				locker, err := tryOpen(t, name, &redis.UniversalOptions{Addrs: []string{server.Addr}}, ttl)
				if err != nil {
					if ttl > 10*time.Millisecond {
						t.Errorf("refused: %v", err)
					}
					return
				}
				lease := acquire(t, locker) // else nothing works
				_ = release(t, lease)
				holder := open(t, name, server.Addr, nil, time.Hour)
				lease = acquire(t, holder)
				ctx, cancel := context.WithTimeout(t.Context(), length)
				defer cancel()
				before := info(t, outside, "stats", "total_commands_processed")
				_, err = locker.Acquire(ctx, "key")
				n := info(t, outside, "stats", "total_commands_processed") - before
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("waiting returned %v", err)
				}
				if most := int64(1000 * length.Seconds()); n > most {
					t.Errorf("one waiter sent %d commands in %v", n, length)
				}
				_ = release(t, lease)
			})
		})
	}
}

// A TTL that is longer than Redis can count is no lease that has ended.
func TestLongestTTL(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		server := redistest.Start(t)
		locker, err := tryOpen(t, name, &redis.UniversalOptions{Addrs: []string{server.Addr}}, math.MaxInt64)
		if err != nil {
			return // it is refused
		}
		lease := acquire(t, locker)
		if time.Until(until(lease)) < time.Hour {
			t.Errorf("the longest lease is valid for %v", time.Until(until(lease)))
		}
		if err := release(t, lease); err != nil {
			t.Error(err)
		}
	})
}

// Attempts without number while Redis is away leave no goroutines, and no commands for
// when it is back.
func TestTriesDuringAnOutage(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "stopped"} {
		t.Run(how, func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				const tries, atOnce = 200, 20
				server := redistest.Start(t)
				labelled(t, func(ctx context.Context, goroutines func() int) {
					locker, other := open(t, name, server.Addr, nil, time.Hour), open(t, name, server.Addr, nil, time.Hour)
					_ = release(t, acquire(t, locker))
					before := goroutines()
					if how == "killed" {
						server.Kill()
					} else {
						server.Pause()
					}
					var all sync.WaitGroup
					for n := range atOnce {
						all.Go(func() {
							for k := n; k < tries; k += atOnce {
								ctx, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
								if _, err := locker.(strategies.Trier).TryAcquire(ctx, fmt.Sprint("key", k)); err == nil {
									t.Error("a server that is away granted a lock")
								}
								cancel()
							}
						})
					}
					all.Wait()
					for end := time.Now().Add(patience); goroutines() > before+50 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
					}
					if n := goroutines() - before; n > 50 {
						t.Errorf("%d tries left %d goroutines", tries, n)
					}
					const most = 200 + 8*tries // what may have been sent must be undone
					if how == "killed" {
						server.Restart(t)
					} else {
						server.Resume()
					}
					for _, key := range []string{"key0", "key1", fmt.Sprint("key", tries-1)} {
						_ = release(t, freeKeyEvery(t, 200*time.Millisecond, other, key)) // its commands count too
					}
					time.Sleep(300 * time.Millisecond)
					outside := server.Client(t)
					n := info(t, outside, "stats", "total_commands_processed")
					if n > most {
						t.Errorf("%d tries were followed by %d commands", tries, n)
					}
				})
			})
		})
	}
}

// Who waits is told at once that the Locker has been closed, also while Redis is away.
func TestCloseEndsWaiting(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"well", "stopped"} {
		t.Run(how, func(t *testing.T) {
			each(t, func(t *testing.T, name string) {
				const waiters = 5
				server := redistest.Start(t)
				holder := open(t, name, server.Addr, nil, time.Hour)
				waiter := open(t, name, server.Addr, nil, time.Hour)
				lease := acquire(t, holder)
				told := make(chan error, waiters)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				for range waiters {
					go func() {
						_, err := waiter.Acquire(ctx, "key")
						told <- err
					}()
				}
				time.Sleep(200 * time.Millisecond)
				if how == "stopped" {
					server.Pause()
				}
				closed := time.Now()
				closing := make(chan error, 1)
				go func() { closing <- waiter.Close() }()
				for range waiters {
					if err := <-told; !errors.Is(err, strategies.ErrClosed) {
						t.Errorf("a waiter was told %v, want ErrClosed", err)
					}
				}
				if took := time.Since(closed); took > 5*time.Second {
					t.Errorf("the waiters were told after %v", took)
				}
				if err := <-closing; err != nil { // after what is under way has been given up
					t.Error(err)
				}
				if _, err := waiter.Acquire(ctx, "key"); !errors.Is(err, strategies.ErrClosed) {
					t.Errorf("then an acquire returned %v, want ErrClosed", err)
				}
				if how == "stopped" {
					server.Resume()
				}
				if err := release(t, lease); err != nil {
					t.Error(err)
				}
				_ = release(t, free(t, holder)) // nobody was granted it
			})
		})
	}
}
