package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

const (
	// tryParking is how long the second client of a trial waits, after its first attempt, for the lock that the first
	// client holds. Some locks report no attempts, so the trial waits at most tryAttempt for a reported attempt.
	tryParking = 20 * time.Millisecond
	tryAttempt = time.Second
	// tryLimit limits a trial, which takes milliseconds if neither the server nor the machine is busy.
	tryLimit = 20 * time.Second
	// tryDriver limits a trial that only starts a driver.
	tryDriver = time.Minute
)

// Try makes one client acquire, extend and release the lock once, while a client of another instance uses a try-lock
// and then waits for the lock. If a driver runs the clients, Try only starts the driver. Try returns all failures, or
// an errors.ErrUnsupported if the servers lack an operation that the strategy needs. It removes the keys of the trial.
func (j Job) Try(ctx context.Context) []error {
	w := &j.Workload
	w.Clients, w.Keys, w.Pool, w.Faults = 2, 1, 2, nil
	w.Instances, j.Faults = 2, nil
	w.TTL = max(w.TTL, workloads.Duration(tryLimit)) // so that no lease expires during the trial
	limit := tryLimit
	if j.Strategy.Info().Driver {
		w.Instances, limit = 1, tryDriver
	}
	w.Instances = j.Strategy.Instances(w.Instances)
	r := newRun(j)
	if !r.remote() && r.driven == nil {
		return nil
	}
	always := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := &trial{run: r}
	switch err := r.open(ctx); {
	case errors.Is(err, errors.ErrUnsupported), err != nil && r.driven != nil:
		t.failures = []error{err}
	case t.step("be prepared", err) && r.driven == nil:
		t.once(ctx)
	}
	r.close()
	r.closing = true // no other process uses these keys
	r.cleanUp(always)
	if r.remote() && len(r.errors.list()) > 0 { // for example a refused SCAN
		t.remove(always)
	}
	return t.failures
}

// remove deletes the trial's keys by their names, for servers that refuse a SCAN. The keys must be deleted because the
// next strategy is tried with the same key.
func (t *trial) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	names := []string{counterOf(t.keys[0])}
	for _, pattern := range append([]string{"{key}"}, t.info.Keys...) {
		if !strings.Contains(pattern, "*") {
			names = append(names, strings.ReplaceAll(pattern, "{key}", Prefix+t.keys[0]))
		}
	}
	_ = t.Target.Remove(ctx, names) // the preflight reports a missing right
	if t.Hub != nil {
		_ = t.Hub.Remove(ctx, names)
	}
}

// trial is the state of a Try under way.
type trial struct {
	*run
	failures []error
}

// step reports whether a step of the trial succeeded, and records the failure if it did not.
func (t *trial) step(what string, err error) bool {
	if err == nil {
		return true
	}
	t.failures = append(t.failures, fmt.Errorf("%s could not %s: %w", t.Strategy.Name(), what, err))
	return false
}

// refused is like step for operations that may fail although the lock is usable. It records a failure only if the
// server refused a command.
func (t *trial) refused(what string, err error) {
	if t.Target.Refused(err) != "" {
		t.step(what, err)
	}
}

// once executes the steps of a trial: one client acquires, a second one tries and waits, the first extends and
// releases.
func (t *trial) once(ctx context.Context) {
	first, second, key := t.instances[0], t.instances[len(t.instances)-1], t.keys[0]
	if first.atomic != nil {
		t.step("increment", first.atomic.Increment(ctx, counterOf(key)))
		return
	}
	lease, err := first.locker.Acquire(ctx, key)
	if !t.step("acquire a free lock", err) || lease == nil {
		return
	}
	if trier, ok := strategies.As[strategies.Trier](second.locker); ok {
		other, err := trier.TryAcquire(ctx, key)
		if err == nil && other != nil { // a lock with several permits grants another one
			err = other.Release(ctx)
		}
		t.refused("try", err)
	}
	waited, before := make(chan error, 1), second.probe.Counts().Attempts
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	go func() { // ends with ctx at the latest; the code below waits for it
		next, err := second.locker.Acquire(waiting, key)
		if err == nil && next != nil {
			err = next.Release(ctx)
		}
		waited <- err
	}()
	began := time.Now()
	for !t.info.BlackBox && second.probe.Counts().Attempts == before && time.Since(began) < tryAttempt {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(tryParking)
	if extender, ok := strategies.As[strategies.Extender](lease); ok {
		t.refused("extend", extender.Extend(ctx, time.Duration(t.Workload.TTL)))
	}
	if t.Workload.Work == workloads.WorkCounter {
		counter := t.counter(first, 0, lease)
		n, err := counter.Read(ctx)
		t.refused("read the counter", err)
		t.refused("write the counter", counter.Write(ctx, n))
	}
	if err := lease.Release(ctx); !errors.Is(err, strategies.ErrNotHeld) {
		t.step("release", err)
	}
	if len(t.failures) > 0 { // the second client may never get the lock
		defer time.AfterFunc(tryParking, giveUp).Stop()
	}
	t.refused("wait", <-waited)
}
