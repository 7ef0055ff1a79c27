package semaphore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// far opens a process with go-redis's defaults and the ReadTimeout read. The returned path can disturb the network of
// the process.
func far(t *testing.T, server *redistest.Server, read time.Duration, variant string) (trial.Process, *netfault.Path) {
	t.Helper()
	path := &netfault.Path{}
	options := &redis.UniversalOptions{
		Addrs: []string{server.Addr}, Dialer: path.Dial, ReadTimeout: read, DisableIdentity: true,
	}
	client := redis.NewUniversalClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return trial.StartOn(t, []goredis.Node{{Client: client, Options: options}}, variant, time.Minute), path
}

// connect makes the client open six connections, so that later commands do not wait for a handshake.
func connect(t *testing.T, p trial.Process) {
	t.Helper()
	var blocked sync.WaitGroup
	for range 6 {
		blocked.Go(func() { p.Config.Nodes[0].Client.BLPop(t.Context(), time.Second, "none") })
	}
	blocked.Wait()
}

// The reply to the release of a permit without expiry is lost. The release must not be sent again, not even by the
// client's own retries, because Redis could then count the permit as free twice.
func TestPlainReleaseIsSentOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	outside := server.Client(t)
	p, path := far(t, server, 200*time.Millisecond, "semaphore:permits=3")
	lease := p.Acquire(t, "key")
	p.Acquire(t, "key")
	connect(t, p)
	path.Mute()
	if err := lease.Release(t.Context()); err == nil || errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release without an answer returned %v", err)
	}
	path.HangUp()
	time.Sleep(2 * time.Second) // time for a repetition in the background
	if n := outside.Get(t.Context(), "trial:key").Val(); n != "2" {
		t.Errorf("%s of 3 permits are free while one is held", n)
	}
	if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the second release returned %v", err)
	}
}

// Redis grants a permit, but the reply arrives after the caller has given up. The permit must be released exactly once.
func TestLatePermitIsReleased(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	outside := server.Client(t)
	p, path := far(t, server, 10*time.Second, "semaphore:permits=3")
	trial.Release(t, p.Acquire(t, "key"))
	connect(t, p)
	for range 3 {
		path.Stall(true)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if _, err := p.Locker.Acquire(ctx, "key"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an acquire without an answer returned %v", err)
		}
		cancel()
		poll.Until(t, "the permit is granted", func() bool {
			return outside.Get(t.Context(), "trial:key").Val() == "2"
		})
		path.Stall(false)
		poll.Until(t, "the permit is released", func() bool {
			return outside.Get(t.Context(), "trial:key").Val() == "3"
		})
	}
	time.Sleep(time.Second)
	if n := outside.Get(t.Context(), "trial:key").Val(); n != "3" {
		t.Errorf("%s of 3 permits are free", n)
	}
}

// Redis refuses a release several times. Both the holder and the Locker repeat it, but Redis must execute it only once.
func TestRefusedPlainReleaseRunsOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, "semaphore:permits=3", time.Minute)
	lease := p.Acquire(t, "key")
	p.Acquire(t, "key")
	outside.ConfigSet(t.Context(), "min-replicas-to-write", "1")
	for range 5 {
		if err := lease.Release(t.Context()); err == nil || errors.Is(err, strategies.ErrNotHeld) {
			t.Errorf("a refused release returned %v", err)
		}
	}
	outside.ConfigSet(t.Context(), "min-replicas-to-write", "0")
	_ = lease.Release(t.Context()) // unless it was repeated already
	poll.Until(t, "the permit is free", func() bool { return outside.Get(t.Context(), "trial:key").Val() >= "2" })
	time.Sleep(1500 * time.Millisecond)
	if n := outside.Get(t.Context(), "trial:key").Val(); n != "2" {
		t.Errorf("%s of 3 permits are free while one is held", n)
	}
}
