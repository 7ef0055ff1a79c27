package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// disturbance brings the workload's faults about when they are due, and watches
// what becomes of the locks.
type disturbance struct {
	run    *run
	ctx    context.Context // ends with the window
	cancel context.CancelFunc
	going  sync.WaitGroup
	idle   int64 // ns that a key may stay free before its waiters count as forgotten

	targets atomic.Int64 // so far

	mu           sync.Mutex
	faults       []*fault
	last         *injection // of any fault
	base         results.Safety
	halts        int   // under way
	haltEnd      int64 // of the last one that is over
	pinned       []*pinnedHolder
	waitingFirst int           // targets that must have the lock now
	yielding     chan struct{} // closed once they have
	loses        bool          // what Redis had confirmed
	broken       error         // what went wrong with going wrong
}

// fault is one of the workload's.
type fault struct {
	spec       workloads.Fault
	injections []*injection
	open       []*injection // that more is to be seen of
	missed     []string
	spared     bool // there was nothing to hit
}

// longestIdle is how long a waiter may leave a free key alone. Those who poll do so
// more often, unless they are told otherwise.
const longestIdle = time.Second

// disturb begins; nil for a workload without faults.
func (r *run) disturb(ctx context.Context) *disturbance {
	if len(r.Workload.Faults) == 0 {
		return nil
	}
	d := &disturbance{run: r, idle: int64(min(longestIdle, time.Duration(r.Workload.TTL)/2))}
	d.ctx, d.cancel = context.WithCancel(ctx)
	for _, f := range r.Workload.Faults {
		d.faults = append(d.faults, &fault{spec: f})
	}
	return d
}

// start has every fault wait for its time.
func (d *disturbance) start() {
	if d == nil {
		return
	}
	for _, f := range d.faults {
		d.going.Go(func() { d.schedule(f) })
	}
}

// end comes with the end of the window: nothing more goes wrong, and what is under
// way is undone.
func (d *disturbance) end() {
	if d == nil {
		return
	}
	d.cancel()
	end := d.run.window.End()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.run.audit {
		d.forgotten(end, k.Idle(end))
	}
}

// wait returns once nothing is under way any more, with what could not be done or
// undone.
func (d *disturbance) wait() error {
	if d == nil {
		return nil
	}
	d.going.Wait()
	return d.broken
}

// schedule has a fault come about whenever it is due and can be over in time.
func (d *disturbance) schedule(f *fault) {
	lasts := int64(d.run.Workload.Lasts(f.spec))
	again := false
	for due := d.run.window.Open + int64(f.spec.At); ; due += int64(f.spec.Every) {
		now := d.run.clock.Now()
		if f.spec.Every > 0 && now > due+int64(f.spec.Every) {
			continue // it took longer than that the last time
		}
		if again && due+lasts >= d.run.window.End() {
			return
		}
		if !pause.Plain(d.ctx.Done(), time.Duration(due-now)) {
			return
		}
		again = true
		if err := d.bring(f); err != nil {
			if d.ctx.Err() != nil {
				err = fmt.Errorf("the window ended before it could come about: %w", err)
			}
			d.mu.Lock()
			f.missed = append(f.missed, err.Error())
			f.spared = errors.Is(err, store.ErrNoTarget)
			d.mu.Unlock()
		}
		if f.spec.Every == 0 || d.ctx.Err() != nil {
			return
		}
	}
}

// bring has a fault come about and returns when it is over.
func (d *disturbance) bring(f *fault) error {
	if f.spec.Kind().Place == workloads.InClients {
		return d.bringToClient(f)
	}
	r := d.run
	action, err := r.Faults.Prepare(d.ctx, f.spec, store.RunMarks{Mark: r.sign, Name: r.name, TTL: time.Duration(r.Workload.TTL)})
	if err != nil {
		return err
	}
	d.inject(f, action)
	return nil
}

// inject has a fault of the servers come about and returns when it is over. What
// cannot be undone ends the run.
func (d *disturbance) inject(f *fault, action store.Action) {
	always := context.WithoutCancel(d.ctx)
	s := d.begin(f, every, d.run.clock.Now(), action.Outage != store.NoOutage)
	d.lasts(s)
	failed := action.Hit(always)
	if action.Outage == store.Briefly {
		d.resume(s, d.run.clock.Now())
	}
	if action.End != nil {
		pause.Plain(d.ctx.Done(), time.Duration(f.spec.For))
		failed = errors.Join(failed, action.End(always))
	}
	if action.Outage == store.Throughout {
		d.resume(s, d.run.clock.Now())
	}
	d.ends(s)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.loses = d.loses || action.Loses
	if failed != nil {
		d.broken = errors.Join(d.broken, fmt.Errorf("%s: %w", f.spec.Name, failed))
	}
}

// halted says whether a fault is under way that keeps everybody from the locks.
func (d *disturbance) halted() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.halts > 0
}

// yield has whoever would ask for a lock wait until somebody who must have it has
// got it.
func (d *disturbance) yield() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waitingFirst == 0 {
		d.yielding = make(chan struct{})
	}
	d.waitingFirst++
}

// served ends a yield.
func (d *disturbance) served() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waitingFirst--; d.waitingFirst == 0 {
		close(d.yielding)
		d.yielding = nil
	}
}

// standBack lets those go first who must.
func (d *disturbance) standBack() {
	if d == nil {
		return
	}
	d.mu.Lock()
	yielding := d.yielding
	d.mu.Unlock()
	if yielding != nil {
		select {
		case <-yielding:
		case <-d.ctx.Done():
		}
	}
}
