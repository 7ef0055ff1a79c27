package gated_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gated"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/peers"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/redisson"
	"github.com/lockbench/lockbench/strategies/semaphore"
)

func init() {
	strategies.RegisterStrategy(append(peers.Strategies(), semaphore.Strategy())...)
	strategies.RegisterStrategy(append(polled.Strategies(), redisson.Strategies()...)...)
	strategies.RegisterWrapper(gated.Wrapper())
}

func TestConformance(t *testing.T) {
	trial.Conform(t, "gated:spin:base=2ms", "gated:redsync:delay=5ms")
}

func TestGatedInfo(t *testing.T) {
	v := trial.Variant(t, "gated:pubsub:watchdog=false")
	info := v.Info()
	if v.Name() != "gated:pubsub:watchdog=false" || info.Name != "gated:pubsub" {
		t.Errorf("it is called %q, its strategy %q", v.Name(), info.Name)
	}
	if want := (strategies.Claims{Exclusion: true, Recovery: true}); info.Claims != want {
		t.Errorf("it claims %v, want %v", info.Claims, want)
	}
	if !trial.Variant(t, "gated:redsync").Info().BlackBox {
		t.Error("a black box is none any more behind a gate")
	}
}

func TestOnlyMutexesCanBeGated(t *testing.T) {
	for list, want := range map[string]string{
		"gated:sipn":                `unknown strategy "gated:sipn"`,
		"gatet:spin":                `unknown strategy "gatet:spin"`,
		"gated":                     `unknown strategy "gated"`,
		"gated:":                    `unknown strategy "gated:"`,
		"gated:semaphore:permits=8": "gated:semaphore: the strategy allows 4 holders at a time",
		"gated:spin:bass=1ms":       `strategy gated:spin: no option "bass"`,
	} {
		_, err := strategies.ParseVariants(list)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want: %s", list, err, want)
		}
	}
}

// While another process holds the lock, a hundred callers wait in one process. Only one of these callers at a time may
// send commands to Redis.
func TestOnlyOneWaiterUsesRedis(t *testing.T) {
	const waiters, tries = 100, 20
	server := redistest.Start(t)
	holder := trial.Start(t, server, "spin", time.Minute)
	p := trial.Start(t, server, "gated:spin:backoff=fixed,base=1ms", time.Minute)
	lease := holder.Acquire(t, "key")
	done := make(chan error)
	for range waiters {
		go func() {
			next, err := p.Locker.Acquire(t.Context(), "key")
			if err == nil {
				err = next.Release(t.Context())
			}
			done <- err
		}()
	}
	poll.Until(t, "some tries", func() bool { return p.Counts().Attempts >= tries })
	trial.Release(t, lease)
	outside := server.Client(t)
	poll.Until(t, "the first is served", func() bool {
		return outside.Exists(t.Context(), "trial:key").Val() == 0 || p.Counts().Useful > 0
	})
	waited := p.Counts().Attempts
	for range waiters {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	// No other process requests the lock any more, so each caller inside the gate takes it at its first try.
	if n := p.Counts().Attempts - waited; n > waiters {
		t.Errorf("%d waiters made %d tries after the first was served", waiters, n)
	}
}

// Twenty callers arrive at the gate one after the other. They must acquire the lock in this order.
func TestLocalWaitersAreServedInOrder(t *testing.T) {
	const waiters = 20
	server := redistest.Start(t)
	p := trial.Start(t, server, "gated:spin", time.Minute)
	lease := p.Acquire(t, "key")
	order := make(chan int, waiters)
	var all sync.WaitGroup
	defer all.Wait()
	for n := range waiters {
		all.Go(func() {
			next, err := p.Locker.Acquire(t.Context(), "key")
			if err != nil {
				t.Error(err)
				order <- -1
				return
			}
			order <- n
			if err := next.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		gated.AwaitUsers(t, p.Locker, "key", n+2)
	}
	trial.Release(t, lease)
	for want := range waiters {
		if got := <-order; got != want {
			t.Fatalf("waiter %d was served when it was %d's turn", got, want)
		}
	}
}
