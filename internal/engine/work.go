package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// counterOf is the counter that a key's lock protects.
func counterOf(key string) string { return Prefix + key + ":counter" }

// work is what a holder does: hold until an instant, and with a counter read it
// before and write it back one higher after.
func (c *client) work(key int, until int64, lease strategies.Lease) error {
	switch c.run.Workload.Work {
	case workloads.WorkCounter:
		return c.count(key, until, lease)
	case workloads.WorkSpin:
		for c.run.clock.Now() < until && !c.run.control.stopping.Load() {
		}
	default:
		c.hold(until)
	}
	return nil
}

// hold waits until an instant or until the run is over.
func (c *client) hold(until int64) {
	if !c.run.Workload.Hold.IsZero() {
		c.sleep(time.Duration(until - c.run.clock.Now()))
	}
}

func (c *client) count(key int, until int64, lease strategies.Lease) error {
	r := c.run
	// Not the clients' own context: work begun is finished also when the run ends.
	ctx := r.control.release
	counter := counterOf(r.keys[key])
	if increment := c.instance.atomic; increment != nil {
		c.hold(until)
		if err := increment.Increment(ctx, counter); err != nil {
			return err
		}
		r.done[key].Add(1)
		return nil
	}
	resource := r.resource(c.instance.nodes[0].Client, counter, lease)
	n, err := resource.read(ctx)
	if err == nil {
		c.hold(until)
		err = resource.write(ctx, n+1)
		if err != nil && !errors.Is(err, errStale) {
			r.uncertain.Add(1)
		}
	}
	switch {
	case errors.Is(err, errStale):
		r.refused.Add(1)
		return nil
	case err != nil:
		return err
	}
	r.done[key].Add(1)
	return nil
}

// resource is the counter as a holder reaches it.
type resource interface {
	read(ctx context.Context) (int64, error)
	write(ctx context.Context, n int64) error
}

// resource checks tokens where there are some, and it is wanted.
func (r *run) resource(server redis.UniversalClient, counter string, lease strategies.Lease) resource {
	open := unguarded{server, counter}
	fenced, _ := strategies.As[strategies.Fenced](lease)
	switch {
	case fenced == nil || r.Workload.Fence == workloads.FenceOff:
		return open
	case r.Workload.Fence == workloads.FenceWrites:
		return writesGuarded{open, guarded{server, counter, fenced.FencingToken()}}
	default:
		return guarded{server, counter, fenced.FencingToken()}
	}
}

// unguarded is a resource that believes everybody.
type unguarded struct {
	server  redis.UniversalClient
	counter string
}

func (u unguarded) read(ctx context.Context) (int64, error) {
	n, err := u.server.Get(ctx, u.counter).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("read the counter: %w", err)
	}
	return n, nil
}

func (u unguarded) write(ctx context.Context, n int64) error {
	if err := u.server.Set(ctx, u.counter, n, 0).Err(); err != nil {
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}

// lostUpdates compares each counter with the increments made; nil where there
// are none to compare, or it cannot be told which were made or kept.
func (r *run) lostUpdates(ctx context.Context) *int64 {
	if r.Workload.Work != workloads.WorkCounter || r.shared() || r.uncertain.Load() > 0 || r.disturbance.forgets() || r.dead.Load() || r.instances[0].closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var lost int64
	for i, key := range r.keys {
		n, err := unguarded{r.instances[0].nodes[0].Client, counterOf(key)}.read(ctx)
		if err != nil {
			r.errors.add(err)
			return nil
		}
		lost += max(0, r.done[i].Load()-n)
	}
	return &lost
}
