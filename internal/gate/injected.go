// Package gate tests the regression gate for missed regressions and false alarms. It
// makes builds of lockbench worse on purpose, by a chosen amount.
package gate

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/polled"
)

// Strategy is the name of the lock that Register registers. It is the same in every build, so that reports of several
// builds can be compared.
const Strategy = "injected"

// Fault is the extra cost of every acquisition of a spin lock.
type Fault struct {
	Delay    time.Duration // busy-waiting while the lock is held
	Commands int           // PINGs, one round trip each
}

// Register registers a spin lock with the given fault.
func Register(fault Fault) {
	strategies.Register(strategies.Info{
		Name:     Strategy,
		Summary:  "spin, made worse on purpose",
		Claims:   strategies.Claims{Exclusion: true, Recovery: true},
		Capacity: 1,
		Nodes:    1,
	}, struct{}{}, func(c goredis.Config, _ struct{}) (strategies.Locker, error) {
		inner, err := polled.OpenSpin(c, polled.SpinDefaults())
		if err != nil {
			return nil, err
		}
		return &locker{SpinLocker: inner, fault: fault, client: c.Nodes[0].Client}, nil
	})
}

type locker struct {
	polled.SpinLocker
	fault  Fault
	client redis.UniversalClient
}

// Acquire acquires the spin lock, and then causes the extra cost of the fault.
func (l *locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.worsen(l.SpinLocker.Acquire(ctx, key))
}

// TryAcquire acquires the spin lock without waiting, and then causes the extra cost of the fault.
func (l *locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.worsen(l.SpinLocker.TryAcquire(ctx, key))
}

func (l *locker) worsen(lease strategies.Lease, err error) (strategies.Lease, error) {
	if err != nil {
		return nil, err
	}
	// Once the lock is held, the fault ignores the caller's context, as a bug would.
	ctx := context.Background()
	for range l.fault.Commands {
		if err := l.client.Ping(ctx).Err(); err != nil {
			return nil, errors.Join(err, lease.Release(ctx))
		}
	}
	// Busy-wait, because a sleep could end a millisecond late.
	for begin := time.Now(); time.Since(begin) < l.fault.Delay; {
		runtime.Gosched()
	}
	return lease, nil
}
