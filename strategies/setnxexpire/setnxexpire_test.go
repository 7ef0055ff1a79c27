package setnxexpire_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/setnxexpire"
)

func init() { strategies.RegisterStrategy(setnxexpire.Strategy()) }

func TestConformance(t *testing.T) { trial.Conform(t, "setnx-expire") }

func open(t testing.TB, config goredis.Config, change ...func(*setnxexpire.Options)) *setnxexpire.Locker {
	t.Helper()
	options := setnxexpire.Defaults()
	options.Delay = time.Millisecond
	for _, change := range change {
		change(&options)
	}
	locker, err := setnxexpire.Open(config, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	if err := locker.Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return locker
}

func unchecked(o *setnxexpire.Options) { o.Check = setnxexpire.Never }

func separately(o *setnxexpire.Options) { o.Check = setnxexpire.Separate }

func acquire(t testing.TB, locker *setnxexpire.Locker) strategies.Lease {
	t.Helper()
	lease, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestUncontendedCommands(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	for name, test := range map[string]struct {
		change  func(*setnxexpire.Options)
		release map[string]int
	}{
		"checked":   {func(*setnxexpire.Options) {}, map[string]int{"evalsha": 1, "get": 1, "del": 1}},
		"unchecked": {unchecked, map[string]int{"del": 1}},
		"separate":  {separately, map[string]int{"get": 1, "del": 1}},
	} {
		locker := open(t, trial.Config(t, server), test.change)
		var lease strategies.Lease
		acquired := locktest.Calls(t, outside, func() { lease = acquire(t, locker) })
		if want := map[string]int{"setnx": 1, "pexpire": 1}; !maps.Equal(acquired, want) {
			t.Errorf("%s: an acquire ran %v, want %v", name, acquired, want)
		}
		released := locktest.Calls(t, outside, func() {
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if !maps.Equal(released, test.release) {
			t.Errorf("%s: a release ran %v, want %v", name, released, test.release)
		}
	}
}

// dies is a process that dies instead of sending a command of that name.
type dies struct {
	redis.Hook
	before string
	dead   atomic.Bool
}

var errDead = errors.New("the process is dead")

func (d *dies) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *dies) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d *dies) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == d.before {
			d.dead.Store(true)
		}
		if d.dead.Load() {
			return errDead
		}
		return next(ctx, cmd)
	}
}

// blocked checks that the lock has no TTL and that nobody gets it, however often
// they try.
func blocked(t *testing.T, server *redistest.Server) {
	t.Helper()
	if ttl := server.Client(t).PTTL(t.Context(), "trial:key").Val(); ttl != -1 {
		t.Errorf("the PTTL of the lock is %v, want -1: none", ttl)
	}
	config := trial.Config(t, server)
	waiter := open(t, config)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := waiter.Acquire(ctx, "key")
		done <- err
	}()
	poll.Until(t, "the waiter tries", func() bool { return config.Probe.Counts().Attempts >= 20 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the waiter got %v", err)
	}
}

// Claim: SETNX then EXPIRE is not atomic, a crash in between blocks for ever.
func TestCrashBetweenTheTwoBlocksForEver(t *testing.T) {
	server := redistest.Start(t)
	config := trial.Config(t, server)
	config.TTL = 2 * time.Millisecond
	locker := open(t, config)
	config.Nodes[0].Client.AddHook(&dies{before: "pexpire"})
	if _, err := locker.Acquire(t.Context(), "key"); !errors.Is(err, errDead) {
		t.Fatalf("acquire returned %v", err)
	}
	blocked(t, server)
}

// A holder that dies later is another matter.
func TestTTLRecoversADeadHolder(t *testing.T) {
	server := redistest.Start(t)
	config := trial.Config(t, server)
	config.TTL = 50 * time.Millisecond
	held := acquire(t, open(t, config))
	theirs := acquire(t, open(t, trial.Config(t, server)))
	if until := held.(strategies.Timed).ValidUntil(); time.Now().Before(until) {
		t.Error("the lock was free while the dead holder's lease was valid")
	}
	if err := held.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("a late release returned %v, want ErrNotHeld", err)
	}
	if err := theirs.Release(t.Context()); err != nil {
		t.Errorf("the next holder's release returned %v", err)
	}
}

// An EXPIRE that is refused is no crash: the lock is given back.
func TestFailedExpireGivesTheLockBack(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	locker := open(t, trial.Config(t, server))
	if err := outside.Do(t.Context(), "ACL", "SETUSER", "default", "-pexpire").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := locker.Acquire(t.Context(), "key"); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Fatalf("acquire returned %v, want NOPERM", err)
	}
	if n := outside.Exists(t.Context(), "trial:key").Val(); n != 0 {
		t.Error("the lock stays behind")
	}
}

// Claim: releasing without an owner check deletes somebody else's lock.
func TestUncheckedLateReleaseDeletesSomebodyElsesLock(t *testing.T) {
	server := redistest.Start(t)
	config := trial.Config(t, server)
	config.TTL = 20 * time.Millisecond
	late := acquire(t, open(t, config, unchecked))
	theirs := acquire(t, open(t, trial.Config(t, server))) // once the first has run out
	if err := late.Release(t.Context()); err != nil {
		t.Errorf("the late release noticed something: %v", err)
	}
	acquire(t, open(t, trial.Config(t, server))) // while the second lease is valid
	if until := theirs.(strategies.Timed).ValidUntil(); !time.Now().Before(until) {
		t.Error("the second lease had run out by itself")
	}
	if err := theirs.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the second holder's release returned %v, want ErrNotHeld", err)
	}
}

func TestClaimsFollowTheOptions(t *testing.T) {
	for name, exclusion := range map[string]bool{"setnx-expire": true, "setnx-expire:check=get": false, "setnx-expire:check=false": false} {
		info := trial.Variant(t, name).Info()
		if info.Claims.Exclusion != exclusion || info.Claims.Recovery || info.Caveat == "" {
			t.Errorf("%s claims %v, caveat %q", name, info.Claims, info.Caveat)
		}
	}
	_, err := strategies.NewVariant("setnx-expire", map[string]string{"delay": "-1ms"})
	if err == nil || !strings.Contains(err.Error(), "delay") {
		t.Errorf("a negative delay was met with %v", err)
	}
}

// What is looked at by one command may be somebody else's at the next.
func TestReleaseInTwoCommandsDeletesSomebodyElsesLock(t *testing.T) {
	server := redistest.Start(t)
	config := trial.Config(t, server)
	outside := server.Client(t)
	late := acquire(t, open(t, config, separately))
	config.Nodes[0].Client.AddHook(between{before: "del", do: func(ctx context.Context) {
		outside.Set(ctx, "trial:key", "another", time.Minute)
	}})
	if err := late.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := outside.Exists(t.Context(), "trial:key").Val(); n != 0 {
		t.Error("the other's lock is still there: it was looked at and deleted in one step")
	}
}

// Who finds that it is another's leaves it alone.
func TestReleaseInTwoCommandsLooks(t *testing.T) {
	server := redistest.Start(t)
	late := acquire(t, open(t, trial.Config(t, server), separately))
	outside := server.Client(t)
	outside.Set(t.Context(), "trial:key", "another", time.Minute)
	if err := late.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("release of another's lock: %v", err)
	}
	if n := outside.Exists(t.Context(), "trial:key").Val(); n != 1 {
		t.Error("another's lock was deleted")
	}
}

// between does something before a command is sent.
type between struct {
	before string
	do     func(context.Context)
}

func (b between) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == b.before {
			b.do(ctx)
		}
		return next(ctx, cmd)
	}
}
