package engine

// This file implements the faults that hit clients. Each function opens a target, brings it into the state that the
// fault requires, and returns the strike that injects the fault.

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

func (f *faults) prepareClients(spec workloads.Fault) (strike, error) {
	switch spec.Name {
	case workloads.HolderCrash:
		return f.crashHolder()
	case workloads.HolderPause:
		return f.pauseHolder(f.run.Workload.Lasts(spec))
	case workloads.WaiterCrash:
		return f.crashWaiters(spec.N)
	case workloads.CrashBetween:
		return f.crashBetween(spec.Command)
	}
	return strike{}, fmt.Errorf("the fault %s does not act on clients", spec.Name)
}

func (f *faults) crashHolder() (strike, error) {
	t, err := f.holder()
	if err != nil {
		return strike{}, err
	}
	return t.crashing(t.key), nil
}

func (f *faults) pauseHolder(lasts time.Duration) (strike, error) {
	t, err := f.holder()
	if err != nil {
		return strike{}, err
	}
	return strike{key: t.key, lasts: lasts, Action: store.Action{
		Hit: func(context.Context) error {
			t.wire.freeze()
			return nil
		},
		End: func(context.Context) error {
			t.wire.thaw()
			t.busy.Go(t.finish)
			t.reap()
			return nil
		},
	}}, nil
}

// crashing returns a strike that kills the target, which then releases nothing.
func (t *faultTarget) crashing(key int) strike {
	return strike{key: key, Action: store.Action{Hit: func(context.Context) error {
		t.crash()
		return nil
	}}}
}

// crashBetween kills a client in the middle of an acquisition: after it has sent the given number of distinct commands,
// and just before it sends another distinct one. If the acquisition ends earlier, the client dies while it holds the
// lock.
func (f *faults) crashBetween(commands int) (strike, error) {
	t, err := f.target(1)
	if err != nil {
		return strike{}, err
	}
	frozen := t.wire.freezeAfter(commands)
	acquired := make(chan error, 1)
	t.busy.Go(func() { acquired <- t.acquire() })
	select {
	case <-frozen:
	case err = <-acquired:
		if err != nil {
			t.wire.disarm() // the acquisition failed, so a later command must not trigger the fault
			t.reap()
			return strike{}, err
		}
	}
	return t.crashing(t.key), nil
}

// timeToQueue is the time from the first attempts of the waiters until the fault kills them. In that time the waiters
// join the queue of the lock. If a quarter of the TTL is shorter than timeToQueue, the waiters get that quarter.
const timeToQueue = 100 * time.Millisecond

// crashWaiters kills n clients that wait for a lock. pinHolder makes a client of the workload keep that lock until the
// waiters have died, so that none of them gets it.
func (f *faults) crashWaiters(n int) (strike, error) {
	t, err := f.target(n)
	if err != nil {
		return strike{}, err
	}
	key, err := f.pinHolder(t.ctx)
	if err != nil {
		t.reap()
		return strike{}, err
	}
	for range n {
		t.busy.Go(func() { _, _ = t.instance.locker.Acquire(t.ctx, f.run.keys[key]) })
	}
	ttl := time.Duration(f.run.Workload.TTL)
	began := time.Now()
	for !f.run.info.BlackBox && t.instance.probe.Counts().Attempts < int64(n) && time.Since(began) < ttl/4 {
		pause.Plain(f.ctx.Done(), time.Millisecond)
	}
	pause.Plain(f.ctx.Done(), min(timeToQueue, ttl/4))
	if err := f.ctx.Err(); err != nil {
		t.crash()
		return strike{}, err
	}
	return t.crashing(key), nil
}
