// Package gate shows that the regression gate fires and does not cry wolf: it has
// builds of lockbench that are worse on purpose, by as much as is asked for.
package gate

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/spin"
)

// Strategy is the name under which Register enters its lock, the same for every
// build, so that builds can be compared.
const Strategy = "injected"

// Fault is what is added to every acquisition of a spin lock.
type Fault struct {
	Delay    time.Duration // with the lock in hand
	Commands int           // PINGs, a round trip each
}

// Register enters spin with that fault into the registry.
func Register(fault Fault) {
	strategies.Register(strategies.Info{
		Name:     Strategy,
		Summary:  "spin, made worse on purpose",
		Claims:   strategies.Claims{Exclusion: true, Recovery: true},
		Capacity: 1,
		Nodes:    1,
	}, struct{}{}, func(c goredis.Config, _ struct{}) (strategies.Locker, error) {
		inner, err := spin.Open(c, spin.Defaults())
		if err != nil {
			return nil, err
		}
		return &locker{Locker: inner, fault: fault, client: c.Nodes[0].Client}, nil
	})
}

type locker struct {
	*spin.Locker
	fault  Fault
	client redis.UniversalClient
}

// Acquire is spin's, and then the fault.
func (l *locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.worsen(l.Locker.Acquire(ctx, key))
}

// TryAcquire is spin's, and then the fault.
func (l *locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.worsen(l.Locker.TryAcquire(ctx, key))
}

func (l *locker) worsen(lease strategies.Lease, err error) (strategies.Lease, error) {
	if err != nil {
		return nil, err
	}
	// With the lock in hand the fault is carried to its end, as a bug would be.
	ctx := context.Background()
	for range l.fault.Commands {
		if err := l.client.Ping(ctx).Err(); err != nil {
			return nil, errors.Join(err, lease.Release(ctx))
		}
	}
	// A sleep would be a millisecond late.
	for begin := time.Now(); time.Since(begin) < l.fault.Delay; {
		runtime.Gosched()
	}
	return lease, nil
}
