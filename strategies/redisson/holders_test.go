package redisson_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

// An owner holds the lock several times. A call for one hold must not shorten or end another hold, even if the call is
// sent twice, arrives late or gets no reply.
func TestHolds(t *testing.T) {
	for name, check := range map[string]func(*testing.T, string){
		"sent twice":    holdsSentTwice,
		"not shortened": holdsNotShortened,
		"released late": releasedLate,
	} {
		for _, kind := range []string{"redisson-spin", "pubsub", "fair", "fenced"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				check(t, kind+":watchdog=false")
			})
		}
	}
}

// answers is a hook for scripts. Depending on mode, it sends a script twice, drops its reply, or executes it late.
type answers struct {
	mode atomic.Int32
	late chan func() // executes the held-back commands
}

const (
	asTheyCome int32 = iota
	twice            // each is sent twice, as by a client that retries after a lost answer
	unheard          // each is executed, and its answer is lost
	heldBack         // each is executed later, and its answer is lost
)

func (a *answers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *answers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *answers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		mode := a.mode.Load()
		if mode == twice && cmd.NoRetry() {
			mode = asTheyCome
		}
		if name := cmd.Name(); mode == asTheyCome || name != "eval" && name != "evalsha" {
			return next(ctx, cmd)
		}
		if mode == heldBack {
			a.late <- func() { _ = next(context.WithoutCancel(ctx), redis.NewCmd(ctx, cmd.Args()...)) }
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		_ = next(ctx, cmd) // the answer is dropped
		if mode == unheard {
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		cmd.SetErr(nil)
		return next(ctx, cmd)
	}
}

func hooked(t *testing.T, server *redistest.Server, variant string) (trial.Process, *answers) {
	t.Helper()
	p, a := trial.Start(t, server, variant, time.Minute), &answers{late: make(chan func(), 1)}
	p.Config.Nodes[0].Client.AddHook(a)
	return p, a
}

// asMe acquires the lock "key" for the owner "me", who may already hold it.
func asMe(t *testing.T, p trial.Process) strategies.Lease {
	t.Helper()
	lease, err := p.Locker.(strategies.Reentrant).AcquireAs(t.Context(), "key", "me")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// holdsNotShortened extends the first of two holds of one owner to a minute. More than 30 s must be left after each
// call for the second hold, and after a shorter extension of the first that gets no reply.
func holdsNotShortened(t *testing.T, variant string) {
	server := redistest.Start(t)
	p, a := hooked(t, server, variant)
	outer := asMe(t, p)
	if err := outer.(strategies.Extender).Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	after := func(what string) {
		for _, key := range server.Client(t).Keys(t.Context(), "*trial:key*").Val() {
			if left := server.Client(t).PTTL(t.Context(), key).Val(); left > 0 && left < 30*time.Second {
				t.Errorf("after %s %s has %v left", what, key, left)
			}
		}
		if left := time.Until(outer.(strategies.Timed).ValidUntil()); left < 30*time.Second {
			t.Errorf("after %s the outer lease says it has %v left", what, left)
		}
	}
	after("Extend")
	inner := asMe(t, p)
	after("a second hold")
	if err := inner.(strategies.Extender).Extend(t.Context(), 10*time.Second); err != nil {
		t.Error(err)
	}
	after("the second hold's Extend")
	a.mode.Store(unheard)
	if err := outer.(strategies.Extender).Extend(t.Context(), time.Second); err == nil {
		t.Error("an Extend without an answer returned nil")
	}
	a.mode.Store(asTheyCome)
	after("an Extend by a second without an answer")
	trial.Release(t, inner)
	after("the second hold's release")
	trial.Release(t, outer)
}

// holdsSentTwice acquires a lock twice for one owner. After the first release the owner must still hold the lock, and
// after the second the lock must be free. In each subtest the client sends one of these commands twice, as after a lost
// reply.
func holdsSentTwice(t *testing.T, variant string) {
	for what, at := range map[string]int{"the acquire": 1, "the release": 2} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p, a := hooked(t, server, variant)
			other := trial.Start(t, server, variant, time.Minute)
			again := func(step int) {
				a.mode.Store(asTheyCome)
				if step == at {
					a.mode.Store(twice)
				}
			}
			outer := asMe(t, p)
			again(1)
			inner := asMe(t, p)
			again(2)
			trial.Release(t, inner)
			again(3)
			if err := inner.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("released a second time, the inner lease returned %v, want ErrNotHeld", err)
			}
			if lease, err := other.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err,
				strategies.ErrHeld) {
				t.Errorf("after one of two releases another process gets %v, %v", lease, err)
			}
			trial.Release(t, outer)
			if _, err := other.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); err != nil {
				t.Errorf("after both releases another process gets %v", err)
			}
		})
	}
}

// releasedLate checks that a release that reaches Redis late does not free the lock after its owner has acquired it
// again.
func releasedLate(t *testing.T, variant string) {
	server := redistest.Start(t)
	p, a := hooked(t, server, variant)
	other := trial.Start(t, server, variant, time.Minute)
	first := asMe(t, p)
	a.mode.Store(heldBack)
	if err := first.Release(t.Context()); err == nil || errors.Is(err, strategies.ErrNotHeld) {
		t.Fatalf("the release without an answer returned %v", err)
	}
	a.mode.Store(asTheyCome)
	tried, got := p.Counts().Attempts, make(chan strategies.Lease, 1)
	go func() {
		defer close(got)
		if lease, err := p.Locker.(strategies.Reentrant).AcquireAs(t.Context(), "key", "me"); err != nil {
			t.Error(err)
		} else {
			got <- lease
		}
	}()
	poll.Until(t, "the owner tries again", func() bool { return p.Counts().Attempts > tried })
	(<-a.late)()
	second, acquired := <-got
	if !acquired {
		return
	}
	if lease, err := other.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err,
		strategies.ErrHeld) {
		t.Errorf("after the late release another process gets %v, %v", lease, err)
	}
	trial.Release(t, second)
}
