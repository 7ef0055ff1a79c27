package pubsub_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// owners notes in whose name the acquire script is run. It is a hook of the client.
type owners struct {
	mu    sync.Mutex
	tried []string
}

func (o *owners) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *owners) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (o *owners) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		// EVALSHA sha 1 key lease owner, and for a release the channel
		if args := cmd.Args(); cmd.Name() == "evalsha" && len(args) == 6 {
			o.mu.Lock()
			o.tried = append(o.tried, args[5].(string))
			o.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

// last are those who made the n latest tries.
func (o *owners) last(n int) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.tried[len(o.tried)-n:])
}

// The k-th release wakes the k-th waiter, and whoever it wakes in vain queues
// anew behind the others: nobody starves behind one that is unlucky.
func TestWokenInVainQueuesAnew(t *testing.T) {
	const waiters, rounds = 7, 3
	server := redistest.Start(t)
	outside := server.Client(t)
	hook := &owners{}
	p := open(t, server, time.Hour, func(c goredis.Config) { c.Nodes[0].Client.AddHook(hook) })
	outside.HSet(t.Context(), "trial:key", "somebody:1", 1) // and never lets go
	leases := make(chan strategies.Lease, waiters)
	all := park(t, waiters, leases, p)
	var first []string
	for round := range rounds {
		for range waiters {
			before := p.probe.Counts().Attempts
			outside.Publish(t.Context(), "redisson_lock__channel:{trial:key}", "0")
			poll.Until(t, "one has tried", func() bool { return p.probe.Counts().Attempts == before+1 })
		}
		tried := hook.last(waiters)
		if round == 0 {
			first = tried
			if distinct := slices.Compact(slices.Sorted(slices.Values(tried))); len(distinct) != waiters {
				t.Fatalf("%d messages woke %d of %d waiters", waiters, len(distinct), waiters)
			}
		} else if !slices.Equal(tried, first) {
			t.Errorf("in round %d the waiters were woken as %q, in the first as %q", round, tried, first)
		}
	}
	outside.Del(t.Context(), "trial:key")
	for range waiters {
		outside.Publish(t.Context(), "redisson_lock__channel:{trial:key}", "0")
		release(t, next(t, leases))
	}
	all.Wait()
}

// What a release costs does not grow with the clients, but with the processes: each
// makes one attempt, and whoever arrives two before it parks.
func TestAttemptsARelease(t *testing.T) {
	const processes, clients, turns = 10, 50, 2
	const channel = "redisson_lock__channel:{trial:key}"
	server := redistest.Start(t)
	outside := server.Client(t)
	var all sync.WaitGroup
	var opened []process
	for range processes {
		opened = append(opened, open(t, server, time.Hour))
	}
	// The lock is held until everybody waits.
	holder := open(t, server, time.Hour)
	lease := acquire(t, holder, "key")
	for _, p := range opened {
		for range clients {
			all.Go(func() {
				for range turns {
					lease, err := p.Acquire(t.Context(), "key")
					if err != nil {
						t.Errorf("acquire: %v", err)
						return
					}
					if err := lease.Release(context.Background()); err != nil {
						t.Errorf("release: %v", err)
					}
				}
			})
		}
	}
	poll.Until(t, "all clients wait", func() bool {
		return total(opened).Attempts == 2*processes*clients
	})
	if n := outside.PubSubNumSub(t.Context(), channel).Val()[channel]; n != processes {
		t.Errorf("%d subscriptions for %d waiters in %d processes", n, processes*clients, processes)
	}
	release(t, lease)
	all.Wait()
	const releases = processes * clients * turns
	counts := total(opened)
	t.Logf("%.2f attempts a release", float64(counts.Attempts)/releases)
	if counts.Attempts > releases*(processes+2) {
		t.Errorf("%d attempts for %d releases, want at most %d for each", counts.Attempts, releases, processes+2)
	}
	if counts.Attempts > 2*releases+counts.Useful+counts.Futile {
		t.Errorf("%d attempts, %d more than two for each acquisition and one for each wake-up",
			counts.Attempts, counts.Attempts-2*releases-counts.Useful-counts.Futile)
	}
}
