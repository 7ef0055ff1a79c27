package engine

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// client is one client of a run. It repeats a cycle: acquire, hold, release and, in a closed loop, think.
type client struct {
	run      *run
	id       int
	instance *instance
	record   *measure.Client
	waiter   *measure.Waiter
	random   *rand.Rand         // source of keys, holds and thinks; in an open loop it belongs to the arrival
	traced   *workloads.Arrival // the arrival of a trace that it serves; else nil
	returned atomic.Bool
	burst    *burst // the last burst of a herd in which it took part
	first    bool   // it holds the lock as the first client after the leader in its burst
}

// retryPause is how long a client pauses after an error. Without the pause, clients would flood a dead server.
const retryPause = 50 * time.Millisecond

// cycle executes one cycle. thinking is the instant at which the client began to think. cycle returns the instant at
// which the client begins to think again, and false when the run is over.
func (c *client) cycle(thinking int64) (int64, bool) {
	r, clock := c.run, c.run.clock
	c.park()
	if r.herd != nil {
		r.herd.wait(c)
	}
	r.faults.yieldToTargets()
	// Read stopping before the clock. If stopping is true, the window has ended, and the client's time account already
	// covers all of it.
	stopping := r.control.stopping.Load()
	asked := clock.Now()
	due := asked
	if r.arrivals != nil && !stopping {
		next := r.arrivals.arrive()
		due, c.random, c.traced = next.due, next.random, next.traced
		c.sleep(time.Duration(due - asked))
		free := asked
		stopping = r.control.stopping.Load()
		asked = clock.Now()
		defer c.record.Started(due, free, asked) // deferred, because it may wait for readers of the records
		if free <= due {
			due = asked // the client was free in time, so the delay is only that of its timer
		}
	}
	c.record.Thought(thinking, asked)
	if stopping {
		if due < asked { // no client was free when this arrival was due
			c.record.Waited(measure.Stopped, due, asked, asked, 0)
		}
		return asked, false
	}
	key := c.key()
	var done int64
	if r.Workload.Coalesce {
		done = c.share(key, due, asked)
	} else {
		done, _ = c.contend(key, due, asked)
	}
	if r.herd != nil {
		r.herd.done(c)
	}
	c.sleep(r.Workload.Think.Draw(c.random))
	return done, true
}

// key returns the key of the next acquisition, from the trace or at random.
func (c *client) key() int {
	if c.traced != nil {
		return c.traced.Key
	}
	return c.run.chooser.Choose(c.random)
}

// requestedHold returns the hold that the workload requests, from the trace or at random.
func (c *client) requestedHold() time.Duration {
	if c.traced != nil && c.traced.Hold >= 0 {
		return c.traced.Hold
	}
	return c.run.Workload.Hold.Draw(c.random)
}

// share joins an acquisition of the same key that is under way in this instance, or
// begins one. It returns the instant at which that acquisition ends.
func (c *client) share(key int, due, asked int64) int64 {
	led, done := false, int64(0)
	_, err, _ := c.instance.flights.Do(c.run.keys[key], func() (any, error) {
		var err error
		led = true
		done, err = c.contend(key, due, asked)
		return nil, err
	})
	if led {
		return done
	}
	done = c.run.clock.Now()
	if err != nil {
		c.record.Waited(c.outcome(err, done-asked), due, asked, done, 0)
	} else {
		c.record.Served(due, asked, done)
	}
	return done
}

// contend acquires the lock, does the work and releases. It returns the instant at which the release or the failed wait
// ended. It returns an error if it obtained no lease or the work failed. Clients that share the acquisition receive the
// same error.
func (c *client) contend(key int, due, asked int64) (int64, error) {
	r, clock, audit := c.run, c.run.clock, c.run.audit[key]
	audit.Arrive(c.waiter, due, asked)
	lease, err := Acquire(r.control.acquire, c.instance.locker, r.keys[key], (*time.Duration)(r.Workload.Timeout))
	granted := clock.Now()
	r.waited(asked, granted)
	if err != nil {
		outcome := c.outcome(err, granted-asked)
		c.record.Waited(outcome, due, asked, granted, audit.Leave(c.waiter, granted))
		if outcome == measure.Failed {
			r.fail(err)
			c.sleep(retryPause)
		}
		return granted, err
	}
	counted := r.window.Count(granted)
	grant := audit.Enter(c.waiter, granted, lease)
	hold := c.requestedHold()
	if r.herd != nil {
		r.herd.granted(c, granted)
	}
	r.faults.acquired(key, granted, grant)
	if r.Observer != nil {
		r.Observer.Holding(c.id)
	}
	commit, failure := c.work(key, granted+int64(hold), lease)
	if failure != nil {
		r.fail(failure)
	}
	if r.Observer != nil {
		r.Observer.Releasing(c.id)
	}
	if r.herd != nil {
		r.herd.releasing(c)
	}
	released := clock.Now()
	if r.misread != nil {
		released = r.misread(granted, released)
	}
	done := r.giveBack(key, c.waiter, lease, released)
	record := Acquisition{
		Client: c.id, Key: key, Due: due, Asked: asked, Granted: granted, Released: released, Done: done,
		Grant: grant, Hold: int64(hold), Counted: counted && r.window.Contains(granted),
	}
	c.record.Acquired(record)
	if r.Observer != nil {
		r.Observer.Acquired(record)
	}
	if commit != nil { // this counts as thinking, because the client no longer holds the lock
		if failure = commit(); failure != nil {
			r.fail(failure)
		}
	}
	if failure != nil {
		c.sleep(retryPause)
	}
	return done, failure
}

