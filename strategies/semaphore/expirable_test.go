package semaphore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

const expiring = "semaphore:expirable=true,permits=2"

// Expirable permits must be stored as in RPermitExpirableSemaphore: in a sorted set of permit ids of 16 bytes, with the
// deadlines in epoch ms as scores.
func TestExpirableLayout(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, expiring, time.Minute)
	before := time.Now()
	lease := p.Acquire(t, "key")
	after := time.Now()
	permits, err := outside.ZRangeWithScores(t.Context(), "{trial:key}:timeout", 0, -1).Result()
	if err != nil || len(permits) != 1 {
		t.Fatalf("the permits are %v (%v), want one", permits, err)
	}
	if id := permits[0].Member.(string); len(id) != 16 {
		t.Errorf("its id is %q, want 16 bytes", id)
	}
	score := int64(permits[0].Score)
	if score < before.Add(time.Minute).UnixMilli() || score > after.Add(time.Minute).UnixMilli() {
		t.Errorf("its deadline is %d, a minute from %v", score, before)
	}
	if until := lease.(strategies.Timed).ValidUntil(); until.Sub(time.UnixMilli(score)).Abs() > time.Microsecond {
		t.Errorf("it is valid until %v and runs out at %v", until, time.UnixMilli(score))
	}
	trial.Release(t, lease)
}

// Three permits have expired. The next acquire must free all three and take one. It must publish that two are free.
func TestExpiredPermitsReturnTogether(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	dead := trial.Start(t, server, "semaphore:expirable=true,permits=3", time.Minute)
	var last strategies.Lease
	for range 3 {
		last = dead.Acquire(t, "key")
	}
	listener := outside.Subscribe(t.Context(), "redisson_sc:{trial:key}")
	defer func() { _ = listener.Close() }()
	if _, err := listener.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	const deadlines = "{trial:key}:timeout"
	for _, id := range outside.ZRange(t.Context(), deadlines, 0, -1).Val() { // they have run out
		outside.ZAddXX(t.Context(), deadlines,
			redis.Z{Score: float64(time.Now().Add(-time.Second).UnixMilli()), Member: id})
	}
	alive := trial.Start(t, server, "semaphore:expirable=true,permits=3", time.Minute)
	lease := alive.Acquire(t, "key")
	message, err := listener.ReceiveMessage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := free(t, outside); n != 2 || message.Payload != "2" {
		t.Errorf("%d permits are free and %q was published, want 2 and \"2\"", n, message.Payload)
	}
	if err := last.Release(t.Context()); err != strategies.ErrNotHeld {
		t.Errorf("release of a permit that ran out returned %v, want ErrNotHeld", err)
	}
	trial.Release(t, lease)
	if n := free(t, outside); n != 3 {
		t.Errorf("%d permits are free in the end, want 3", n)
	}
}

// Extend by a second on a lease of a minute must not move the deadline in Redis to an earlier time. An Extend that
// reaches Redis late, when its own deadline has already passed, would otherwise end the lease.
func TestExtendKeepsLaterDeadline(t *testing.T) {
	server := redistest.Start(t)
	lease := trial.Start(t, server, expiring, time.Minute).Acquire(t, "key")
	if err := lease.(strategies.Extender).Extend(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	permits, err := server.Client(t).ZRangeWithScores(t.Context(), "{trial:key}:timeout", 0, -1).Result()
	if err != nil || len(permits) != 1 || time.Until(time.UnixMilli(int64(permits[0].Score))) < time.Second*2 {
		t.Errorf("extended by a second, the permits are %v (%v), want one that lasts for a minute", permits, err)
	}
	if until := lease.(strategies.Timed).ValidUntil().UnixMilli(); len(permits) == 1 &&
		until != int64(permits[0].Score) {
		t.Errorf("extended by a second, it is said to be valid until %d, and in Redis it is until %.0f", until,
			permits[0].Score)
	}
}
