package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/workloads"
)

// chatty is the lock spin, but each client sends an ECHO right after it has acquired the lock.
type chatty struct {
	polled.SpinLocker
	client redis.UniversalClient
}

func (c chatty) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	lease, err := c.SpinLocker.Acquire(ctx, key)
	if err == nil {
		_ = c.client.Echo(ctx, "mine").Err()
	}
	return lease, err
}

// A fault kills a client during Acquire, after its SET and before its ECHO. Redis grants the lease, but no client may
// count as its holder.
func TestLeaseAfterDeathHasNoHolder(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64 // the first three are the workload's instances, and later ones are targets of faults
	info := strategies.Info{
		Name: "chatty", Capacity: 1, Nodes: 1, Claims: strategies.Claims{Exclusion: true, Recovery: true},
	}
	lock := strategies.Unlisted(info, func(c goredis.Config) (strategies.Locker, error) {
		locker, err := polled.OpenSpin(c, polled.SpinDefaults())
		if err != nil || opened.Add(1) <= 3 {
			return locker, err
		}
		return chatty{locker, c.Nodes[0].Client}, nil
	})
	const ttl = time.Second // longer than any delay of a live client by a stall of the machine
	j := faulty(t, redistest.Start(t), "spin", func(w *workloads.Spec) {
		w.TTL, w.Duration = workloads.Duration(ttl), workloads.Duration(4*time.Second)
	}, "crash-between:at=50ms,command=1")
	j.Strategy = lock
	run := carriedOut(t, j)
	s := only(t, run)
	if s.LateNS > int64(ttl) || s.Overlaps > 0 {
		t.Errorf("the dead still held the lock: %+v", s)
	}
	if s.RecoveryNS == nil || *s.RecoveryNS < int64(ttl/4) {
		t.Errorf("it recovered although the dead had the lock: %+v", s)
	}
}
