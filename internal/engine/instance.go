package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// instance is one application instance with its own connections and Locker.
type instance struct {
	strategy strategies.Variant // the run's strategy, or one part of a mixed strategy

	store    store.Instance // nil for an in-process strategy
	hub      store.Instance // connection to Job.Hub; nil if that is nil
	counters store.Counting // store or hub; nil without --work counter, and for a driver
	closed   bool           // the connections to the store are closed
	locker   strategies.Locker
	atomic   strategies.Incrementer // nil for a lock
	probe    *strategies.Probe

	flights singleflight.Group // shared acquisitions, with --coalesce
}

// open connects all instances of the run, opens their Lockers, and prepares the Lockers.
func (r *run) open(ctx context.Context) error {
	for number := range r.Workload.Instances {
		i := &instance{strategy: r.Strategy.Part(number), probe: &strategies.Probe{}}
		r.instances = append(r.instances, i)
		if r.remote() {
			pool := r.Workload.PoolSize()
			if i.strategy.Info().Driver {
				pool = 1 // needed only for the addresses: the driver has its own connections
			}
			if err := r.connect(ctx, i, pool, r.detour(number), r.sockets.Through); err != nil {
				return fmt.Errorf("connect for %s: %w", r.Strategy.Name(), err)
			}
		}
		if err := r.openLocker(i); err != nil {
			return err
		}
	}
	for _, i := range r.instances { // only when all Lockers are open
		if err := r.prepare(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// connect connects an instance to the store of the locks and, if Job.Hub is set, to the Hub.
func (r *run) connect(ctx context.Context, i *instance, pool int, toLocks, toHub store.Through) (err error) {
	if i.store, err = r.Target.Connect(ctx, r.name, pool, toLocks); err != nil {
		return err
	}
	counts := r.Workload.Work == workloads.WorkCounter
	counting := i.store
	if r.Hub != nil {
		if !counts {
			pool = 1 // needed only for its CLIENT name, which shows that the process takes part
		}
		if i.hub, err = r.Hub.Connect(ctx, r.name, pool, toHub); err != nil {
			return fmt.Errorf("connect to the Redis that the clients share: %w", err)
		}
		counting = i.hub
	}
	if !counts {
		return nil
	}
	var ok bool
	if i.counters, ok = counting.(store.Counting); !ok {
		return errors.New("the store of the locks has no counters, and the run has no other Redis for them")
	}
	return nil
}

// hangUp closes all connections of the instance.
func (i *instance) hangUp() error {
	var problems []error
	for _, s := range []store.Instance{i.store, i.hub} {
		if s != nil {
			problems = append(problems, s.Close())
		}
	}
	return errors.Join(problems...)
}

// detour returns a wrapper for the dialer of an instance's connections. If the workload has network faults, the wrapper
// routes the connections through the instance's proxies.
func (r *run) detour(instance int) store.Through {
	if r.Faults == nil {
		return r.sockets.Through
	}
	detour := r.Faults.Detour(instance)
	if detour == nil {
		return r.sockets.Through
	}
	return func(dial store.Dialer) store.Dialer { return r.sockets.Through(detour(dial)) }
}

func (r *run) openLocker(i *instance) error {
	var nodes []any
	if i.store != nil {
		nodes = i.store.Nodes()
	}
	locker, err := i.strategy.Open(strategies.Config{
		Nodes:   nodes,
		Prefix:  Prefix,
		TTL:     time.Duration(r.Workload.TTL),
		Callers: r.Workload.ClientsPerInstance(),
		Probe:   i.probe,
	})
	if err != nil {
		return err
	}
	i.locker = locker
	if timeout := r.Workload.Timeout; timeout != nil && *timeout == 0 && !i.strategy.Info().Driver {
		if _, ok := strategies.As[strategies.Trier](locker); !ok {
			return errNoTryLock
		}
	}
	if i.atomic, _ = strategies.As[strategies.Incrementer](locker); i.atomic != nil &&
		r.Workload.Work != workloads.WorkCounter {
		return fmt.Errorf("%w: the strategy is not a lock and runs only with --work counter", ErrUnsupported)
	}
	if i.atomic != nil && r.Hub != nil {
		return fmt.Errorf("%w: --counter apart needs a lock, but the strategy is a counter in its own store",
			ErrUnsupported)
	}
	if i.atomic != nil && slices.ContainsFunc(r.Workload.Faults,
		func(f workloads.Fault) bool { return f.Kind().Place == workloads.InClients }) {
		return fmt.Errorf("%w: the strategy is not a lock, so it has no holder for a fault", ErrUnsupported)
	}
	if i.strategy.Info().Driver && i.store != nil {
		if err := i.hangUp(); err != nil {
			return fmt.Errorf("close connections: %w", err)
		}
		i.store, i.hub, i.counters = nil, nil, nil
	}
	return nil
}

// prepare lets a strategy set up what it needs before the first Acquire, such as subscriptions.
func (r *run) prepare(ctx context.Context, i *instance) error {
	if p, ok := strategies.As[strategies.Preparer](i.locker); ok {
		switch err := p.Prepare(ctx, r.keys); {
		case errors.Is(err, errors.ErrUnsupported):
			return err
		case err != nil:
			return fmt.Errorf("prepare %s: %w", r.Strategy.Name(), err)
		}
	}
	return nil
}

// closeLockers closes all Lockers concurrently, because each Close may take long if no server replies.
func (r *run) closeLockers() {
	var closing sync.WaitGroup
	for _, i := range r.instances {
		if _, driver := i.locker.(Driver); i.locker == nil || len(r.hung) > 0 && !driver {
			continue // a hung client may still use it
		}
		closing.Go(func() {
			if err := i.locker.Close(); err != nil {
				r.errors.add(fmt.Errorf("close %s: %w", r.Strategy.Name(), err))
			}
			i.locker = nil
		})
	}
	closing.Wait()
}

// closeNodes closes the command connections of all instances.
func (r *run) closeNodes() {
	for _, i := range r.instances {
		if i.closed || i.store == nil {
			continue
		}
		if err := i.hangUp(); err != nil {
			r.errors.add(fmt.Errorf("close connections: %w", err))
		}
		i.closed = true
	}
}

func (r *run) close() {
	r.closeRows()
	r.closeLockers()
	r.closeNodes()
}
