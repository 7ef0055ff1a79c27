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
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// disturbance injects the workload's faults when they are due and records their effects
// on the locks.
type disturbance struct {
	run    *run
	ctx    context.Context // ends with the window
	cancel context.CancelFunc
	going  sync.WaitGroup
	idle   int64 // ns that a key may stay free before its waiters count as forgotten

	targets atomic.Int64 // targets opened so far
	faults  []*fault     // this list never changes, so clients look without mu whether it is empty

	mu           sync.Mutex
	last         *injection // the latest injection of any fault
	base         results.Safety
	halts        int   // outages under way
	haltEnd      int64 // end of the latest outage
	pinned       []*pinnedHolder
	waitingFirst int           // fault targets that wait for a lock with priority
	yielding     chan struct{} // closed when no such target waits any longer
	loses        bool          // a fault made Redis lose confirmed writes
	broken       error         // an error while a fault was injected or undone
}

// fault is one fault of the workload.
type fault struct {
	spec       workloads.Fault
	injections []*injection
	open       []*injection // injections still under observation
	missed     []string
	spared     bool // there was no target for it
}

// longestIdle is how long a key with waiters may stay free. Clients that poll do so more
// often by default.
const longestIdle = time.Second

// disturb prepares the faults of a run.
func (r *run) disturb(ctx context.Context) *disturbance {
	d := &disturbance{run: r, idle: int64(min(longestIdle, time.Duration(r.Workload.TTL)/2))}
	d.ctx, d.cancel = context.WithCancel(ctx)
	for _, f := range r.Workload.Faults {
		d.faults = append(d.faults, &fault{spec: f})
	}
	return d
}

// start starts the schedule of every fault.
func (d *disturbance) start() {
	for _, f := range d.faults {
		d.going.Go(func() { d.schedule(f) })
	}
}

// end is called at the end of the window: no new fault begins, and faults under way are
// undone.
func (d *disturbance) end() {
	d.cancel()
	end := d.run.window.End()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.run.audit {
		d.forgotten(end, k.Idle(end))
	}
}

// wait waits until no fault is under way. It returns the errors of faults that could not
// be injected or undone.
func (d *disturbance) wait() error {
	d.going.Wait()
	return d.broken
}

// schedule injects a fault each time it is due, if it can be over before the window ends.
func (d *disturbance) schedule(f *fault) {
	lasts := int64(d.run.Workload.Lasts(f.spec))
	again := false
	for due := d.run.window.Open + int64(f.spec.At); ; due += int64(f.spec.Every) {
		now := d.run.clock.Now()
		if f.spec.Every > 0 && now > due+int64(f.spec.Every) {
			continue // the last injection took longer than the interval
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
			f.missed = append(f.missed, untrusted.Printable(err.Error()))
			f.spared = errors.Is(err, store.ErrNoTarget)
			d.mu.Unlock()
		}
		if f.spec.Every == 0 || d.ctx.Err() != nil {
			return
		}
	}
}

// bring injects a fault and returns when it is over.
func (d *disturbance) bring(f *fault) error {
	if f.spec.Kind().Place == workloads.InClients {
		return d.bringToClient(f)
	}
	r := d.run
	where := store.RunMarks{Mark: r.sign, Ours: r.mine, Name: r.name, TTL: time.Duration(r.Workload.TTL)}
	action, err := r.Faults.Prepare(d.ctx, f.spec, where)
	if err != nil {
		return err
	}
	d.inject(f, action)
	return nil
}

// inject injects a fault of the servers and returns when it is over. An error here
// ends the run.
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

// halted says whether an outage is under way in which no client can get a lock.
func (d *disturbance) halted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.halts > 0
}

// excuses says whether faults explain that the servers do not answer: an outage, or several faults at once, which
// together may leave too few nodes.
func (d *disturbance) excuses() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	lasting := 0
	for _, f := range d.faults {
		if f.spec.Kind().Place == workloads.InClients {
			continue
		}
		for _, s := range f.injections {
			if s.lasting {
				lasting++
			}
		}
	}
	return d.halts > 0 || lasting > 1
}

// yield makes other clients wait before they ask for a lock, until served is called.
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

// standBack waits while a fault target must get its lock first.
func (d *disturbance) standBack() {
	if len(d.faults) == 0 {
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
