package handoff_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// over fails the test unless both Extend and Release return ErrNotHeld.
func over(t *testing.T, lease *holding) {
	t.Helper()
	if err := lease.Extend(t.Context(), time.Hour); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the extension of a lease that is over returned %v", err)
	}
	notHeld(t, lease)
}

// The channel Lost must be closed when the lease expires, even if the Locker was closed before, and when the process
// learns that Redis has lost the lease. It must stay open when the lease is released or passed on.
func TestLost(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} { // whether its process is closed
		p := trial.Start(t, redistest.Start(t), "handoff", 100*time.Millisecond)
		lease := acquire(t, p)
		lost := lease.Lost()
		if closed {
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
		<-lost
		if time.Now().Before(lease.ValidUntil()) {
			t.Error("the loss was reported before the end of the lease")
		}
		over(t, lease)
		if !closed {
			lease = acquire(t, p)
			time.Sleep(time.Until(lease.ValidUntil()) + time.Millisecond)
			<-lease.Lost() // called after the end
		}
	}
	p := newPair(t, "cohort", time.Hour, 2, 0)
	lost := p.first.Lost()
	ends(t, p.h)
	p.do("DEL " + lock) // Redis has lost it
	if err := p.first.Extend(t.Context(), time.Hour); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the extension of a lease that is lost returned %v", err)
	}
	<-lost
	if !isLost(p.first) {
		t.Error("Lost of a lost lease is open")
	}
	notHeld(t, p.first)

	first := p.next("a1")
	all := []<-chan struct{}{first.Lost()}
	second := p.turns(first, "a2") // a pass
	all = append(all, second.Lost())
	p.done(second)
	time.Sleep(2 * time.Millisecond)
	for n, lost := range append(all, first.Lost(), second.Lost()) {
		select {
		case <-lost:
			t.Errorf("%d: a released lease is reported as lost", n)
		default:
		}
	}
	over(t, first)
	notHeld(t, second)
}

