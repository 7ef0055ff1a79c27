package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// snapshot is everything that was counted up to one instant.
type snapshot struct {
	server   *results.Reading
	readings int64 // taken so far
	grants   int64
	probes   strategies.ProbeCounts
	pools    store.Pools
	health   measure.Health
}

// observed is what was seen from outside while the window was open.
type observed struct {
	opened, closed *snapshot // nil if the window never opened
	peak           *results.ServerPeak
	partial        bool // cut short
}

func (r *run) snapshot(ctx context.Context) *snapshot {
	s := &snapshot{server: r.read(ctx), readings: r.readings.Load(), grants: r.grants(), probes: r.probes(), health: measure.ReadHealth()}
	for _, i := range r.instances {
		if i.store != nil {
			p := i.store.Pools()
			s.pools.Waits += p.Waits
			s.pools.WaitedNS += p.WaitedNS
			s.pools.Timeouts += p.Timeouts
		}
	}
	return s
}

// errInterrupted ends the phases early without being a failure of the run.
var errInterrupted = errors.New("interrupted")

// observe lives through warm-up and window with the clients and takes the
// server's counters at both ends of the window. Afterwards the window is closed,
// early when ctx ends or the servers are gone, which is the error returned.
func (r *run) observe(ctx context.Context) (observed, error) {
	var o observed
	always := context.WithoutCancel(ctx)
	r.phase("warm-up")
	err := r.await(ctx, r.clock.Time(r.window.Open), nil)
	if err == nil {
		r.phase("measure")
		o.opened = r.snapshot(always)
		err = r.await(ctx, r.clock.Time(r.window.End()), func() { r.sample(ctx, &o.peak) })
	}
	r.window.Close()
	r.disturbance.end()
	if r.disturbance.halted() { // nobody could look
		_ = r.undisturbed() // asked for again below
	}
	o.partial = err != nil
	if o.opened != nil {
		o.closed = r.snapshot(always)
		r.markEnd(o.closed.server)
		if r.remote() && o.closed.server == nil && !r.dead.Load() && (err == nil || errors.Is(err, errInterrupted)) {
			err = errors.Join(r.stillThere(always), err)
		}
		if gone := context.Cause(r.life); gone != nil && !errors.Is(err, gone) { // while it looked
			err = errors.Join(gone, err)
		}
	}
	if failure := r.undisturbed(); failure != nil {
		err, o.partial = errors.Join(err, failure), true
	}
	if errors.Is(err, errInterrupted) && !r.dead.Load() {
		err = nil
	}
	return o, err
}

// undisturbed waits until what was going wrong is over.
func (r *run) undisturbed() error {
	failure := r.disturbance.wait()
	if failure != nil {
		r.dead.Store(true)
		return fmt.Errorf("%w: %w", ErrServerGone, failure)
	}
	return nil
}

// sampling is how often the counters are looked at meanwhile: seldom enough to
// cost nothing.
const sampling = time.Second

// glance is how long it may take: then the next one is due.
const glance = sampling

// await passes the time until an instant or until the window has closed, and has
// a look at the beginning and every second, if there is one to have.
func (r *run) await(ctx context.Context, until time.Time, look func()) error {
	due := time.NewTimer(time.Until(until))
	defer due.Stop()
	if look == nil {
		look = func() {}
	}
	look()
	beats := time.NewTicker(sampling)
	defer beats.Stop()
	for {
		select {
		case <-beats.C:
			if !r.unanswered.Load() {
				look()
			}
		case <-due.C:
			return nil
		case <-r.window.Closed():
			return nil
		case <-r.life.Done():
			return context.Cause(r.life)
		case <-ctx.Done():
			return errInterrupted
		}
	}
}

// sample looks for peaks and adds to the timeline.
func (r *run) sample(ctx context.Context, peak **results.ServerPeak) {
	if r.disturbance.halted() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	reading := r.read(ctx)
	r.mark(reading)
	if !r.remote() {
		return
	}
	if reading == nil {
		r.troubled()
		return
	}
	if *peak == nil {
		*peak = &results.ServerPeak{}
	}
	(*peak).Raise(reading.Clients, reading.Memory, r.Target.Subscriptions(ctx))
}
