package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

const (
	// tryParking is how long the second client waits for the first one's lock in a trial, from its
	// first attempt on, which comes within tryAttempt unless the lock makes none while it waits.
	tryParking = 20 * time.Millisecond
	tryAttempt = time.Second
	// tryLimit bounds a trial. If a lock takes longer the run measures that.
	tryLimit = 5 * time.Second
	// tryDriver bounds the start of a driver.
	tryDriver = time.Minute
)

// Try makes the strategy acquire, extend and release once while a client of another
// instance waits. It returns what the servers refuse, or an errors.ErrUnsupported if they
// lack what the strategy needs. It ignores any other error: the run will measure its
// effect. It removes its keys.
func (j Job) Try(ctx context.Context) error {
	w := &j.Workload
	w.Clients, w.Keys, w.Pool, w.Faults = 2, 1, 2, nil
	w.Instances, j.Faults = 2, nil
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
	err := r.open(ctx)
	ready := err == nil
	if ready && r.driven == nil {
		err = r.tryOnce(ctx)
	}
	switch {
	case r.driven != nil:
	case errors.Is(err, errors.ErrUnsupported):
	case r.Target.Refused(err) != "", errors.Is(err, context.DeadlineExceeded):
		// some libraries do not report a refusal, and wait
		err = r.missing(err, !ready)
	default:
		err = nil
	}
	r.close()
	r.closing = true // no other process uses these keys
	r.cleanUp(always)
	return err
}

// tryOnce acquires, waits with a second client, extends and releases.
func (r *run) tryOnce(ctx context.Context) error {
	first, second, key := r.instances[0], r.instances[len(r.instances)-1], r.keys[0]
	if first.atomic != nil {
		return first.atomic.Increment(ctx, counterOf(key))
	}
	lease, err := first.locker.Acquire(ctx, key)
	if err != nil || lease == nil {
		return err
	}
	waited, before := make(chan error, 1), second.probe.Counts().Attempts
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	go func() { // ends with ctx at the latest; waited for below
		next, err := second.locker.Acquire(waiting, key)
		if err == nil && next != nil {
			err = next.Release(ctx)
		}
		waited <- err
	}()
	began := time.Now()
	for !r.info.BlackBox && second.probe.Counts().Attempts == before && time.Since(began) < tryAttempt {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(tryParking)
	var problems []error
	if extender, ok := strategies.As[strategies.Extender](lease); ok {
		problems = append(problems, extender.Extend(ctx, time.Duration(r.Workload.TTL)))
	}
	if r.Workload.Work == workloads.WorkCounter {
		counter := r.counter(first, 0, lease)
		n, err := counter.Read(ctx)
		problems = append(problems, err, counter.Write(ctx, n))
	}
	problems = append(problems, lease.Release(ctx))
	if r.Target.Refused(errors.Join(problems...)) != "" { // the second client may never get the lock
		defer time.AfterFunc(tryParking, giveUp).Stop()
	}
	problems = append(problems, <-waited, ctx.Err())
	refused := func(err error) bool { return r.Target.Refused(err) != "" }
	if first := slices.IndexFunc(problems, refused); first >= 0 {
		return problems[first]
	}
	return errors.Join(problems...)
}

// missing returns what the servers refused, and names the missing right if they did. If err is not a
// refusal, it returns an error only for a lock that did not become ready: a run would wait for ever.
func (r *run) missing(err error, unready bool) error {
	code := r.Target.Refused(err)
	rights := r.info.Rights.Missing(err.Error(), Prefix)
	name := r.Strategy.Name()
	switch {
	case code != "" && len(rights) > 0:
		return fmt.Errorf("%s needs the right %s: %w (lockbench list %s prints all that it needs)",
			name, strings.Join(rights, " "), err, r.Strategy.Strategy.Info.Name)
	case code == "" && unready:
		return fmt.Errorf("%s was not ready within %v: %w", name, tryLimit, err)
	case code == "":
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}
