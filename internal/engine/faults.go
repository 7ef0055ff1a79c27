package engine

// This file contains the functions through which the rest of the engine uses the faults of a workload. Each file in
// this list calls only files below it:
//
//	faults.go       waits until a fault is due, prepares it, injects it, and undoes it
//	clientfaults.go prepares a fault of clients; the store's store.Faults prepares all others
//	target.go       the process that a fault of clients hits, and its wire (wire.go)
//	precedence.go   how the workload's clients let a target go first, and keep a lock for a fault
//	faultlog.go     records what was injected and what followed
//
// precedence.go and faultlog.go own their state and call none of the other files.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// faults injects the workload's faults when they are due. Its faultLog records them and reports which errors they
// explain.
type faults struct {
	*faultLog
	*precedence

	run       *run
	ctx       context.Context // ends with the window
	cancel    context.CancelFunc
	schedules sync.WaitGroup
	targets   atomic.Int64 // number opened so far

	failing sync.Mutex
	failed  error // the errors of faults that could not be injected or undone
}

// newFaults returns the faults of a run. ctx is the context of the whole run.
func newFaults(ctx context.Context, r *run) *faults {
	ctx, cancel := context.WithCancel(ctx)
	return &faults{
		run: r, ctx: ctx, cancel: cancel, faultLog: newFaultLog(r), precedence: newPrecedence(ctx.Done()),
	}
}

// start starts a goroutine for each fault, which injects the fault whenever it is due.
func (f *faults) start() {
	for _, record := range f.records {
		f.schedules.Go(func() { f.schedule(record) })
	}
}

// stop ends the faults at the end of the window. No new fault begins, and faults under way are undone.
func (f *faults) stop() {
	f.cancel()
	f.closeWindow()
}

// wait waits until no fault is under way. It returns the errors of faults that could not be injected or undone.
func (f *faults) wait() error {
	f.schedules.Wait()
	return f.failed
}

// acquired records that a client of the workload has acquired a key. If a fault needs a holder, acquired blocks that
// client, so that it keeps the lock.
func (f *faults) acquired(key int, at int64, grant measure.Grant) {
	if len(f.records) > 0 {
		f.granted(key, at, grant)
		f.keepLock(key)
	}
}

// schedule injects a fault each time it is due. It omits a repetition that would last beyond the end of the window.
func (f *faults) schedule(record *faultRecord) {
	r, spec := f.run, record.spec
	lasts := int64(r.Workload.Lasts(spec))
	again := false
	for due := r.window.Open + int64(spec.At); ; due += int64(spec.Every) {
		now := r.clock.Now()
		if spec.Every > 0 && now > due+int64(spec.Every) {
			continue // the last injection took longer than the interval
		}
		if again && due+lasts >= r.window.End() {
			return
		}
		if !pause.Plain(f.ctx.Done(), time.Duration(due-now)) {
			return
		}
		again = true
		if s, err := f.prepare(spec); err != nil {
			if f.ctx.Err() != nil {
				err = fmt.Errorf("the window ended before the fault could be injected: %w", err)
			}
			f.missed(record, err)
		} else if err := f.inject(record, s); err != nil {
			f.failing.Lock()
			f.failed = errors.Join(f.failed, fmt.Errorf("%s: %w", spec.Name, err))
			f.failing.Unlock()
		}
		if spec.Every == 0 || f.ctx.Err() != nil {
			return
		}
	}
}

// prepare takes the steps that must precede a fault, such as waiting for a holder. It returns an error if the fault
// cannot be injected.
func (f *faults) prepare(spec workloads.Fault) (strike, error) {
	if spec.Kind().Place == workloads.InClients {
		return f.prepareClients(spec)
	}
	r := f.run
	where := store.RunMarks{Mark: r.sign, Ours: r.ownsKey, Name: r.name, TTL: time.Duration(r.Workload.TTL)}
	action, err := r.Faults.Prepare(f.ctx, spec, where)
	return strike{action, every, time.Duration(spec.For)}, err
}

// inject executes a strike and returns when the fault has ended. If the fault cannot be injected or undone, inject
// returns an error, and the run fails.
func (f *faults) inject(record *faultRecord, s strike) error {
	always := context.WithoutCancel(f.ctx) // the fault must be undone even after the window
	injected := f.begin(record, s)
	failed := s.Hit(always)
	if s.Outage == store.Briefly {
		f.resume(injected)
	}
	if s.End != nil {
		pause.Plain(f.ctx.Done(), s.lasts)
		failed = errors.Join(failed, s.End(always))
	}
	f.end(injected)
	return failed
}
