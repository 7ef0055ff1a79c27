package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/workloads"
)

// bringToClient injects a fault of a client and returns when the fault is over.
func (d *disturbance) bringToClient(f *fault) error {
	switch f.spec.Name {
	case workloads.HolderCrash:
		return d.crashHolder(f)
	case workloads.HolderPause:
		return d.pauseHolder(f)
	case workloads.WaiterCrash:
		return d.crashWaiters(f)
	case workloads.CrashBetween:
		return d.crashBetween(f)
	}
	return fmt.Errorf("there is no fault %s of clients", f.spec.Name)
}

func (d *disturbance) crashHolder(f *fault) error {
	v, err := d.holder()
	if err != nil {
		return err
	}
	defer v.reap()
	d.begin(f, v.key, v.crash(), false)
	return nil
}

func (d *disturbance) pauseHolder(f *fault) error {
	v, err := d.holder()
	if err != nil {
		return err
	}
	defer v.reap()
	v.wire.freeze()
	s := d.begin(f, v.key, d.run.clock.Now(), false)
	d.lasts(s)
	pause.Plain(d.ctx.Done(), d.run.Workload.Lasts(f.spec))
	d.ends(s)
	v.wire.thaw()
	v.finish()
	return nil
}

// crashBetween kills a client that is about to send one command more than the fault
// permits. A client that needs no more commands than that dies while it holds the lock.
func (d *disturbance) crashBetween(f *fault) error {
	v, err := d.target(1)
	if err != nil {
		return err
	}
	defer v.reap()
	ctx, cancel := context.WithCancel(d.ctx)
	died := make(chan struct{})
	v.wire.arm(f.spec.Command, func() {
		d.begin(f, v.key, d.run.clock.Now(), false)
		close(died)
		cancel()
	})
	back := make(chan error, 1)
	v.busy.Go(func() {
		defer cancel()
		back <- d.between(ctx, f, v, died)
	})
	select {
	case <-died:
		return nil
	case err := <-back:
		return err
	}
}

// between acquires for the target of crashBetween. died is closed if a command kills it.
func (d *disturbance) between(ctx context.Context, f *fault, v *faultTarget, died <-chan struct{}) error {
	err := v.acquire(ctx)
	at := int64(0)
	if err == nil {
		at = v.crash() // from here on no command can kill it
	}
	select {
	case <-died:
		return nil
	default:
	}
	if err == nil {
		d.begin(f, v.key, at, false)
	}
	return err
}

// pinnedHolder is a holder that must keep its lock for a while.
type pinnedHolder struct {
	key   int
	taken chan struct{} // closed by the holder
	free  chan struct{} // closed by the fault that pins it
}

// detain makes the client keep its lock if a fault waits for a holder.
func (d *disturbance) detain(key int) {
	if len(d.faults) == 0 {
		return
	}
	d.mu.Lock()
	if len(d.pinned) == 0 {
		d.mu.Unlock()
		return
	}
	h := d.pinned[0]
	d.pinned = d.pinned[1:]
	d.mu.Unlock()
	h.key = key
	close(h.taken)
	select {
	case <-h.free:
	case <-d.ctx.Done():
	}
}

// queueing is how long waiters have to join the queue after their request, unless the
// TTL is short.
const queueing = 100 * time.Millisecond

// crashWaiters pins a holder and kills clients that wait for its lock. The pin ensures
// that they are still waiters.
func (d *disturbance) crashWaiters(f *fault) error {
	v, err := d.target(f.spec.N)
	if err != nil {
		return err
	}
	defer v.reap()
	h := &pinnedHolder{taken: make(chan struct{}), free: make(chan struct{})}
	defer close(h.free)
	d.mu.Lock()
	d.pinned = append(d.pinned, h)
	d.mu.Unlock()
	select {
	case <-h.taken:
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
	ctx, cancel := context.WithCancel(d.ctx)
	defer cancel()
	for range f.spec.N {
		v.busy.Go(func() { _, _ = v.instance.locker.Acquire(ctx, d.run.keys[h.key]) })
	}
	ttl := time.Duration(d.run.Workload.TTL)
	began := time.Now()
	for !d.run.info.BlackBox && v.instance.probe.Counts().Attempts < int64(f.spec.N) && time.Since(began) < ttl/4 {
		pause.Plain(d.ctx.Done(), time.Millisecond)
	}
	pause.Plain(d.ctx.Done(), min(queueing, ttl/4))
	v.die()
	if d.ctx.Err() != nil {
		return d.ctx.Err()
	}
	d.begin(f, h.key, d.run.clock.Now(), false)
	return nil
}
