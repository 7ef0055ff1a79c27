package handoff_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// Entries of processes that are gone are skipped in the script that meets them, 64
// at once; nothing waits for a time-out.
func TestDeadProcessesAreSkipped(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	for _, test := range []struct{ silent, deaf, scripts int }{
		{silent: 5, scripts: 1},
		{deaf: 5, scripts: 1}, // a heartbeat, and no subscription any more
		{silent: 63, scripts: 1},
		{silent: 64, scripts: 2},
		{silent: 100, deaf: 100, scripts: 4},
	} {
		t.Run(fmt.Sprintf("%+v", test), func(t *testing.T) {
			q := newQueue(t, server)
			lease := p.Acquire(t, "key")
			for n := range test.silent + test.deaf {
				id := stranger(n)
				if n >= test.silent {
					q.server.Set(t.Context(), channelOf(id), 1, time.Minute)
				}
				q.server.RPush(t.Context(), list, entryOf(id, time.Hour))
			}
			q.join(0, p)
			calls := locktest.Calls(t, q.server, func() {
				trial.Release(t, lease)
				lease = q.next(0)
			})
			if calls["evalsha"] != test.scripts {
				t.Errorf("it took %d scripts to skip them, want %d", calls["evalsha"], test.scripts)
			}
			trial.Release(t, lease)
		})
	}
}

// A process that hears and does not act, as one that is stopped or behind a black
// hole, costs one TTL while its heartbeat lasts, and nothing after that.
func TestStoppedProcessCostsOneTTL(t *testing.T) {
	t.Parallel()
	const ttl = 400 * time.Millisecond
	server := redistest.Start(t)
	// Whoever waits looks once in a TTL of its own.
	holder, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", 2*time.Second)
	q := newQueue(t, server)
	lease := holder.Acquire(t, "key")
	stopped := stranger(1)
	deaf := q.server.Subscribe(t.Context(), channelOf(stopped))
	defer func() { _ = deaf.Close() }()
	if _, err := deaf.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	q.server.Set(t.Context(), channelOf(stopped), 1, ttl/2)
	for range 5 {
		q.server.RPush(t.Context(), list, entryOf(stopped, ttl))
	}
	q.join(0, p)
	trial.Release(t, lease)
	lease = q.next(0)
	granted := 0
	for len(deaf.Channel()) > 0 || granted == 0 {
		<-deaf.Channel()
		granted++
	}
	if granted > 1 {
		t.Errorf("%d grants went to a process that does not act, want one at most", granted)
	}
	_ = lease.Release(t.Context())
}

// Whoever waits keeps the place over a break of every connection, and over several;
// no release comes in between here, which would skip who is not back yet.
func TestPlacesOutliveBreaks(t *testing.T) {
	const waiters = 9
	server := redistest.Start(t)
	a, b := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	lease := a.Acquire(t, "key")
	for n := range waiters {
		q.join(n, []trial.Process{a, b}[n%2])
	}
	for range 3 {
		if err := q.server.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
		trial.Eventually(t, "both are back", func() bool {
			return len(q.server.PubSubChannels(t.Context(), "trial:handoff:*").Val()) == 2
		})
	}
	for n := range waiters {
		trial.Release(t, lease)
		lease = q.next(n)
	}
	trial.Release(t, lease)
}

// A process whose entries were dropped, because it was silent, gets its old places
// back when it beats again.
func TestSkippedProcessGetsItsPlaceBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	a, b := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	// A process knows Redis's clock, and so its tickets, to within its shortest round trip.
	trip := time.Hour
	for range 5 {
		began := time.Now()
		trial.Release(t, b.Acquire(t, "another"))
		trip = min(trip, time.Since(began))
	}
	lease := a.Acquire(t, "key")
	q.join(0, b)
	q.join(1, b)
	time.Sleep(100*time.Millisecond + 2*trip)
	q.join(2, a)
	waiting := q.server.LRange(t.Context(), list, 1, 2).Val()
	q.server.Del(t.Context(), channelOf(waiting[0][:36]+":1")) // as if it had been stopped
	for _, entry := range waiting {
		q.server.LRem(t.Context(), list, 1, entry)
	}
	trial.Eventually(t, "they stand in the queue again", func() bool { return q.length() == 4 })
	for n := range 3 {
		trial.Release(t, lease)
		lease = q.next(n)
	}
	trial.Release(t, lease)
}

// A grant that nobody waits for is passed on at once.
func TestUnknownGrantIsPassedOn(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	lease := p.Acquire(t, "key")
	q.join(0, p)
	waiting := q.server.LIndex(t.Context(), list, 1).Val()
	q.server.LInsertBefore(t.Context(), list, waiting, entryOf(waiting[:36]+":999999", time.Hour))
	trial.Release(t, lease)
	trial.Release(t, q.next(0))
}

// A grant that has lain in a socket for longer than its TTL is not a lease: the waiter
// queues again.
func TestLateGrantIsNoLease(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	lease := p.Acquire(t, "key")
	q.join(0, p)
	id, _, _ := strings.Cut(q.server.LIndex(t.Context(), list, 1).Val(), " ")
	now := time.Now().UnixMilli() - 60_000
	grant := fmt.Sprintf("1 %s %d 1 1 %d %d %s", id, now/1000, now+30_000, now, list)
	if err := q.server.Publish(t.Context(), channelOf(id[:36]+":1"), grant).Err(); err != nil {
		t.Fatal(err)
	}
	trial.Eventually(t, "the waiter queues again", func() bool {
		for _, entry := range q.server.LRange(t.Context(), list, 1, -1).Val() {
			if !strings.HasPrefix(entry, id+" ") {
				return true
			}
		}
		return false
	})
	if len(q.served) > 0 {
		t.Fatal("a lease that had run out was returned")
	}
	trial.Release(t, lease)
	trial.Release(t, q.next(0))
}