// Redis may keep a lock beyond the end of its lease, because the lease was shortened or the reply to an extension was
// lost. The process then releases the lock at the end of the lease, so the next client does not wait longer.
func TestShortenedLease(t *testing.T) {
	t.Parallel()
	const short = 200 * time.Millisecond
	shorten := func(first ...time.Duration) func(*testing.T, *wire, *holding) {
		return func(t *testing.T, _ *wire, l *holding) {
			for _, ttl := range append(first, short) {
				extend(t, l, ttl)
			}
		}
	}
	for name, test := range map[string]struct {
		ttl   time.Duration
		watch bool // the holder watches Lost
		end   func(*testing.T, *wire, *holding)
	}{
		"shortened":                   {time.Hour, false, shorten()},
		"shortened, and watched":      {time.Hour, true, shorten()},
		"shortened, and then less so": {time.Hour, false, shorten(time.Minute, 2*time.Minute)},
		"extended without an answer": {2 * time.Second, false, func(t *testing.T, w *wire, l *holding) {
			w.stall()
			defer w.flow()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := l.Extend(ctx, time.Hour); err == nil {
				t.Error("an extension without an answer succeeded")
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onOne(t, both, func(t *testing.T, server *redistest.Server, variant string) {
				p := newPairOn(t, server, variant, test.ttl, 0, 0)
				trial.Release(t, p.first)
				lease := acquire(t, p.a)
				p.come("other", p.h)
				if test.watch {
					lease.Lost()
				}
				test.end(t, p.wire, lease)
				next := p.next("other")
				if time.Now().Before(lease.ValidUntil()) {
					t.Error("another client had the lock while the lease was valid")
				}
				poll.Until(t, "the loss is reported to its holder", func() bool { return isLost(lease) })
				notHeld(t, lease)
				p.done(next)
			})
		})
	}
}

// If the caller of Extend gives up before the reply arrives, the end of the lease does not change. The lease can still
// be extended again and released.
func TestUnansweredExtension(t *testing.T) {
	t.Parallel()
	server, w := redistest.Start(t), new(wire)
	p := w.start(t, server, "handoff", time.Hour)
	lease := acquire(t, p)
	until := lease.ValidUntil()
	w.stall()
	ctx, cancel := context.WithCancel(t.Context())
	extended := make(chan error, 1)
	go func() { extended <- lease.Extend(ctx, 2*time.Hour) }()
	poll.Until(t, "the extension is sent", func() bool { return w.sent(script("extend")) })
	cancel()
	if err := <-extended; !errors.Is(err, context.Canceled) {
		t.Errorf("an extension whose caller gave up returned %v", err)
	}
	if !lease.ValidUntil().Equal(until) {
		t.Errorf("it is valid for %v then", time.Until(lease.ValidUntil()))
	}
	w.flow()
	if extend(t, lease, 2*time.Hour); !lease.ValidUntil().After(until) {
		t.Errorf("extended again, it is valid for %v", time.Until(lease.ValidUntil()))
	}
	trial.Release(t, lease)
	newQueue(t, server).nothingLeft(p)
}

// A holder shortens its lease to one second, so Redis keeps the lock beyond the end of the lease. A waiter of the same
// process queues a slot. The process must still release the lock at the end of the lease.
func TestShortenedLeaseEndsWithLocalWaiter(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff:linger=0s", time.Hour)
	handoff.Attend(locker(p), time.Hour)
	q := newQueue(t, server)
	lease := acquire(t, p)
	extend(t, lease, time.Second)
	q.come("waiter", p)
	next := q.next("waiter")
	if time.Now().Before(lease.ValidUntil()) {
		t.Error("another client had the lock while the lease was valid")
	}
	notHeld(t, lease)
	trial.Release(t, next)
	q.nothingLeft(p)
}

func extend(t *testing.T, lease *holding, ttl time.Duration) {
	t.Helper()
	if err := lease.Extend(t.Context(), ttl); err != nil {
		t.Error(err)
	}
}

// After a lease that was never released has expired, TryAcquire in the same process can get the lock.
func TestTryAfterExpiredLease(t *testing.T) {
	onOne(t, both, func(t *testing.T, server *redistest.Server, variant string) {
		p := trial.Start(t, server, variant, 50*time.Millisecond)
		first := acquire(t, p)
		poll.Until(t, "the lock is acquired again", func() bool {
			lease, err := try(t.Context(), t, p, "key")
			if err == nil {
				_ = lease.Release(t.Context()) // it may have run out
			}
			return err == nil
		})
		notHeld(t, first)
	})
}

// Each client gets a lease with the TTL that it requested, even after a wait or a pass within the process. A lease is
// passed on only to callers that requested the same TTL. Callers that requested another TTL have a separate slot at
// Redis.
func TestTTLPerCall(t *testing.T) {
	t.Parallel()
	const own, other = 8 * time.Hour, 2 * time.Hour
	for variant, order := range map[string]string{
		"handoff:linger=1h": "a1 a3 a2 a4 b1", "cohort": "a1 a3 a2 a4 b1", "handoff:linger=0s": "a1 a2 a3 b1 a4",
	} {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			q := newQueue(t, server)
			a, c := trial.Start(t, server, variant, own), trial.Start(t, server, variant, own)
			b := trial.Start(t, server, variant, other)
			first, err := locker(c).TryAcquireFor(t.Context(), "key", other)
			held, err := enter(t, c, "the test", "key", first, err)
			if err != nil {
				t.Fatal(err)
			}
			lasts := func(want time.Duration) {
				t.Helper()
				kept, valid := q.server.PTTL(q.ctx, lock).Val(), time.Until(held.ValidUntil())
				for _, left := range []time.Duration{kept, valid} {
					if left > want || left < want-20*time.Minute {
						t.Errorf("Redis keeps the lock for %v, and it is valid for %v, want %v", kept, valid, want)
					}
				}
			}
			lasts(other)
			ttls := map[string]time.Duration{"a1": own, "a2": other, "a3": own, "b1": other, "a4": other}
			for _, who := range []string{"a1", "a2", "a3", "b1", "a4"} {
				p := a
				if who == "b1" {
					p = b
				}
				q.joinFor("key", who, p, ttls[who])
			}
			for who := range strings.FieldsSeq(order) {
				held = q.turns(held, who)
				lasts(ttls[who])
			}
			trial.Release(t, held)
			q.nothingLeft(a, b, c)
		})
	}
}

// A TTL of math.MaxInt64 is accepted. Every call refuses a TTL below 10 ms without sending a command to Redis.
func TestTTLBounds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", math.MaxInt64)
	lease := acquire(t, p)
	extend(t, lease, math.MaxInt64)
	before := lease.ValidUntil()
	if time.Until(before) < 12*time.Hour {
		t.Errorf("the longest lease is valid for %v", time.Until(before))
	}
	for _, ttl := range []time.Duration{-time.Second, 0, time.Microsecond, 9 * time.Millisecond} {
		config := p.Config
		config.TTL = ttl
		_, opened := handoff.Open(config, handoff.Defaults())
		_, acquired := locker(p).AcquireFor(t.Context(), "other", ttl)
		_, tried := locker(p).TryAcquireFor(t.Context(), "other", ttl)
		for what, err := range map[string]error{
			"Open": opened, "an acquire": acquired, "a try": tried, "an extension": lease.Extend(t.Context(), ttl),
		} {
			if err == nil || !strings.Contains(err.Error(), "TTL must be at least 10ms") && what != "Open" {
				t.Errorf("%s with a TTL of %v returned %v", what, ttl, err)
			}
		}
	}
	if lease.ValidUntil() != before || isLost(lease) {
		t.Error("an extension that was refused ended the lease")
	}
	trial.Release(t, lease)
	newQueue(t, server).nothingLeft(p)
	poll.Until(t, "no local queue is left", func() bool { return handoff.Lines(locker(p)) == 0 })
}

