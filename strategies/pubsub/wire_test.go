package pubsub_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// What Redisson and others see of a lock.
func TestWireFormat(t *testing.T) {
	for key, channel := range map[string]string{
		"key":     "redisson_lock__channel:{trial:key}",
		"{a}key":  "redisson_lock__channel:trial:{a}key",
		"odd{key": "redisson_lock__channel:trial:odd{key",
	} {
		t.Run(key, func(t *testing.T) {
			server := redistest.Start(t)
			outside := server.Client(t)
			p := open(t, server, time.Minute)
			lease := acquire(t, p, key)
			hash, err := outside.HGetAll(t.Context(), "trial:"+key).Result()
			if err != nil {
				t.Fatal(err)
			}
			owner := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`)
			for field, count := range hash {
				if !owner.MatchString(field) || count != "1" {
					t.Errorf("it is held as {%s: %s}", field, count)
				}
			}
			if len(hash) != 1 {
				t.Errorf("the hash has %d fields, want 1", len(hash))
			}
			if ttl, err := outside.PTTL(t.Context(), "trial:"+key).Result(); err != nil || ttl <= 0 || ttl > time.Minute {
				t.Errorf("its PTTL is %v (%v)", ttl, err)
			}
			listener := outside.Subscribe(t.Context(), channel)
			defer func() { _ = listener.Close() }()
			if _, err := listener.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			release(t, lease)
			reply, err := listener.ReceiveTimeout(t.Context(), 20*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if message, ok := reply.(*redis.Message); !ok || message.Payload != "0" {
				t.Errorf("a release published %v, want \"0\"", reply)
			}
		})
	}
}

// A lock held and released by Redisson, which we play by hand.
func TestForeignHolderReleases(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	p := open(t, server, time.Hour)
	outside.HSet(t.Context(), "trial:key", "b983c153-7421-469a-addb-44fb92259a1b:56", 1)
	outside.PExpire(t.Context(), "trial:key", time.Hour)
	leases := make(chan strategies.Lease, 1)
	park(t, 1, leases, p)
	outside.Del(t.Context(), "trial:key")
	outside.Publish(t.Context(), "redisson_lock__channel:{trial:key}", "0")
	release(t, next(t, leases))
}

func TestLostIsTold(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	t.Run("by the watchdog", func(t *testing.T) {
		p := open(t, server, 200*time.Millisecond)
		lease := acquire(t, p, "key")
		lost := lease.(strategies.Watched).Lost()
		outside.Del(t.Context(), "trial:key")
		select {
		case <-lost:
		case <-time.After(20 * time.Second):
			t.Error("the watchdog does not tell that a lease is lost")
		}
	})
	t.Run("by the watchdog, when Redis is silent", func(t *testing.T) {
		server := redistest.Start(t)
		p := open(t, server, 200*time.Millisecond)
		lease := acquire(t, p, "key")
		server.Pause()
		defer server.Resume()
		select {
		case <-lease.(strategies.Watched).Lost():
		case <-time.After(20 * time.Second):
			t.Error("the watchdog does not tell that a lease may have run out")
		}
		if left := time.Until(lease.(strategies.Timed).ValidUntil()); left > 0 {
			t.Errorf("it was told lost %v before it ran out", left)
		}
	})
	t.Run("by Release", func(t *testing.T) {
		p := open(t, server, time.Hour)
		lease := acquire(t, p, "key")
		outside.Del(t.Context(), "trial:key")
		if err := lease.Release(t.Context()); err != strategies.ErrNotHeld {
			t.Errorf("release returned %v, want ErrNotHeld", err)
		}
		select {
		case <-lease.(strategies.Watched).Lost():
		default:
			t.Error("Release found the lease lost and does not tell")
		}
	})
}

// The watchdog renews all leases of a Locker in one round trip.
func TestWatchdogRenewsAllLeases(t *testing.T) {
	const leases = 50
	trial.Calm(t, func(times int) (spoilt string) {
		ttl := time.Duration(times) * 600 * time.Millisecond
		p := open(t, redistest.Start(t), ttl)
		var held []strategies.Lease
		for i := range leases {
			held = append(held, acquire(t, p, string(rune('a'+i))))
		}
		first, last := held[0].(strategies.Timed).ValidUntil(), held[leases-1]
		poll.Until(t, "three renewals", func() bool {
			select {
			case <-last.(strategies.Watched).Lost():
				return true
			default:
				return last.(strategies.Timed).ValidUntil().Sub(first) > ttl
			}
		})
		for i, lease := range held {
			switch err := lease.Release(t.Context()); {
			case errors.Is(err, strategies.ErrNotHeld):
				spoilt = fmt.Sprintf("lease %d was not renewed within %v", i, ttl)
			case err != nil:
				t.Fatal(err)
			}
		}
		return spoilt
	})
}

// answersLate is a hook that holds back the answer to the first pipeline, a renewal's.
type answersLate struct {
	carriedOut, heard, again chan struct{}
	calls                    atomic.Int32
}

func (a *answersLate) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (a *answersLate) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook is a redis.Hook's.
func (a *answersLate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		switch a.calls.Add(1) {
		case 1:
			err := next(ctx, cmds)
			close(a.carriedOut)
			<-a.heard
			return err
		case 2:
			close(a.again)
		}
		return next(ctx, cmds)
	}
}

// A renewal that Redis carried out before Extend says nothing of the lease, however late it is
// answered.
func TestARenewalThatIsAnsweredLate(t *testing.T) {
	t.Parallel()
	const ttl = 1500 * time.Millisecond
	p := open(t, redistest.Start(t), ttl)
	lease := acquire(t, p, "key")
	extend := func(by time.Duration) {
		if err := lease.(strategies.Extender).Extend(t.Context(), by); err != nil {
			t.Error(err)
		}
	}
	extend(time.Minute)
	late := &answersLate{carriedOut: make(chan struct{}), heard: make(chan struct{}), again: make(chan struct{})}
	p.client.AddHook(late)
	<-late.carriedOut
	extend(ttl)
	close(late.heard)
	<-late.again // so the answer has been read
	if left := time.Until(lease.(strategies.Timed).ValidUntil()); left > ttl {
		t.Errorf("extended to %v, it is said to be valid for %v", ttl, left)
	}
	release(t, lease)
}