// A message for another connection, as a replica may pass it on, makes no owner; Redis is
// asked.
func TestGrantForAnotherConnection(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	lease := p.Acquire(t, "key")
	q.join(0, p)
	id, _, _ := strings.Cut(q.server.LIndex(t.Context(), list, 1).Val(), " ")
	now := time.Now().UnixMilli()
	grant := fmt.Sprintf("7 %s %d 1 1 %d %d %s", id, now/1000, now+3_600_000, now, list)
	before := p.Counts()
	looks := func() string {
		_, stats, _ := strings.Cut(q.server.Info(t.Context(), "commandstats").Val(), "cmdstat_lrange:calls=")
		calls, _, _ := strings.Cut(stats, ",")
		return calls
	}
	looked := looks()
	if n := q.server.Publish(t.Context(), channelOf(id[:36]+":1"), grant).Val(); n != 1 {
		t.Fatalf("%d heard it", n)
	}
	trial.Eventually(t, "Redis is asked, or it is believed", func() bool { return looks() != looked || p.Counts() != before })
	if p.Counts() != before {
		t.Error("it was believed")
	}
	trial.Release(t, lease)
	trial.Release(t, q.next(0))
}

// Without the rights that it needs it says so before anybody waits.
func TestRightsAreProbed(t *testing.T) {
	for _, missing := range []string{"-publish", "-lset", "resetchannels", "-subscribe"} {
		t.Run(missing, func(t *testing.T) {
			server := redistest.Start(t)
			config := trial.Config(t, server)
			if err := server.Client(t).Do(t.Context(), "ACL", "SETUSER", "default", missing).Err(); err != nil {
				t.Fatal(err)
			}
			locker, err := trial.Variant(t, "handoff").Open(config)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = locker.Close() }()
			if err := locker.(strategies.Preparer).Prepare(t.Context(), nil); err == nil ||
				!strings.Contains(err.Error(), "permission") && !strings.Contains(err.Error(), "can't run") {
				t.Errorf("Prepare returned %v", err)
			}
			if _, err := locker.Acquire(t.Context(), "key"); err == nil {
				t.Error("Acquire did not fail")
			}
		})
	}
}

// A script that may not publish loses nobody: the release says so, and those who wait
// find the lock free by themselves.
func TestForbiddenPublishLosesNobody(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	server := redistest.Start(t)
	holder, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", ttl)
	q := newQueue(t, server)
	lease := holder.Acquire(t, "key")
	q.join(0, p)
	q.join(1, p)
	if err := lease.(strategies.Extender).Extend(t.Context(), ttl); err != nil { // it has waited for them
		t.Fatal(err)
	}
	q.server.Do(t.Context(), "ACL", "SETUSER", "default", "-publish")
	if err := lease.Release(t.Context()); err == nil {
		t.Error("the release did not say that nobody was told")
	}
	lease = q.next(0)
	_ = lease.Release(t.Context()) // it may have run out meanwhile
	_ = q.next(1).Release(t.Context())
}

// Tokens grow, also when Redis has lost everything; waiters queue again.
func TestRestartedEmpty(t *testing.T) {
	server := redistest.Start(t)
	p := trial.Start(t, server, "handoff", time.Hour)
	q := newQueue(t, server)
	lease := p.Acquire(t, "key")
	for n := range 3 {
		q.join(n, p)
	}
	last := fence(lease)
	server.Kill()
	server.Restart(t)
	for n := range 3 {
		next := q.next(n)
		if fence(next) <= last {
			t.Errorf("token %d came after %d", fence(next), last)
		}
		last = fence(next)
		trial.Release(t, next)
	}
	if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the release of a forgotten lease returned %v, want ErrNotHeld", err)
	}
}

// Somebody deletes the lock under its waiters.
func TestDeletedLock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	holder, p := trial.Start(t, server, "handoff", time.Hour), trial.Start(t, server, "handoff", 300*time.Millisecond)
	q := newQueue(t, server)
	_ = holder.Acquire(t, "key")
	q.join(0, p)
	q.server.Del(t.Context(), list)
	q.server.RPush(t.Context(), list, fmt.Sprintf("%s 1 1 1 %d -", stranger(1), time.Now().Add(time.Second).UnixMilli()))
	_ = q.next(0).Release(t.Context()) // it may have run out meanwhile
}

// A connection on which no answer comes is given up.
func TestBlackHole(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	node, dials := trial.CountDials(t, server)
	options := *node.Options
	options.ReadTimeout = time.Second
	client := redis.NewUniversalClient(&options)
	t.Cleanup(func() { _ = client.Close() })
	p := trial.StartOn(t, []strategies.Node{{Client: client, Options: &options}}, "handoff", time.Hour)
	q := newQueue(t, server)
	lease := p.Acquire(t, "key")
	q.join(0, p)
	if n := strings.Count(q.server.ClientList(t.Context()).Val(), "sub=1"); n != 1 {
		t.Fatalf("%d subscriptions", n)
	}
	server.Pause()
	before := dials.Load()
	trial.Eventually(t, "it dials anew", func() bool { return dials.Load() > before })
	server.Resume()
	trial.Release(t, lease)
	trial.Release(t, q.next(0))
}
