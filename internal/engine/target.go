package engine

// This file implements the simulated process that a fault of clients hits.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// faultTarget is a simulated process that suffers a fault. It is an additional application instance, so that no client
// of the workload is hit and the time accounts of those clients stay complete.
type faultTarget struct {
	run        *run
	log        *faultLog
	precedence *precedence
	ctx        context.Context // context of its acquisitions; ends when the target dies or the window ends
	cancel     context.CancelFunc
	instance   *instance
	wire       *wire
	random     *rand.Rand
	busy       sync.WaitGroup // counts the target's clients that are running

	key    int
	waiter *measure.Waiter
	read   int64             // value of the counter
	tx     store.Transaction // open transaction on the row of the key, else nil

	mu    sync.Mutex
	lease strategies.Lease // nil unless the target holds the lock of key
	dead  bool
}

// targetSeedOffset distinguishes the seeds of targets from those of the workload's clients, whose numbers are smaller.
const targetSeedOffset = 1 << 31

// target opens a faultTarget with the given number of clients.
func (f *faults) target(clients int) (*faultTarget, error) {
	r := f.run
	t := &faultTarget{
		run: r, log: f.faultLog, precedence: f.precedence,
		instance: &instance{strategy: r.Strategy.Part(0), probe: &strategies.Probe{}},
		wire:     newWire(r.Target.Commands),
		random: rand.New(rand.NewPCG(uint64(r.Workload.Seed),
			uint64(r.Round)<<32|targetSeedOffset|uint64(f.targets.Add(1)))),
		waiter: measure.NewWaiter(r.Workload.Clients),
	}
	t.ctx, t.cancel = context.WithCancel(f.ctx)
	t.key = r.chooser.Choose(t.random)
	err := r.connect(t.ctx, t.instance, min(clients, workloads.MaxPool), t.wire.through, t.wire.through)
	if err == nil {
		err = r.openLocker(t.instance)
	}
	if err != nil {
		t.reap()
		return nil, fmt.Errorf("open the fault target: %w", err)
	}
	return t, nil
}

// holder opens a faultTarget that holds the lock on its key and has done the first half of its work.
func (f *faults) holder() (*faultTarget, error) {
	t, err := f.target(1)
	if err != nil {
		return nil, err
	}
	if err = t.acquire(); err == nil {
		err = t.startWork()
	}
	if err != nil {
		t.reap()
		return nil, err
	}
	return t, nil
}

// reap frees the target's resources in this process after the target's clients have returned. A strategy may still try
// to reach Redis over the dead connections for some time. reap ignores the errors of the strategy. Only the drain at
// the end of the run waits for the strategy.
func (t *faultTarget) reap() {
	t.run.control.running.Go(func() {
		t.busy.Wait()
		t.cancel()
		if t.tx != nil { // a dead process loses its connection, which rolls the transaction back
			t.tx.Rollback()
		}
		if t.instance.locker != nil {
			_ = t.instance.locker.Close()
		}
		_ = t.instance.hangUp()
	})
}

// acquire makes the target wait for the lock on its key, and records the lease in the audit and in the fault log.
func (t *faultTarget) acquire() error {
	r, audit := t.run, t.run.audit[t.key]
	asked := r.clock.Now()
	audit.Arrive(t.waiter, asked, asked)
	served := make(chan struct{})
	t.busy.Go(func() { t.precedence.goFirst(served) })
	lease, err := Acquire(t.ctx, t.instance.locker, r.keys[t.key], nil)
	close(served)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil && t.dead { // a lease that arrives after the kill has no holder
		err = errDead
	}
	now := r.clock.Now()
	if err != nil {
		audit.Leave(t.waiter, now)
		return fmt.Errorf("acquire the fault target's lock: %w", err)
	}
	t.lease = lease
	t.log.granted(t.key, now, audit.Enter(t.waiter, now, lease))
	return nil
}

// counter returns the target's counter; nil if the workload has none.
func (t *faultTarget) counter() store.Counter {
	if t.run.Workload.Work != workloads.WorkCounter {
		return nil
	}
	return t.run.counter(t.instance, t.key, t.lease)
}

// startWork does the first half of the target's work. It ignores a stale token, because the second half of the work
// detects it too. After any other error the target releases.
func (t *faultTarget) startWork() error {
	if counter := t.counter(); counter != nil {
		n, err := counter.Read(t.run.control.release)
		if err != nil && !errors.Is(err, store.ErrStale) {
			t.release()
			return err
		}
		t.read = n
	}
	if t.run.transacts() {
		tx, err := t.run.rows.Begin(t.run.control.release, t.key, t.run.Workload.Row)
		if err != nil {
			t.release()
			return err
		}
		t.tx = tx
	}
	pause.Plain(t.ctx.Done(), t.run.Workload.Hold.Draw(t.random))
	return nil
}

// finish does the second half of the work and releases, like a process that did not notice the fault.
func (t *faultTarget) finish() {
	if counter := t.counter(); counter != nil {
		if err := t.run.write(counter, t.key, t.read+1); err != nil {
			t.run.fail(err)
		}
	}
	commit := func() error { return nil }
	if t.tx != nil {
		later, err := t.run.conclude(t.key, t.tx)
		if t.tx = nil; err != nil && !errors.Is(err, store.ErrStale) {
			t.run.fail(err)
		}
		if later != nil {
			commit = later
		}
	}
	t.release()
	if err := commit(); err != nil {
		t.run.fail(err)
	}
}

func (t *faultTarget) release() { t.run.giveBack(t.key, t.waiter, t.lease, t.run.clock.Now()) }

// crash kills the target and frees its resources. The target no longer holds a lock.
func (t *faultTarget) crash() {
	t.kill()
	t.reap()
}

// kill ends the target as SIGKILL would. Its connections close, and a lease that arrives later has no holder.
func (t *faultTarget) kill() {
	t.mu.Lock()
	if t.dead = true; t.lease != nil {
		// Read the clock before the kill, because some stores grant the lock to the next client within microseconds.
		t.run.audit[t.key].Vanish(t.waiter, t.run.clock.Now())
	}
	t.mu.Unlock()
	t.wire.cut()
	t.cancel()
}
