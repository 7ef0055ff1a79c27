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

// snapshot holds the counters of the servers, the strategy and this process at one instant.
type snapshot struct {
	server   *results.Reading
	hub      *results.Reading // reading of Job.Hub; only at the window's ends
	rows     *results.Reading // reading of Job.Transactor, if that is not the locks' server; only at the window's ends
	readings int64            // number of readings so far
	answered time.Duration    // how long the servers took to reply to the reading
	grants   int64
	probes   strategies.ProbeCounts
	drivers  *float64 // CPU seconds of the drivers' processes; nil without drivers
	pools    store.Pools
	health   measure.Health
}

// observed holds the engine's own observations of the window, apart from the clients' records.
type observed struct {
	opened, closed *snapshot // nil if the window never opened
	peak           *results.ServerPeak
	partial        bool // the window was cut short
}

// edge takes the snapshot at one end of the window.
func (r *run) edge(ctx context.Context) *snapshot {
	asked := time.Now()
	hub := r.readHub(ctx)
	answered := time.Since(asked)
	s := r.snapshot(ctx)
	s.hub, s.answered = hub, s.answered+answered
	s.rows = r.readRows(ctx) // only for the CPU time, so it must not delay the snapshot
	return s
}

func (r *run) snapshot(ctx context.Context) *snapshot {
	asked := time.Now()
	server := r.read(ctx)
	s := &snapshot{
		server: server, answered: time.Since(asked), readings: r.readings.Load(), probes: r.probes(),
		drivers: r.driverCPU(), health: measure.ReadHealth(),
	}
	r.note(func(int64) { s.grants = r.recorded() })
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

// errInterrupted ends a phase early without failing the run.
var errInterrupted = errors.New("interrupted")

// observe waits for the beginning and the end of the window and reads the servers' counters at both. Then it closes the
// window. If ctx ends or the servers stop replying, observe closes the window early. If the servers stopped replying,
// it also returns an error.
func (r *run) observe(ctx context.Context) (observed, error) {
	var o observed
	always := context.WithoutCancel(ctx)
	r.phase("warm-up")
	err := r.await(ctx, r.clock.Time(r.window.Open), nil)
	if err == nil {
		r.phase("measure")
		o.opened = r.edge(always)
		err = r.await(ctx, r.clock.Time(r.window.End()), func() { r.sample(ctx, &o) })
	}
	r.window.Close()
	r.faults.stop()
	if r.faults.halted() { // nothing can be read during an outage
		_ = r.awaitFaults() // called again below for its error
	}
	o.partial = err != nil
	if o.opened != nil {
		o.closed = r.edge(always)
		r.markEnd(o.closed.server)
		if r.remote() && o.closed.server == nil && !r.dead.Load() && (err == nil || errors.Is(err, errInterrupted)) {
			err = errors.Join(r.checkServersAlive(always), err)
		}
		if gone := context.Cause(r.life); gone != nil && !errors.Is(err, gone) {
			// The heartbeat found during the snapshot that the servers had stopped replying.
			err = errors.Join(gone, err)
		}
	}
	if failure := r.awaitFaults(); failure != nil {
		err, o.partial = errors.Join(err, failure), true
	}
	if errors.Is(err, errInterrupted) && !r.dead.Load() {
		err = nil
	}
	return o, err
}

// awaitFaults waits until no fault is under way. It returns an ErrServerGone if a fault could not be injected or
// undone.
func (r *run) awaitFaults() error {
	failure := r.faults.wait()
	if failure != nil {
		r.dead.Store(true)
		return fmt.Errorf("%w: %w", ErrServerGone, failure)
	}
	return nil
}

// sampling is the interval between readings inside the window. It is long enough that the cost of the readings is
// negligible.
const sampling = time.Second

// readingLimit limits the duration of one reading inside the window, because the next reading is then due.
const readingLimit = sampling

// await returns at the instant until, or earlier if the window closes early. If look is not nil, await calls it at the
// beginning and every second. await returns errInterrupted if ctx ends, or the reason if the heartbeat ends the run.
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

// sample takes a reading, updates the peaks and extends the timeline.
func (r *run) sample(ctx context.Context, o *observed) {
	if r.faults.halted() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readingLimit)
	defer cancel()
	reading := r.read(ctx)
	r.note(func(now int64) {
		before := len(r.timeline.slices)
		r.markAt(now, reading)
		if r.driven != nil && r.driven.ended { // the run is over
			return
		}
		if n := len(r.timeline.slices); n > before && r.Second != nil {
			r.Second(r.timeline.slices[n-1])
		}
		if r.Watch != nil {
			ages := r.ages(now)
			r.Watch(r.soFar(*o.opened, reading, now, ages), ages)
		}
	})
	r.advance()
	if !r.remote() {
		return
	}
	if reading == nil {
		r.troubled()
		return
	}
	if o.peak == nil {
		o.peak = &results.ServerPeak{}
	}
	o.peak.Raise(reading.Clients, reading.Memory, r.Target.Subscriptions(ctx))
}

