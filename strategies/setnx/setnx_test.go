package setnx_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/setnx"
)

func init() { strategies.RegisterStrategy(setnx.Strategy()) }

func TestConformance(t *testing.T) { trial.Conform(t, "setnx") }

func open(t testing.TB, config goredis.Config) *setnx.Locker {
	t.Helper()
	locker, err := setnx.Open(config, setnx.Options{Delay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	return locker
}

func acquire(t testing.TB, locker *setnx.Locker) strategies.Lease {
	t.Helper()
	lease, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	locker := open(t, trial.Config(t, server))
	if err := acquire(t, locker).Release(t.Context()); err != nil { // opens the pool's connection
		t.Fatal(err)
	}
	outside := server.Client(t)
	var lease strategies.Lease
	acquired := locktest.Calls(t, outside, func() { lease = acquire(t, locker) })
	if want := map[string]int{"setnx": 1}; !maps.Equal(acquired, want) {
		t.Errorf("an acquire ran %v, want %v", acquired, want)
	}
	released := locktest.Calls(t, outside, func() {
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if want := map[string]int{"get": 1, "del": 1}; !maps.Equal(released, want) {
		t.Errorf("a release ran %v, want %v", released, want)
	}
}

// Claim: SETNX without expiry, a crashed holder blocks the lock for ever.
func TestDeadHolderBlocksForEver(t *testing.T) {
	server := redistest.Start(t)
	dead := trial.Config(t, server)
	dead.TTL = 2 * time.Millisecond
	holder := open(t, dead)
	acquire(t, holder)
	_ = holder.Close()

	outside := server.Client(t)
	if ttl := outside.PTTL(t.Context(), "trial:key").Val(); ttl != -1 {
		t.Errorf("the PTTL of the lock is %v, want -1: none", ttl)
	}
	alive := trial.Config(t, server)
	alive.TTL = dead.TTL
	waiter := open(t, alive)
	var done sync.WaitGroup
	done.Go(func() {
		if _, err := waiter.Acquire(t.Context(), "key"); err != nil {
			t.Errorf("acquire: %v", err)
		}
	})
	// As many tries, a millisecond apart each, as the TTL would have run out in ten times.
	poll.Until(t, "the waiter tries", func() bool { return alive.Probe.Counts().Attempts >= 20 })
	if got := alive.Probe.Counts().Useful; got != 0 {
		t.Error("the dead holder's lock was free")
	}
	if err := outside.Del(t.Context(), "trial:key").Err(); err != nil { // the operator
		t.Fatal(err)
	}
	done.Wait()
	counts := alive.Probe.Counts()
	if counts.Useful != 1 || counts.Futile != counts.Attempts-2 {
		t.Errorf("counted %+v, want each attempt but the first after a wake-up, the last one useful", counts)
	}
}

// before calls do once, right before the client sends a command of that name.
type before struct {
	redis.Hook
	name string
	do   func()
	once sync.Once
}

func (b *before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == b.name {
			b.once.Do(b.do)
		}
		return next(ctx, cmd)
	}
}

// Claim: releasing without an atomic owner check deletes somebody else's lock.
func TestReleaseDeletesSomebodyElsesLock(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	config := trial.Config(t, server)
	slow, next, third := open(t, config), open(t, trial.Config(t, server)), open(t, trial.Config(t, server))
	lease := acquire(t, slow)
	var theirs strategies.Lease
	config.Nodes[0].Client.AddHook(&before{name: "del", do: func() {
		// GET has said that the lock is ours. Somebody removes it, somebody takes it.
		if err := outside.Del(t.Context(), "trial:key").Err(); err != nil {
			t.Error(err)
		}
		theirs = acquire(t, next)
	}})
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("the release noticed something: %v", err)
	}
	if theirs == nil {
		t.Fatal("nothing came between GET and DEL")
	}
	acquire(t, third) // while the next holder believes that it holds
	if err := theirs.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the next holder's release returned %v, want ErrNotHeld: its lock was deleted", err)
	}
}

func TestLateReleaseHarmsNobodyWhoCameBeforeIt(t *testing.T) {
	server := redistest.Start(t)
	first, next := open(t, trial.Config(t, server)), open(t, trial.Config(t, server))
	lease := acquire(t, first)
	if err := server.Client(t).Del(t.Context(), "trial:key").Err(); err != nil {
		t.Fatal(err)
	}
	theirs := acquire(t, next)
	if err := lease.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a release of a lock lost returned %v, want ErrNotHeld", err)
	}
	if err := theirs.Release(t.Context()); err != nil {
		t.Errorf("the other holder's release returned %v", err)
	}
}

func TestDelayMustBePositive(t *testing.T) {
	_, err := strategies.NewVariant("setnx", map[string]string{"delay": "0s"})
	if err == nil || !strings.Contains(err.Error(), "delay") {
		t.Errorf("a delay of 0 was met with %v", err)
	}
}
