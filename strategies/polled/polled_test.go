package polled_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
	"github.com/lockbench/lockbench/strategies/polled"
)

func init() { strategies.RegisterStrategy(polled.Strategies()...) }

func TestConformance(t *testing.T) {
	for _, variants := range [][]string{
		{"setnx"},
		{"setnx-expire"},
		{"spin", "spin:backoff=none", "spin:backoff=redisson"},
	} {
		trial.Conform(t, variants...)
	}
}

type calls = map[string]int

// An uncontended acquire and release must send exactly the listed commands. Each attempt of a waiter must send one
// command. Each attempt except the first must count as a wake-up, and only the last wake-up as useful.
func TestCommands(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	for variant, want := range map[string]struct {
		acquire, release calls
		attempt          string // the command of each attempt
	}{
		"setnx:delay=1ms": {calls{"setnx": 1}, calls{"get": 1, "del": 1}, "setnx"},
		"setnx-expire:delay=1ms": {
			calls{"setnx": 1, "pexpire": 1}, calls{"evalsha": 1, "get": 1, "del": 1}, "setnx",
		},
		"setnx-expire:check=get":   {calls{"setnx": 1, "pexpire": 1}, calls{"get": 1, "del": 1}, "setnx"},
		"setnx-expire:check=false": {calls{"setnx": 1, "pexpire": 1}, calls{"del": 1}, "setnx"},
		"spin:backoff=fixed,base=2ms": {
			calls{"set": 1}, calls{"evalsha": 1, "get": 1, "del": 1}, "set",
		},
	} {
		t.Run(variant, func(t *testing.T) {
			p := trial.Start(t, server, variant, time.Minute)
			trial.Release(t, p.Acquire(t, "key")) // opens the pool's connection
			var lease strategies.Lease
			if ran := locktest.Calls(t, outside, func() { lease = p.Acquire(t, "key") }); !maps.Equal(ran,
				want.acquire) {
				t.Errorf("an acquire ran %v, want %v", ran, want.acquire)
			}
			if ran := locktest.Calls(t, outside, func() { trial.Release(t, lease) }); !maps.Equal(ran, want.release) {
				t.Errorf("a release ran %v, want %v", ran, want.release)
			}
			lease = p.Acquire(t, "key")
			before := p.Counts()
			ran := locktest.Calls(t, outside, func() {
				waiters := trial.Park(t, 1, p)
				poll.Until(t, "ten tries", func() bool { return p.Counts().Attempts-before.Attempts >= 10 })
				trial.Release(t, lease)
				lease = waiters.Next(t)
			})
			trial.Release(t, lease)
			after := p.Counts()
			attempts := after.Attempts - before.Attempts
			if int64(ran[want.attempt]) != attempts {
				t.Errorf("%d %ss for %d attempts", ran[want.attempt], want.attempt, attempts)
			}
			useful, futile := after.Useful-before.Useful, after.Futile-before.Futile
			if useful != 1 || futile != attempts-2 {
				t.Errorf("%d useful and %d futile wake-ups for %d attempts", useful, futile, attempts)
			}
		})
	}
}

// before is a hook that calls do once, just before the client sends its first command with the given name. If do fails,
// the client sends neither that command nor any later command.
type before struct {
	name string
	do   func() error
	done bool
	err  error
}

func (b *before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (b *before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == b.name && !b.done {
			b.done, b.err = true, b.do()
		}
		if b.err != nil {
			return b.err
		}
		return next(ctx, cmd)
	}
}

// Claims: SETNX sets no TTL, and SETNX and EXPIRE are two commands. If the holder crashes after the SETNX, no other
// client gets the lock until an operator deletes the key.
func TestCrashBlocksForEver(t *testing.T) {
	errDead := errors.New("the process is dead")
	for variant, crash := range map[string]func(t *testing.T, p trial.Process){
		"setnx": func(t *testing.T, p trial.Process) { _ = p.Acquire(t, "key") },
		"setnx-expire": func(t *testing.T, p trial.Process) {
			p.Config.Nodes[0].Client.AddHook(&before{name: "pexpire", do: func() error { return errDead }})
			if _, err := p.Locker.Acquire(t.Context(), "key"); !errors.Is(err, errDead) {
				t.Fatalf("acquire returned %v", err)
			}
		},
	} {
		t.Run(variant, func(t *testing.T) {
			server := redistest.Start(t)
			outside := server.Client(t)
			const ttl = 2 * time.Millisecond
			crash(t, trial.Start(t, server, variant, ttl))
			if left := outside.PTTL(t.Context(), "trial:key").Val(); left != -1 {
				t.Errorf("the PTTL of the lock is %v, want -1: none", left)
			}
			waiter := trial.Start(t, server, variant+":delay=1ms", ttl)
			waiting := trial.Park(t, 1, waiter)
			// Twenty tries, at least 1 ms apart, take more than nine times the TTL of 2 ms, so a key with this TTL would have
			// expired.
			poll.Until(t, "the waiter tries", func() bool { return waiter.Counts().Attempts >= 20 })
			if waiter.Counts().Useful != 0 {
				t.Error("the dead holder's lock was free")
			}
			outside.Del(t.Context(), "trial:key") // the operator
			_ = waiting.Next(t)
		})
	}
}

