package all_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	_ "github.com/lockbench/lockbench/strategies/all"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/locktest"
)

// What is printed of every strategy must be there to be printed.
func TestEveryStrategyDescribesItself(t *testing.T) {
	for _, s := range strategies.All() {
		info := s.Info
		if info.Summary == "" || strings.Contains(info.Summary, "\n") {
			t.Errorf("%s: its summary is %q, want one line", info.Name, info.Summary)
		}
		if info.Doc == "" {
			t.Errorf("%s: it has no Doc", info.Name)
		}
		if info.Capacity > 0 && !info.Claims.Exclusion && info.Caveat == "" {
			t.Errorf("%s poses as a lock, does not claim exclusion, and does not say why", info.Name)
		}
		for _, limit := range info.Limits {
			named := func(c locktest.Check) bool { return c.Name == limit.Check && c.Inapplicable(info) == "" }
			if !slices.ContainsFunc(locktest.Checks(), named) || limit.Because == "" {
				t.Errorf("%s: no check that applies to it is called %q, or nothing says why it is not passed: %q",
					info.Name, limit.Check, limit.Because)
			}
		}
		for _, option := range s.Options() {
			if option.Help == "" {
				t.Errorf("%s: option %s has no help", info.Name, option.Name)
			}
			// Every default can be written as it is shown.
			if _, err := strategies.NewVariant(info.Name, map[string]string{option.Name: option.Default}); err != nil {
				t.Errorf("%s: its default is refused: %v", info.Name, err)
			}
		}
	}
}

// Redis grants an acquire whose answer is lost, and two answers to what takes it back are lost too: the lock is free
// when the acquire returns, long before its TTL is over.
func TestLostAcquireIsTakenBack(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for _, variant := range strings.Fields(`setnx setnx-expire setnx-expire:check=get spin blpop pubsub
		pubsub-broadcast redisson-spin fenced fair semaphore:permits=1,expirable=true redislock`) {
		t.Run(variant, func(t *testing.T) {
			t.Parallel()
			node, fault := server.Node(t), &refusal{}
			node.Client.AddHook(fault)
			unlucky := trial.StartOn(t, []goredis.Node{node}, variant, time.Hour)
			other := trial.Start(t, server, variant, time.Hour)
			trial.Release(t, unlucky.Acquire(t, variant)) // the scripts are loaded
			fault.left.Store(3)
			if _, err := unlucky.Locker.Acquire(t.Context(), variant); !errors.Is(err, io.EOF) {
				t.Fatalf("an acquire whose answer was lost returned %v", err)
			}
			if left := fault.left.Load(); left >= 0 {
				t.Errorf("%d more answers should have been lost", left)
			}
			tries, ok := strategies.As[strategies.Trier](other.Locker)
			if !ok {
				t.Fatal("it has no try")
			}
			if _, err := tries.TryAcquire(t.Context(), variant); err != nil {
				t.Errorf("the lock that it took is not free: %v", err)
			}
		})
	}
}

// refusal loses the answer to a command, and sends the next ones not at all.
type refusal struct{ left atomic.Int64 }

func (*refusal) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*refusal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (f *refusal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		left := f.left.Add(-1)
		if left < 0 || left == 2 {
			if err := next(ctx, cmd); left < 0 {
				return err
			}
		}
		cmd.SetErr(io.EOF)
		return io.EOF
	}
}
