package engine

// This file implements the counter that a lock protects with --work counter. Each holder increments the counter. At the
// end, finish.go compares it with the number of confirmed updates.

import (
	"errors"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// counterOf returns the name of the counter that a key's lock protects.
func counterOf(key string) string { return Prefix + key + ":counter" }

// count increments a key's counter and calls hold between reading and writing. It returns nil if the counter refused
// the update because of a stale fencing token.
func (r *run) count(through *instance, key int, lease strategies.Lease, hold func()) error {
	// ctx is not the context of acquisitions, because a holder must finish its work even if the run ends.
	ctx := r.control.release
	if increment := through.atomic; increment != nil {
		hold()
		if err := increment.Increment(ctx, counterOf(r.keys[key])); err != nil {
			return err
		}
		r.done[key].Add(1)
		return nil
	}
	counter := r.counter(through, key, lease)
	n, err := counter.Read(ctx)
	switch {
	case errors.Is(err, store.ErrStale):
		r.refused.Add(1)
		return nil
	case err != nil:
		return err
	}
	hold()
	return r.write(counter, key, n+1)
}

// write completes an increment by writing n to the key's counter. It counts the update as confirmed, refused or
// uncertain, and returns nil if the counter refused it.
func (r *run) write(counter store.Counter, key int, n int64) error {
	err := counter.Write(r.control.release, n)
	switch {
	case err == nil:
		r.done[key].Add(1)
	case errors.Is(err, store.ErrStale):
		r.refused.Add(1)
		return nil
	default:
		r.uncertain.Add(1)
	}
	return err
}

// counter returns the counter that a key's lock protects. The counter checks fencing tokens if the lease has a token
// and the workload requests the check.
func (r *run) counter(through *instance, key int, lease strategies.Lease) store.Counter {
	name := counterOf(r.keys[key])
	if fenced, _ := strategies.As[strategies.Fenced](lease); fenced != nil {
		return through.counters.Counter(name, r.Workload.Fence, fenced.FencingToken())
	}
	return through.counters.Counter(name, workloads.FenceOff, 0)
}