// Claim: a late release without an atomic check of the owner deletes the lock of the next holder. A GET before the DEL
// detects a lease that was lost before the GET, but not a lease that was lost between the GET and the DEL.
func TestLateRelease(t *testing.T) {
	for _, test := range []struct {
		variant, after string // the lock is lost after that command was sent, or before the release
		deletes        bool
	}{
		{"setnx", "", false},
		{"setnx", "del", true},
		{"setnx-expire", "", false},
		{"setnx-expire:check=get", "", false},
		{"setnx-expire:check=get", "del", true},
		{"setnx-expire:check=false", "", true},
		{"spin", "", false},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			server := redistest.Start(t)
			outside := server.Client(t)
			late, next := trial.Start(t, server, test.variant, time.Minute),
				trial.Start(t, server, test.variant, time.Minute)
			lease := late.Acquire(t, "key")
			var theirs strategies.Lease
			lose := &before{name: test.after, do: func() error {
				defer func() { theirs = next.Acquire(t, "key") }()
				return outside.Del(t.Context(), "trial:key").Err()
			}}
			if test.after == "" {
				if err := lose.do(); err != nil {
					t.Fatal(err)
				}
			} else {
				late.Config.Nodes[0].Client.AddHook(lose)
			}
			err := lease.Release(t.Context())
			if test.deletes && err != nil {
				t.Errorf("the late release noticed something: %v", err)
			}
			if !test.deletes && !errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("the late release returned %v, want ErrNotHeld", err)
			}
			if theirs == nil {
				t.Fatal("no client took the lock in between")
			}
			if err := theirs.Release(t.Context()); errors.Is(err, strategies.ErrNotHeld) != test.deletes {
				t.Errorf("the next holder's release returned %v", err)
			}
		})
	}
}

// A holder of setnx-expire dies after the PEXPIRE. Another client must get the lock, but not before the dead holder's
// lease has ended.
func TestTTLRecoversADeadHolder(t *testing.T) {
	server := redistest.Start(t)
	held := trial.Start(t, server, "setnx-expire", 50*time.Millisecond).Acquire(t, "key")
	trial.Release(t, trial.Start(t, server, "setnx-expire", time.Minute).Acquire(t, "key"))
	if until := held.(strategies.Timed).ValidUntil(); time.Now().Before(until) {
		t.Error("the lock was free while the dead holder's lease was valid")
	}
}

// If Redis refuses the PEXPIRE, Acquire must return the error and delete the key.
func TestFailedExpireReleasesLock(t *testing.T) {
	server := redistest.Start(t)
	outside := server.Client(t)
	p := trial.Start(t, server, "setnx-expire", time.Minute)
	if err := outside.Do(t.Context(), "ACL", "SETUSER", "default", "-pexpire").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Locker.Acquire(t.Context(), "key"); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Fatalf("acquire returned %v, want NOPERM", err)
	}
	if n := outside.Exists(t.Context(), "trial:key").Val(); n != 0 {
		t.Error("the lock stays behind")
	}
}

func TestClaimsFollowTheOptions(t *testing.T) {
	for name, exclusion := range map[string]bool{
		"setnx-expire": true, "setnx-expire:check=get": false, "setnx-expire:check=false": false,
	} {
		info := trial.Variant(t, name).Info()
		if info.Claims.Exclusion != exclusion || info.Claims.Recovery || info.Caveat == "" {
			t.Errorf("%s claims %v, caveat %q", name, info.Claims, info.Caveat)
		}
	}
}

func TestAcquireEndsAfterTries(t *testing.T) {
	server := redistest.Start(t)
	_ = trial.Start(t, server, "spin", time.Minute).Acquire(t, "key")
	p := trial.Start(t, server, "spin:tries=3,cap=1ms", time.Minute)
	if _, err := p.Locker.Acquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("after three tries: %v", err)
	}
	if n := p.Counts().Attempts; n != 3 {
		t.Errorf("it made %d tries", n)
	}
}

// The error of each Open function must name every fault in the config and in the options.
func TestOpenNamesEveryFault(t *testing.T) {
	_, err := polled.OpenSpin(goredis.Config{}, polled.SpinOptions{Backoff: "linear"})
	for _, want := range []string{"spin: ", "nodes", "TTL", `"linear"`, "base", "cap"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	for _, strategy := range []string{"setnx", "setnx-expire"} {
		_, err := strategies.NewVariant(strategy, map[string]string{"delay": "0s"})
		if err == nil || !strings.Contains(err.Error(), "delay must be positive") {
			t.Errorf("%s: a delay of 0 was met with %v", strategy, err)
		}
	}
}

func TestWaitReplicas(t *testing.T) {
	top := redistest.StartTopology(t, "replicas:2")
	nodes := top.Nodes(t)
	with := func(options string) strategies.Locker {
		variant := "spin:wait-timeout=20ms,wait-replicas=" + options
		return trial.StartOn(t, nodes, variant, time.Minute).Locker
	}
	cycle := func(l strategies.Locker) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		lease, err := l.Acquire(ctx, "key")
		if err != nil {
			return err
		}
		return lease.Release(ctx)
	}
	if err := cycle(with("2")); err != nil {
		t.Fatalf("with both replicas there: %v", err)
	}
	top.Pause(2)
	for _, options := range []string{"1", "2,wait-anyway=true"} {
		if err := cycle(with(options)); err != nil {
			t.Errorf("with one of two replicas there, wait-replicas=%s: %v", options, err)
		}
	}
	if _, err := with("2").(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("with one of two replicas there, two asked for: %v", err)
	}
	if n := nodes[0].Client.Exists(t.Context(), "trial:key").Val(); n != 0 {
		t.Error("the lock was not given back")
	}
	top.Resume(2)
	if err := cycle(with("2")); err != nil {
		t.Errorf("with both replicas there again: %v", err)
	}
}
