package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/strategies"
)

// mostCycles limits the number of cycles that are not recorded yet. Each of them takes about 200 bytes.
const mostCycles = 2 << 20

// driven collects the cycles of a run with drivers, including those of clients in this process that contend with a
// driver's clients. The events on a key must be recorded in order. Therefore advance records an event only when every
// client has reported everything that it did before that event.
type driven struct {
	start int64 // when the clients start

	mu       sync.Mutex
	reported []reported // since the last advance
	until    []int64    // by client, the instant up to which its cycles are reported
	cycles   int64      // number reported in total
	kept     int        // number reported and not recorded yet
	failed   []error
	ended    bool // further reports are refused

	// Only the run's goroutine uses the following fields.
	pending []event // not recorded yet
	order   int64   // order of the next event
	grants  []measure.Grant
	ends    []int64 // by client, the end of the last cycle that was recorded
	slack   []int64 // by client, the remaining ns of its last think
	// unended counts the waits of drivers' clients that were open at the end of the run and may still be open.
	unended int
	own     float64 // ns in the window that drivers used for themselves: no wait, hold, release or requested think
}

// reported is a Cycle with the Step that requested it.
type reported struct {
	Cycle
	Step
}

// These are the kinds of events. Events at the same instant are recorded in this order, so that a lease that ends when
// another begins does not overlap it. grantedAndReleases is the grant of a lease of length 0, which ends before any
// other lease begins.
const (
	releases = iota
	givesUp
	asks
	grantedAndReleases
	granted
	noted
)

// event is one event of a client's cycle, such as the grant of a lease, or a function to call at that point of the
// record.
type event struct {
	at    int64
	kind  int
	order int64 // order in which the events became known
	cycle *reported
	note  func(now int64)
}

// begin sets the instant at which the clients start.
func (d *driven) begin(clients int, at int64) {
	d.start = at
	d.until = slices.Repeat([]int64{at}, clients)
	d.ends, d.slack = slices.Clone(d.until), make([]int64, clients)
	d.grants = make([]measure.Grant, clients)
}

// note calls do with the current instant. Without drivers it calls do at once. With drivers it does so when all events
// before that instant are recorded.
func (r *run) note(do func(now int64)) {
	if r.driven == nil {
		do(r.clock.Now())
		return
	}
	r.driven.add(event{at: r.clock.Now(), kind: noted, note: do})
}

// report stores the cycles that a driver reports. It returns an error if more than mostCycles would wait to be
// recorded.
func (d *driven) report(steps []Step, cycles []Cycle) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return errors.New("the run is over")
	}
	if d.kept+len(cycles) > mostCycles {
		return fmt.Errorf("lockbench cannot keep more than %d cycles while a client has not reported yet; use a longer "+
			"--hold or a shorter --duration", mostCycles)
	}
	d.kept += len(cycles)
	d.cycles += int64(len(cycles))
	for _, c := range cycles {
		d.reported = append(d.reported, reported{c, steps[c.Step]})
		d.until[c.Client] = max(d.until[c.Client], c.Done)
	}
	return nil
}

// soFar returns the number of cycles reported so far. running is false without drivers and after they have ended.
func (d *driven) soFar() (cycles int64, running bool) {
	if d == nil {
		return 0, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cycles, !d.ended
}

// fail records the error with which a driver ended, and returns it.
func (d *driven) fail(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = append(d.failed, err)
	return err
}

func (d *driven) add(e event) {
	e.order = d.order
	d.order++
	d.pending = append(d.pending, e)
}

// due converts the reported cycles to events. It returns, in order, the events up to now that no event reported later
// can precede. It sorts only these, because a client with a long wait may hold back millions of other events.
func (d *driven) due(now int64) (due []event) {
	d.mu.Lock()
	all := d.reported
	d.reported = nil
	until := min(slices.Min(d.until), now+1)
	if d.ended {
		until = math.MaxInt64
	}
	d.mu.Unlock()
	for i := range all {
		c := &all[i]
		d.add(event{at: c.Asked, kind: asks, cycle: c})
		switch {
		case c.Granted == 0:
			d.add(event{at: c.Done, kind: givesUp, cycle: c})
		case c.Granted == c.Released:
			d.add(event{at: c.Granted, kind: grantedAndReleases, cycle: c})
		default:
			d.add(event{at: c.Granted, kind: granted, cycle: c})
			d.add(event{at: c.Released, kind: releases, cycle: c})
		}
	}
	d.pending = slices.DeleteFunc(d.pending, func(e event) bool {
		if e.at < until {
			due = append(due, e)
		}
		return e.at < until
	})
	slices.SortFunc(due, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.order, b.order))
	})
	return due
}