// timeline divides the window into slices of one second. When there are mostSlices slices, it merges them in pairs, so
// that the slices become two seconds long, then four, and so on.
type timeline struct {
	slices    []results.Slice
	every     int // calls of markAt per slice
	snapshots int // calls of markAt since the last slice
	last      instant
}

// instant holds the counters at one edge of a slice.
type instant struct {
	at     time.Duration // since the window opened
	grants int64
	server *results.Reading
}

const mostSlices = 1024

// markAt counts its calls. Every timeline.every calls it adds a slice with the counts since the previous slice. The
// first call only sets the starting point.
func (r *run) markAt(at int64, reading *results.Reading) {
	t := &r.timeline
	now := instant{at: time.Duration(at - r.window.Open), grants: r.recorded(), server: reading}
	if t.every == 0 {
		t.every, t.last = 1, now
		r.recorder.Recent(r.ages(at)) // discard the waits of the warm-up
		return
	}
	if t.snapshots++; t.snapshots < t.every {
		return
	}
	t.slices = append(t.slices, r.slice(t.last, now, r.ages(at)))
	t.snapshots, t.last = 0, now
	if len(t.slices) == mostSlices {
		t.slices = results.Halve(t.slices)
		t.every *= 2
	}
}

// short is the minimum length of the last slice of a window.
const short = 100 * time.Millisecond

// markEnd adds the time since the last slice to the timeline, unless that time is shorter than short.
func (r *run) markEnd(reading *results.Reading) {
	r.note(func(now int64) {
		t := &r.timeline
		if t.every == 0 || time.Duration(r.window.Length())-t.last.at < short {
			return
		}
		t.snapshots = t.every
		r.markAt(now, reading)
	})
}

func (r *run) slice(from, to instant, ages []results.Wait) results.Slice {
	s := results.Slice{
		At:           max(0, from.at.Seconds()),
		Seconds:      (to.at - from.at).Seconds(),
		Acquisitions: to.grants - from.grants,
	}
	s.Waiting = len(ages)
	waits := r.recorder.Recent(ages)
	s.WaitP50, s.WaitP99, s.WaitMax = waits.P50, waits.P99, waits.Max
	if !r.shared() { // another process may have taken the next lease on a key
		s.HandoffP50, s.HandoffP99 = waits.HandoffP50, waits.HandoffP99
	}
	if from.server != nil && to.server != nil {
		d := to.server.Since(*from.server, s.Acquisitions)
		r.unseenTraffic(d)
		s.Commands, s.RedisCPU, s.RoundTrips, s.Connected = d.Calls, d.CPU, d.RoundTrips, nil
		if clients := to.server.Clients; clients > 0 { // 0 means unknown
			s.Connected = &clients
		}
	}
	return s
}

// ages returns how long each open wait has lasted at the instant now.
func (r *run) ages(now int64) []results.Wait {
	var ages []results.Wait
	for _, k := range r.audit {
		ages = k.Ages(ages, now)
	}
	return ages
}