// A waiter that requests a TTL of 20 ms causes at most 1000 commands a second.
func TestShortTTL(t *testing.T) {
	onOne(t, both, func(t *testing.T, server *redistest.Server, variant string) {
		const length = 500 * time.Millisecond
		p := trial.Start(t, server, variant, 20*time.Millisecond)
		_ = acquire(t, p).Release(t.Context()) // fails if the lock does not work at all
		lease := acquire(t, trial.Start(t, server, variant, time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		before := info(t, lookAt(t, server), "stats", "total_commands_processed")
		if _, err := p.Locker.Acquire(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting returned %v", err)
		}
		sent := info(t, lookAt(t, server), "stats", "total_commands_processed") - before
		if most := int64(1000 * length.Seconds()); sent > most {
			t.Errorf("one waiter sent %d commands in %v", sent, length)
		}
		trial.Release(t, lease)
	})
}

// A call succeeds if Redis replies to each of its commands within patience, even if two commands together take longer.
func TestTwoSlowAnswersAreNotAnOutage(t *testing.T) {
	release := func(held strategies.Lease) error { return held.Release(context.Background()) }
	extend := func(held strategies.Lease) error {
		return held.(strategies.Extender).Extend(context.Background(), time.Minute)
	}
	for _, c := range []struct {
		first, answer, second string
		call                  func(held strategies.Lease) error
	}{
		{"delifeq", ":0", "evalsha", release},
		{"delifeq", "-ERR unknown command", "delex", release},
		{"evalsha", "-NOSCRIPT", "eval", extend},
	} {
		t.Run(c.first+" and "+c.second, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var late atomic.Bool
				dial := func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					answers := map[string]string{"hello": "-ERR unknown command", "ping": "+PONG", "set": "$-1"}
					go func() {
						buffer := make([]byte, 4096)
						for n, err := theirs.Read(buffer); err == nil; n, err = theirs.Read(buffer) {
							word := strings.Fields(string(buffer[:n]))[2]
							answer := cmp.Or(answers[word], ":1")
							if late.Load() && (word == c.first || word == c.second) {
								time.Sleep(handoff.Patience * 3 / 4)
								if word == c.first {
									answer = c.answer
								}
							}
							_, _ = theirs.Write([]byte(answer + "\r\n"))
						}
					}()
					return ours, nil
				}
				options := &redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}, Dialer: dial, DisableIdentity: true}
				p := open(t, options, "handoff:tokens=false", time.Minute)
				trial.Release(t, p.Acquire(t, "key")) // by the script
				held := p.Acquire(t, "key")
				late.Store(true)
				since := time.Now()
				err := c.call(held)
				if took := time.Since(since); took <= handoff.Patience || err != nil {
					t.Errorf("after %v: %v", took, err)
				}
			})
		})
	}
}

// Concurrent releases of several locks share one run of a script, but each returns its own result. If Redis refuses the
// script because of one lock, the others are still released, and each lock that has waiters is granted to its next
// waiter.
func TestConcurrentReleases(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Hour)
	const wanted, taken, another, denied = 6, 7, 8, 9
	key := func(i int) string {
		if i == denied {
			return "denied"
		}
		return fmt.Sprint("lock-", i)
	}
	leases := make([]strategies.Lease, 50)
	for i := range leases {
		leases[i] = a.Acquire(t, key(i))
	}
	waiters := trial.ParkOn(t, key(wanted), 1, b)
	client, name := server.Client(t), a.Config.Prefix
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Set(t.Context(), name+key(taken), "another owner", 0)
		p.Del(t.Context(), name+key(another))
		p.LPush(t.Context(), name+key(another), "no lock")
		return p.Do(t.Context(), "acl", "setuser", "default", "resetkeys", "~*lock-*").Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	server.Pause()
	errs := make([]error, len(leases))
	var all sync.WaitGroup
	for i, lease := range leases {
		all.Go(func() { errs[i] = lease.Release(t.Context()) })
	}
	server.Resume()
	all.Wait()
	for i, err := range errs {
		want := err == nil
		switch i {
		case taken:
			want = errors.Is(err, strategies.ErrNotHeld)
		case another:
			want = err != nil && strings.Contains(err.Error(), "belongs to another program")
		case denied:
			want = redis.HasErrorPrefix(err, "NOPERM")
		}
		if !want {
			t.Errorf("release %d returned %v", i, err)
		}
	}
	trial.Release(t, waiters.Next(t))
	left, err := client.Keys(t.Context(), "*").Result()
	slices.Sort(left)
	want := []string{name + key(denied), name + key(taken), name + key(another)}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %v, %v, want %v", left, err, want)
	}
}
