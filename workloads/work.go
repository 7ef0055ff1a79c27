package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/workloads/spec"
)

// counterOf is the counter that a key's lock protects.
func counterOf(key string) string { return Prefix + key + ":counter" }

// work is what a holder does: hold, and with a counter read it before and write
// it back one higher after.
func (c *client) work(key int, hold time.Duration) error {
	r := c.run
	if r.Workload.Work != spec.WorkCounter {
		c.sleep(hold)
		return nil
	}
	// Not the clients' own context: work begun is finished also when the run ends.
	ctx := r.control.release
	counter := counterOf(r.keys[key])
	increment := c.instance.atomic
	if increment == nil {
		increment = readAndWrite{c, hold}
	} else {
		c.sleep(hold)
	}
	if err := increment.Increment(ctx, counter); err != nil {
		return err
	}
	r.done[key].Add(1)
	return nil
}

// readAndWrite increments a counter as those do who need a lock for it.
type readAndWrite struct {
	client *client
	hold   time.Duration // in between
}

// Increment reads the counter, holds, and writes it back one higher.
func (w readAndWrite) Increment(ctx context.Context, counter string) error {
	server := w.client.instance.nodes[0].Client
	n, err := server.Get(ctx, counter).Int64()
	if err != nil && !errors.Is(err, redis.Nil) {
		return fmt.Errorf("read the counter: %w", err)
	}
	w.client.sleep(w.hold)
	if err := server.Set(ctx, counter, n+1, 0).Err(); err != nil {
		w.client.run.uncertain.Add(1)
		return fmt.Errorf("write the counter: %w", err)
	}
	return nil
}

// lostUpdates compares each counter with the increments made; nil where there
// are none to compare, or it cannot be told which were made.
func (r *run) lostUpdates(ctx context.Context) *int64 {
	if r.Workload.Work != spec.WorkCounter || r.uncertain.Load() > 0 || r.dead || r.instances[0].closed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var lost int64
	for i, key := range r.keys {
		n, err := r.instances[0].nodes[0].Client.Get(ctx, counterOf(key)).Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			r.errors.add(fmt.Errorf("read the counter: %w", err))
			return nil
		}
		lost += max(0, r.done[i].Load()-n)
	}
	return &lost
}