// advance records the reported cycles as far as their order is certain. A client with a long wait holds back the events
// of the other clients since the beginning of that wait.
func (r *run) advance() {
	d := r.driven
	if d == nil {
		return
	}
	recorded := 0
	for _, e := range d.due(r.clock.Now()) {
		if e.kind == noted {
			e.note(e.at)
			continue
		}
		if r.happened(e.kind, *e.cycle) {
			recorded++
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kept -= recorded
}

// happened records an event of a cycle, and reports whether it was the cycle's last event.
func (r *run) happened(kind int, c reported) (last bool) {
	d, client, key := r.driven, r.clients[c.Client], r.audit[c.Key]
	switch kind {
	case asks:
		d.own += float64(max(0, c.Asked-max(d.ends[c.Client], r.window.Open)-d.slack[c.Client]))
		client.record.Thought(d.ends[c.Client], c.Asked)
		key.Arrive(client.waiter, c.Asked, c.Asked)
		return false
	case givesUp:
		r.gaveUp(client, key, c)
	case granted, grantedAndReleases:
		d.grants[c.Client] = key.Enter(client.waiter, c.Granted, c.lease(r.clock))
		if kind == granted {
			return false
		}
	}
	if kind != givesUp {
		r.released(client, key, c, d.grants[c.Client])
	}
	d.ends[c.Client], d.slack[c.Client] = c.Done, int64(c.Think)
	return true
}

// replay records the remaining events when the drivers have ended, and returns the drivers' errors.
func (r *run) replay() error {
	d := r.driven
	if d == nil {
		return nil
	}
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	r.advance()
	for id, end := range d.ends {
		r.clients[id].record.Thought(end, max(end, r.window.End()))
	}
	return errors.Join(d.failed...)
}

// gaveUp records a wait that ended without a lease.
func (r *run) gaveUp(client *client, key *measure.Key, c reported) {
	driver := client.instance.strategy.Info().Driver
	outcome := outcomeOf(c.Error, r.Workload.Timeout != nil || !driver, c.Done >= r.window.End())
	switch {
	case outcome == measure.Failed:
		r.fail(errors.New(string(c.Error)))
	case outcome == measure.Stopped && driver:
		r.driven.unended++
	}
	r.waited(c.Asked, c.Done)
	client.record.Waited(outcome, c.Asked, c.Asked, c.Done, key.Leave(client.waiter, c.Done))
}

// released records a lease and its release.
func (r *run) released(client *client, key *measure.Key, c reported, grant measure.Grant) {
	r.waited(c.Asked, c.Granted)
	key.Exit(client.waiter, c.Released)
	client.record.Acquired(Acquisition{
		Client: c.Client, Key: c.Key,
		Due: c.Asked, Asked: c.Asked, Granted: c.Granted, Released: c.Released, Done: c.Done,
		Grant: grant, Hold: int64(c.Hold), Counted: r.window.Contains(c.Granted),
	})
	driver := client.instance.strategy.Info().Driver
	if driver { // clients in this process have counted their updates themselves
		r.done[c.Key].Add(1)
	}
	switch c.Error {
	case "":
	case CycleNotHeld:
		key.Lost()
	default:
		if driver {
			r.uncertain.Add(1)
		}
		r.fail(errors.New(string(c.Error)))
	}
}

// lease returns the lease of a cycle in the form that the audit needs.
func (c Cycle) lease(clock measure.Clock) (held strategies.Lease) {
	held = heldElsewhere{}
	if c.Token != nil {
		held = fencedElsewhere{held, *c.Token}
	}
	if c.Until != nil {
		held = timedElsewhere{held, clock.Time(*c.Until)}
	}
	return held
}

// heldElsewhere is a lease of a driver's client. It cannot be released in this process.
type heldElsewhere struct{}

func (heldElsewhere) Release(context.Context) error { return errors.ErrUnsupported }

type fencedElsewhere struct {
	strategies.Lease
	token int64
}

func (f fencedElsewhere) FencingToken() int64      { return f.token }
func (f fencedElsewhere) Unwrap() strategies.Lease { return f.Lease }

type timedElsewhere struct {
	strategies.Lease
	until time.Time
}

func (t timedElsewhere) ValidUntil() time.Time    { return t.until }
func (t timedElsewhere) Unwrap() strategies.Lease { return t.Lease }
