package polled_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

func TestOutages(t *testing.T) {
	trial.Outages(t, "setnx", "setnx-expire", "setnx-expire:check=get", "spin")
}

// The reply to a SET arrives after the lease has ended by the client's clock. TryAcquire must return an error. It must
// also delete the key, which Redis still has, because Redis counts the TTL from the execution of the SET.
func TestLateGrantIsReleased(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	const ttl = 3 * time.Second
	p := trial.Start(t, server, "spin", ttl)
	trial.Release(t, p.Acquire(t, "key")) // opens the connection
	server.Pause()
	resumed := make(chan struct{})
	time.AfterFunc(ttl+100*time.Millisecond, func() { defer close(resumed); server.Resume() })
	_, err := p.Locker.(strategies.Trier).TryAcquire(t.Context(), "key")
	<-resumed
	if err == nil || errors.Is(err, strategies.ErrHeld) {
		t.Errorf("it returned %v, want that the grant came too late", err)
	}
	if n := server.Client(t).Exists(t.Context(), "trial:key").Val(); n != 0 {
		t.Error("the lock stays behind")
	}
}

// If Redis refuses the WAIT after a SET, Acquire must return the error and delete the key.
func TestFailedWaitReleasesLock(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, "spin:wait-replicas=1", time.Minute)
	if err := outside.Do(t.Context(), "ACL", "SETUSER", "default", "-wait").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Locker.Acquire(t.Context(), "key"); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Errorf("acquire returned %v, want NOPERM", err)
	}
	if n := outside.Exists(t.Context(), "trial:key").Val(); n != 0 {
		t.Error("the lock stays behind")
	}
}

// Close must end within 8 s although Redis does not reply and the client has no read timeout.
func TestCloseWithStoppedRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	nodes := []goredis.Node{{Client: redistest.Dial(t, server.URL()+"?read_timeout=-2ns")}}
	p := trial.StartOn(t, nodes, "spin", time.Minute)
	held := p.Acquire(t, "key")
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := held.Release(ctx); err == nil {
		t.Error("released without an answer")
	}
	began := time.Now()
	if err := p.Locker.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A SET reaches Redis half a second after its Acquire has failed and released the key. The lock must delete the key
// again within 20 s.
func TestLateSetIsUndone(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	outside := server.Client(t)
	path := new(netfault.Path)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Dialer: path.Dial, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	p := trial.StartOn(t, []goredis.Node{{Client: client}}, "spin", time.Minute)
	trial.Release(t, p.Acquire(t, "key")) // opens the connection
	kept := path.Hold(netfault.Late, 0)
	over := make(chan error, 1)
	go func() { _, err := p.Locker.Acquire(t.Context(), "key"); over <- err }()
	<-kept.Caught
	late := path.Snap()
	if err := <-over; err == nil {
		t.Fatal("acquired without an answer")
	}
	time.Sleep(500 * time.Millisecond)
	if err := late.Deliver(); err != nil {
		t.Fatal(err)
	}
	delivered := time.Now()
	for outside.Exists(t.Context(), "trial:key").Val() != 0 {
		if time.Since(delivered) > 20*time.Second {
			t.Fatal("the late SET blocks the lock")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
