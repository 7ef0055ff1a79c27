package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/workloads"
)

// meddler is spin, whose victims do something more with the lock in their hands.
type meddler struct {
	polled.SpinLocker
	client          redis.UniversalClient
	acquired, freed func(ctx context.Context, client redis.UniversalClient, key string)
}

type meddled struct {
	strategies.Lease
	freed func()
}

func (m meddler) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	lease, err := m.SpinLocker.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	m.acquired(ctx, m.client, key)
	return meddled{lease, func() { m.freed(ctx, m.client, key) }}, nil
}

func (m meddled) Release(ctx context.Context) error {
	m.freed()
	return m.Lease.Release(ctx)
}

var meddlers atomic.Int64

// meddling registers it, by a name of its own, for one run of the usual three instances;
// every later one is a victim.
func meddling(acquired, freed func(context.Context, redis.UniversalClient, string)) string {
	var opened atomic.Int64
	info := strategies.Info{
		Name: fmt.Sprintf("meddler%d", meddlers.Add(1)), Capacity: 1, Nodes: 1,
		Claims: strategies.Claims{Exclusion: true, Recovery: true},
	}
	strategies.Register(info, struct{}{}, func(c goredis.Config, _ struct{}) (strategies.Locker, error) {
		locker, err := polled.OpenSpin(c, polled.SpinDefaults())
		if err != nil || opened.Add(1) <= 3 {
			return locker, err
		}
		return meddler{locker, c.Nodes[0].Client, acquired, freed}, nil
	})
	return info.Name
}

func nothing(context.Context, redis.UniversalClient, string) {}

// Nobody holds what reaches a process that has died meanwhile.
func TestALeaseOfTheDeadIsNobodys(t *testing.T) {
	t.Parallel()
	chatty := meddling(func(ctx context.Context, client redis.UniversalClient,
		_ string,
	) {
		_ = client.Echo(ctx, "mine").Err()
	}, nothing)
	const ttl = time.Second // no stall of the machine makes the living as late
	run := carriedOut(t, faulty(t, redistest.Start(t), chatty, func(w *workloads.Spec) {
		w.TTL, w.Duration = workloads.Duration(ttl), workloads.Duration(4*time.Second)
	}, "crash-between:at=50ms,command=1"))
	s := only(t, run)
	if s.LateNS > int64(ttl) || s.Overlaps > 0 {
		t.Errorf("the dead still held the lock: %+v", s)
	}
	if s.RecoveryNS == nil || *s.RecoveryNS < int64(ttl/4) {
		t.Errorf("it recovered although the dead had the lock: %+v", s)
	}
}

// A holder to whom nothing happens, because it cannot read the counter, does not write
// it either, and releases.
func TestAHolderThatCannotReadDoesNotWrite(t *testing.T) {
	together(t, []string{"holder-pause:at=100ms,for=1100ms", "holder-crash:at=100ms"}, func(t *testing.T, text string) {
		counter := func(key string) string { return engine.Prefix + key + ":counter" }
		value := ""
		unreadable := meddling(func(ctx context.Context, client redis.UniversalClient, key string) {
			value = client.Get(ctx, counter(key)).Val()
			client.Del(ctx, counter(key))
			client.LPush(ctx, counter(key), "no number")
		}, func(ctx context.Context, client redis.UniversalClient, key string) {
			if client.Type(ctx, counter(key)).Val() == "list" {
				client.Set(ctx, counter(key), value, 0)
			}
		})
		run := carriedOut(t, faulty(t, redistest.Start(t), unreadable, func(w *workloads.Spec) {
			counting(workloads.FenceOff)(w)
			w.TTL = workloads.Duration(time.Second) // nobody else sees the counter before it can be read again
		}, text))
		if f := run.Faults[0]; len(f.Injections) > 0 || len(f.Missed) != 1 {
			t.Errorf("it struck: %+v", f)
		}
		if lost := run.Safety.LostUpdates; lost == nil || *lost > 0 || len(run.Errors) > 0 {
			t.Errorf("lost updates %v, errors %v", lost, run.Errors)
		}
	})
}
