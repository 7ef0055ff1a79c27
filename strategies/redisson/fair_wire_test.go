package redisson_test

import (
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// ownerPrefix is the part of an owner's name that comes before the thread's number, in Redisson's format: a UUID and a
// colon.
const ownerPrefix = "b983c153-7421-469a-addb-44fb92259a1b:"

// plant adds an owner with a deadline to the queue, as if a Redisson client had queued and then died.
func plant(t testing.TB, outside redis.UniversalClient, owner string, deadline time.Time) {
	t.Helper()
	if err := outside.RPush(t.Context(), queue, owner).Err(); err != nil {
		t.Fatal(err)
	}
	z := redis.Z{Score: float64(deadline.UnixMilli()), Member: owner}
	if err := outside.ZAdd(t.Context(), deadlines, z).Err(); err != nil {
		t.Fatal(err)
	}
}

// hold makes a Redisson client the holder of the lock for ttl.
func hold(t testing.TB, outside redis.UniversalClient, ttl time.Duration) {
	t.Helper()
	outside.HSet(t.Context(), lockKey, ownerPrefix+"1", 1)
	if err := outside.PExpire(t.Context(), lockKey, ttl).Err(); err != nil {
		t.Fatal(err)
	}
}

// The keys, values, deadlines, channels and messages of a lock with two waiters must have the format that Redisson
// reads.
func TestFairWireFormat(t *testing.T) {
	const wait, ttl = 100_000, 60_000 // ms
	format := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`)
	_, outside, p := begin(t, "fair:wait-timeout=100s", ttl*time.Millisecond)
	began := time.Now().UnixMilli()
	lease := p.Acquire(t, "key")
	hash := outside.HGetAll(t.Context(), lockKey).Val()
	for owner, count := range hash {
		if len(hash) != 1 || count != "1" || !format.MatchString(owner) {
			t.Errorf("it is held as %v", hash)
		}
	}
	if left := outside.PTTL(t.Context(), lockKey).Val(); left <= 0 || left > time.Minute {
		t.Errorf("its PTTL is %v", left)
	}
	if n := outside.DBSize(t.Context()).Val(); n != 1 {
		t.Errorf("%d keys exist without waiters, want only the lock's", n)
	}

	head := enqueue(t, outside, p, 1)
	tail := enqueue(t, outside, p, 2)
	now := time.Now().UnixMilli()
	for key, kind := range map[string]string{lockKey: "hash", queue: "list", deadlines: "zset"} {
		if got := outside.Type(t.Context(), key).Val(); got != kind {
			t.Errorf("%s is a %s, want a %s", key, got, kind)
		}
	}
	for _, key := range []string{queue, deadlines} {
		if ttl := outside.PTTL(t.Context(), key).Val(); ttl != -1 {
			t.Errorf("%s has a TTL: %v", key, ttl)
		}
	}
	owners, score := queued(t, outside), scores(t, outside)
	if len(owners) != 2 || len(score) != 2 || !format.MatchString(owners[0]) || !format.MatchString(owners[1]) {
		t.Fatalf("the queue is %q, its deadlines %v", owners, score)
	}
	// The first deadline is the arrival of the first waiter plus the holder's PTTL plus one wait. The second is one wait
	// later.
	if first := score[owners[0]]; first < began+wait || first > now+ttl+wait {
		t.Errorf("the first deadline is %d, want it within [%d, %d]", first, began+wait, now+ttl+wait)
	}
	if d := score[owners[1]] - score[owners[0]]; d != wait {
		t.Errorf("the second deadline is %d ms after the first, want %d", d, wait)
	}
	channels, _ := outside.PubSubChannels(t.Context(), "*").Result()
	slices.Sort(channels)
	want := []string{wakeChannelPrefix + owners[0], wakeChannelPrefix + owners[1]}
	slices.Sort(want)
	if !slices.Equal(channels, want) {
		t.Errorf("subscribed to are %q, want %q", channels, want)
	}

	heard := listen(t, outside, "*")
	trial.Release(t, lease)
	if message := heard(); message.Channel != wakeChannelPrefix+owners[0] || message.Payload != "0" {
		t.Errorf("a release published %q on %q, want \"0\" on the head's channel", message.Payload, message.Channel)
	}
	lease = head.lease(t)
	// The first waiter has got the lock, so the wait that it had added is subtracted from the deadline of the second.
	if got := scores(t, outside); len(got) != 1 || got[owners[1]] != score[owners[1]]-wait {
		t.Errorf("after the first has got the lock the deadlines are %v, want the second's %d earlier than %d",
			got, wait, score[owners[1]])
	}
	if got := queued(t, outside); len(got) != 1 || got[0] != owners[1] {
		t.Errorf("after the first has got the lock the queue is %q", got)
	}
	trial.Release(t, lease)
	trial.Release(t, tail.lease(t))
	nothingLeft(t, outside)
}

// The context of a waiter ends before its wait-timeout has passed. The waiter's deadline in the queue must be based on
// the shorter time.
func TestShorterWaitHasAnEarlierDeadline(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	hold(t, outside, time.Hour)
	plant(t, outside, ownerPrefix+"2", time.UnixMilli(4e12))
	p := trial.Start(t, server, "fair", time.Minute)
	w := startFor(t, p, 50*time.Second)
	poll.Until(t, "it stands in the queue", func() bool { return len(queued(t, outside)) == 2 })
	owner := queued(t, outside)[1]
	if wait := scores(t, outside)[owner] - 4e12; wait > 50_000 || wait < 20_000 {
		t.Errorf("a caller that waits 50 s has a deadline %d ms behind the one before it", wait)
	}
	w.cancel()
	if err := <-w.errors; err == nil {
		t.Error("cancelled, and yet it has the lock")
	}
}

// A Redisson client waits at the head of the queue. A release must publish a message to it.
func TestForeignWaiterIsNotified(t *testing.T) {
	_, outside, p := begin(t, "fair", time.Hour)
	lease := p.Acquire(t, "key")
	plant(t, outside, ownerPrefix+"2", time.Now().Add(time.Hour))
	heard := listen(t, outside, wakeChannelPrefix+ownerPrefix+"2")
	trial.Release(t, lease)
	if payload := heard().Payload; payload != "0" {
		t.Errorf("the message is %q", payload)
	}
	// The lock is free, but it is the turn of the Redisson client, so another client must not get it.
	if _, err := p.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("a try past the queue returned %v, want ErrHeld", err)
	}
	if n := len(queued(t, outside)); n != 1 {
		t.Errorf("%d are in the queue after a try-lock, want the one that waits", n)
	}
}
