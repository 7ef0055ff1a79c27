package engine

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// counterOf returns the name of the counter that a key's lock protects.
func counterOf(key string) string { return Prefix + key + ":counter" }

// work is what a holder does until an instant. With a counter it reads the counter first,
// and writes it back one higher at the end.
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
	// Not the clients' own context: a holder finishes its work even if the run ends.
	ctx := r.control.release
	if increment := c.instance.atomic; increment != nil {
		c.hold(until)
		if err := increment.Increment(ctx, counterOf(r.keys[key])); err != nil {
			return err
		}
		r.done[key].Add(1)
		return nil
	}
	counter := r.counter(c.instance, key, lease)
	n, err := counter.Read(ctx)
	if err == nil {
		c.hold(until)
		err = counter.Write(ctx, n+1)
		if err != nil && !errors.Is(err, store.ErrStale) {
			r.uncertain.Add(1)
		}
	}
	switch {
	case errors.Is(err, store.ErrStale):
		r.refused.Add(1)
		return nil
	case err != nil:
		return err
	}
	r.done[key].Add(1)
	return nil
}

// counter returns the counter that a key's lock protects. It checks tokens if the lease
// has one and the workload asks for it.
func (r *run) counter(through *instance, key int, lease strategies.Lease) store.Counter {
	name := counterOf(r.keys[key])
	if fenced, _ := strategies.As[strategies.Fenced](lease); fenced != nil {
		return through.counters().Counter(name, r.Workload.Fence, fenced.FencingToken())
	}
	return through.counters().Counter(name, workloads.FenceOff, 0)
}

// lostUpdates compares each counter with the increments made. It returns nil if there are
// no counters, or if it is unknown which increments were made or kept.
func (r *run) lostUpdates(ctx context.Context) *int64 {
	if r.Workload.Work != workloads.WorkCounter || r.shared() || r.uncertain.Load() > 0 || !r.counted() && r.disturbance.forgets() || r.dead.Load() || r.instances[0].closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var lost int64
	for i, key := range r.keys {
		n, err := r.instances[0].counters().Counter(counterOf(key), workloads.FenceOff, 0).Read(ctx)
		if err != nil {
			r.errors.add(err)
			return nil
		}
		lost += max(0, r.done[i].Load()-n)
	}
	return &lost
}
