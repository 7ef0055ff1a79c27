package engine

// The faults of clients. Each function opens a target, brings it into the state that the fault requires, and returns
// the strike that injects the fault.

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
	return strike{}, fmt.Errorf("there is no fault %s of clients", spec.Name)
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

// crashing returns a strike that kills the target.
func (t *faultTarget) crashing(key int) strike {
	return strike{key: key, Action: store.Action{Hit: func(context.Context) error {
		t.crash()
		return nil
	}}}
}

// crashBetween kills a client just before it sends a command that differs from the first commands different ones. If
// acquiring takes no further command, the client dies while it holds the lock.
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

// queueing is the time that waiters get to join the queue after their first attempt; with a short TTL it is less.
const queueing = 100 * time.Millisecond

// crashWaiters kills n clients that wait for a lock whose holder is pinned. The pin ensures that none of them gets the
// lock before it dies.
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
	pause.Plain(f.ctx.Done(), min(queueing, ttl/4))
	if err := f.ctx.Err(); err != nil {
		t.crash()
		return strike{}, err
	}
	return t.crashing(key), nil
}