// giveBack releases a lease, and returns the instant at which the release ended. The hold ended at holdEnded.
func (r *run) giveBack(key int, waiter *measure.Waiter, lease strategies.Lease, holdEnded int64) int64 {
	audit := r.audit[key]
	audit.Exit(waiter, holdEnded)
	err := lease.Release(r.control.release)
	done := r.clock.Now()
	audit.Settle(waiter, lease, err)
	switch {
	case err == nil:
		if len(r.Workload.Faults) > 0 {
			audit.Freed(done)
		}
	case errors.Is(err, strategies.ErrNotHeld):
		audit.Lost()
	default:
		r.fail(err)
	}
	return done
}

// outcome classifies a wait that ended with err and without a lease. waited is the length of the wait in nanoseconds.
func (c *client) outcome(err error, waited int64) measure.Outcome {
	timeout := c.run.Workload.Timeout
	return outcomeOf(err, timeout != nil && waited >= int64(*timeout), c.run.control.stopping.Load())
}

// sleep waits for d or until the run is over.
func (c *client) sleep(d time.Duration) { c.run.sleepers.Sleep(c.run.control.acquire.Done(), d) }

// park blocks a client of a closed loop while the stages require fewer clients.
func (c *client) park() {
	r := c.run
	if r.arrivals != nil || len(r.Workload.Stages) == 0 {
		return
	}
	for !r.control.stopping.Load() {
		now := time.Duration(r.clock.Now() - r.window.Open)
		at, ever := reach(r.Workload.Stages, now, float64(c.id+1))
		switch {
		case !ever:
			<-r.control.acquire.Done()
		case at <= max(now, 0):
			return
		default:
			c.sleep(at - now)
		}
	}
}

// work holds the lock until the instant until and does the holder's work. If the workload has a counter or a row, work
// reads it before the hold and writes it after the hold. If the workload commits a transaction only after the release,
// work returns the commit; otherwise nil.
func (c *client) work(key int, until int64, lease strategies.Lease) (commit func() error, err error) {
	switch c.run.Workload.Work {
	case workloads.WorkCounter:
		return nil, c.run.count(c.instance, key, lease, func() { c.hold(until) })
	case workloads.WorkTransaction:
		length := until - c.run.clock.Now()
		return c.run.transact(key, func() {
			c.hold(until)
			until = c.run.clock.Now() + length // a repeated transaction holds for the same length again
		})
	case workloads.WorkSpin:
		for c.run.clock.Now() < until && !c.run.control.stopping.Load() {
		}
	default:
		c.hold(until)
	}
	return nil, nil
}

// hold returns at the instant until, or earlier if the run is over.
func (c *client) hold(until int64) {
	if c.run.Workload.Hold.IsZero() && c.traced == nil {
		return
	}
	if left := until - c.run.clock.Now(); left > 0 {
		c.sleep(time.Duration(left))
	}
}

// Observer is notified of every acquisition of a run. Tests check the harness with an Observer. The clients' goroutines
// call its methods concurrently. The time that Holding and Releasing take is part of the hold.
type Observer interface {
	// Holding is called just after the instant at which the recorded hold of a client begins.
	Holding(client int)
	// Releasing is called just before the instant at which the recorded hold ends.
	Releasing(client int)
	// Acquired is called after the release with the record of the acquisition.
	Acquired(Acquisition)
}

// Acquisition records the client, the key and the instants of one acquisition.
type Acquisition = measure.Acquisition
