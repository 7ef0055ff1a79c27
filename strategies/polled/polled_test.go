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

// The test counts the commands of an acquire and a release without contention. A waiter makes one attempt per try:
// each except the first follows a wake-up, and the last gets the lock.
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

// before calls do once, before the first command of that name is sent. If do fails, neither that command nor
// any later one is sent.
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

// Claims: SETNX without a TTL, and SETNX and then EXPIRE, are not atomic: a crash blocks the lock forever.
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
			// As many tries, a millisecond apart each, as the TTL would have run out in ten times.
			poll.Until(t, "the waiter tries", func() bool { return waiter.Counts().Attempts >= 20 })
			if waiter.Counts().Useful != 0 {
				t.Error("the dead holder's lock was free")
			}
			outside.Del(t.Context(), "trial:key") // the operator
			_ = waiting.Next(t)
		})
	}
}

// Claim: a release without an atomic look whose lock it is deletes somebody else's lock. A GET before it looks at
// what has been lost before, and not at what is lost after it.
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

// A holder of setnx-expire that dies after the PEXPIRE is another matter: its lock runs out.
func TestTTLRecoversADeadHolder(t *testing.T) {
	server := redistest.Start(t)
	held := trial.Start(t, server, "setnx-expire", 50*time.Millisecond).Acquire(t, "key")
	trial.Release(t, trial.Start(t, server, "setnx-expire", time.Minute).Acquire(t, "key"))
	if until := held.(strategies.Timed).ValidUntil(); time.Now().Before(until) {
		t.Error("the lock was free while the dead holder's lease was valid")
	}
}

// An EXPIRE that is refused is no crash: the lock is given back.
func TestFailedExpireGivesTheLockBack(t *testing.T) {
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

func TestTriesEndAnAcquire(t *testing.T) {
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

// The error lists all errors of the config and of the options.
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
