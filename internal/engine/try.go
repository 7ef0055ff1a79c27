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
	// tryParking is how long a second client of a trial waits for the first.
	tryParking = 20 * time.Millisecond
	// tryLimit bounds a trial. A lock that takes longer is the run's to measure.
	tryLimit = 5 * time.Second
)

// Try has the strategy acquire, extend and release once, with a second client of
// another instance waiting meanwhile, and returns what the servers refuse, or an
// errors.ErrUnsupported where they lack what the strategy needs. Any other error is left to
// the run, which measures what it does. Its keys are removed.
func (j Job) Try(ctx context.Context) error {
	if j.Generator != "" { // the others try too
		j.Session, j.Generator = j.Session+"."+j.Generator, ""
	}
	w := &j.Workload
	w.Clients, w.Keys, w.Pool, w.Faults = 2, 1, 2, nil
	w.Instances, j.Faults = 2, nil
	w.Instances = j.Instances()
	r := newRun(j)
	if !r.remote() {
		return nil
	}
	always := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	err := r.open(ctx)
	ready := err == nil
	if ready {
		err = r.tryOnce(ctx)
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported):
	case r.Target.Refused(err) != "", errors.Is(err, context.DeadlineExceeded): // some libraries keep a refusal to themselves, and wait
		err = r.missing(always, err, !ready)
	default:
		err = nil
	}
	r.close()
	r.closing = true // nobody else uses these keys
	r.cleanUp(always)
	return err
}

// tryOnce does what Try does with the lock: acquire, wait with a second client, extend, release.
func (r *run) tryOnce(ctx context.Context) error {
	first, second, key := r.instances[0], r.instances[len(r.instances)-1], r.keys[0]
	if first.atomic != nil {
		return first.atomic.Increment(ctx, counterOf(key))
	}
	lease, err := first.locker.Acquire(ctx, key)
	if err != nil || lease == nil {
		return err
	}
	waited := make(chan error, 1)
	go func() { // ends with ctx at the latest, and is waited for below
		next, err := second.locker.Acquire(ctx, key)
		if err == nil && next != nil {
			err = next.Release(ctx)
		}
		waited <- err
	}()
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
	waiting := ctx
	if r.Target.Refused(errors.Join(problems...)) != "" { // it may never be granted
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, tryParking)
		defer cancel()
	}
	select {
	case err = <-waited:
		problems = append(problems, err)
	case <-waiting.Done():
		problems = append(problems, waiting.Err())
	}
	return r.firstRefusal(problems)
}

// firstRefusal is the error that says what a server refused, else any other.
func (r *run) firstRefusal(problems []error) error {
	for _, err := range problems {
		if r.Target.Refused(err) != "" {
			return err
		}
	}
	return errors.Join(problems...)
}

// missing says what the servers refused, and for a right which. Of one that was not told
// in words, only a right that is missing for certain is a fault, or a lock that does not
// even get ready: its run would wait for ever.
func (r *run) missing(ctx context.Context, err error, unready bool) error {
	code := r.Target.Refused(err)
	rights := r.info.Rights.Missing(err.Error(), Prefix)
	if code == "" || r.Target.Unauthorised(code) && len(rights) == 0 { // of a script's commands Redis does not name the one
		rights = nil
		if first := r.instances[0].store; first != nil {
			rights = first.Lacking(ctx, r.info.Rights, Prefix, Prefix+r.keys[0], err.Error())
		}
	}
	name := r.Strategy.Name()
	switch {
	case len(rights) > 0:
		return fmt.Errorf("%s needs the right %s: %w (lockbench list %s prints all that it needs)",
			name, strings.Join(rights, " "), err, r.Strategy.Strategy.Info.Name)
	case code == "" && unready:
		return fmt.Errorf("%s was not ready within %v: %w", name, tryLimit, err)
	case code == "":
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}
