package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// faultTarget is a process that suffers a fault. It is an extra application instance
// beside the workload's, so no client of the workload is hit and their time accounts stay
// complete.
type faultTarget struct {
	run      *run
	instance *instance
	wire     *wire
	random   *rand.Rand
	busy     sync.WaitGroup // clients that are in Acquire

	key    int
	waiter *measure.Waiter
	lease  strategies.Lease
	read   int64 // value of the counter
}

// strangers marks the random draws of targets: no client of the workload has such a number.
const strangers = 1 << 31

// target opens a faultTarget with this many clients.
func (d *disturbance) target(clients int) (*faultTarget, error) {
	r := d.run
	v := &faultTarget{
		run:      r,
		instance: &instance{strategy: r.Strategy.Part(0), probe: &strategies.Probe{}},
		wire:     newWire(r.Target.Commands),
		random: rand.New(rand.NewPCG(uint64(r.Workload.Seed),
			uint64(r.Round)<<32|strangers|uint64(d.targets.Add(1)))),
		waiter: measure.NewWaiter(r.Workload.Clients),
	}
	err := r.connect(d.ctx, v.instance, min(clients, workloads.MaxPool), v.wire.through, v.wire.through)
	if err == nil {
		err = r.openLocker(v.instance)
	}
	if err != nil {
		v.reap()
		return nil, fmt.Errorf("open the fault target: %w", err)
	}
	return v, nil
}

// holder opens a faultTarget that holds the lock on some key and is in the middle of its
// work.
func (d *disturbance) holder() (*faultTarget, error) {
	v, err := d.target(1)
	if err != nil {
		return nil, err
	}
	if err = v.acquire(d.ctx); err == nil {
		err = v.begin(d.ctx)
	}
	if err != nil {
		v.reap()
		return nil, err
	}
	return v, nil
}

// die ends the target as SIGKILL does.
func (v *faultTarget) die() { v.wire.cut() }

// reap frees the target's resources in this process after its clients have returned. A
// strategy may still try for a while to reach Redis over the dead connections: its errors
// are ignored, and only the drain waits for it.
func (v *faultTarget) reap() {
	v.run.control.running.Go(func() {
		v.busy.Wait()
		if v.instance.locker != nil {
			_ = v.instance.locker.Close()
		}
		_ = v.instance.hangUp()
	})
}

// grace is how long a target waits with the same rights as the other clients. After that
// they must yield: a client that reacquires its lock at once could otherwise prevent the
// fault.
const grace = 100 * time.Millisecond

// acquire waits for the lock on some key.
func (v *faultTarget) acquire(ctx context.Context) error {
	r := v.run
	v.key = r.chooser.Choose(v.random)
	audit := r.audit[v.key]
	asked := r.clock.Now()
	audit.Arrive(v.waiter, asked, asked)
	got := make(chan struct{})
	var yielding sync.WaitGroup
	yielding.Go(func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-got:
		case <-timer.C:
			r.disturbance.yield()
			<-got
			r.disturbance.served()
		}
	})
	lease, err := v.instance.locker.Acquire(ctx, r.keys[v.key])
	close(got)
	yielding.Wait()
	if err == nil && lease == nil {
		err = errNoLease
	}
	if err == nil {
		err = v.wire.await(nil) // if the process was killed, it holds nothing
	}
	now := r.clock.Now()
	if err != nil {
		audit.Leave(v.waiter, now)
		return fmt.Errorf("acquire the fault target's lock: %w", err)
	}
	v.lease = lease
	r.disturbance.granted(v.key, now, audit.Enter(v.waiter, now, lease))
	return nil
}

// counter returns the target's counter; nil where the workload has none.
func (v *faultTarget) counter() store.Counter {
	if v.run.Workload.Work != workloads.WorkCounter {
		return nil
	}
	return v.run.counter(v.instance, v.key, v.lease)
}

// begin does the first half of the target's work. A stale token shows in the second
// half; after any other error the target releases.
func (v *faultTarget) begin(ctx context.Context) error {
	if counter := v.counter(); counter != nil {
		n, err := counter.Read(v.run.control.release)
		if err != nil && !errors.Is(err, store.ErrStale) {
			v.release()
			return err
		}
		v.read = n
	}
	pause.Plain(ctx.Done(), v.run.Workload.Hold.Draw(v.random))
	return nil
}

// finish does the second half and releases, as a process does that did not notice the fault.
func (v *faultTarget) finish() {
	r := v.run
	if counter := v.counter(); counter != nil {
		switch err := counter.Write(r.control.release, v.read+1); {
		case err == nil:
			r.done[v.key].Add(1)
		case errors.Is(err, store.ErrStale):
			r.refused.Add(1)
		default:
			r.uncertain.Add(1)
			r.fail(err)
		}
	}
	v.release()
}

func (v *faultTarget) release() {
	r, audit := v.run, v.run.audit[v.key]
	audit.Exit(v.waiter, r.clock.Now())
	err := v.lease.Release(r.control.release)
	audit.Settle(v.waiter, v.lease, err)
	switch {
	case err == nil:
		audit.Freed(r.clock.Now())
	case errors.Is(err, strategies.ErrNotHeld):
		audit.Lost()
	default:
		r.fail(err)
	}
}

// crash kills a holder, and returns the instant from which on its lock has no holder.
func (v *faultTarget) crash() int64 {
	// Take the time before the kill: some stores hand the lock on within microseconds.
	at := v.run.clock.Now()
	v.run.audit[v.key].Vanish(v.waiter, at)
	v.die()
	return at
}
