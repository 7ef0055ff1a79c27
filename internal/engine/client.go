package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// control stops the clients of a run.
type control struct {
	acquire       context.Context // ends when the run is over: no client waits any longer
	cancelAcquire context.CancelFunc
	release       context.Context // ends only when draining has taken too long
	cancelRelease context.CancelFunc
	stopping      atomic.Bool // true once acquire has ended; cheaper to read
	trouble       chan struct{}
	running       sync.WaitGroup
}

// client is one client of the closed loop: it acquires, holds, releases, thinks and repeats.
type client struct {
	run      *run
	id       int
	instance *instance
	record   *measure.Client
	waiter   *measure.Waiter
	random   *rand.Rand // draws keys, holds and thinks; in an open loop the arrival's own source
	returned atomic.Bool
	burst    *burst // the last burst of a herd in which it took part
	first    bool   // it is the first in its burst after the leader, and has the lock
}

// retryPause is the pause after an error. Without it the clients would flood a dead server.
const retryPause = 50 * time.Millisecond

// mostFollowed limits clients × keys: above it the run does not record who reacquires a
// key. Each pair takes 8 bytes.
const mostFollowed = 4 << 20

// start starts all clients at the same time. The window opens after the warm-up.
func (r *run) start(ctx context.Context) {
	w := r.Workload
	r.clock = measure.NewClock()
	r.control.acquire, r.control.cancelAcquire = context.WithCancel(ctx)
	r.control.release, r.control.cancelRelease = context.WithCancel(ctx)
	r.control.trouble = make(chan struct{}, 1)

	r.window = measure.NewWindow(r.clock, w.Iterations)
	r.recorder = measure.NewRecorder(r.window, w.Clients)
	followed := w.Clients
	if w.Clients*len(r.keys) > mostFollowed {
		followed = 0
	}
	for range r.keys {
		key := measure.NewKey(r.window, r.info.Capacity, time.Duration(w.TTL), followed)
		if r.info.Session {
			key.BySession()
		}
		key.Across(w.Instances, w.Clients)
		r.audit = append(r.audit, key)
	}

	// All goroutines exist and wait on begin before the window is planned.
	begin := make(chan int64)
	r.clients = make([]*client, w.Clients)
	for id := range r.clients {
		c := &client{
			run:      r,
			id:       id,
			instance: r.instances[id%len(r.instances)],
			record:   r.recorder.Client(id),
			waiter:   measure.NewWaiter(id),
			random:   clientRandom(w, r.Round, id),
		}
		r.clients[id] = c
		r.control.running.Go(func() {
			defer c.returned.Store(true)
			since, going := <-begin, true
			for going {
				since, going = r.cycle(c, since)
			}
		})
	}
	now := r.clock.Now()
	open, end := now+int64(w.Warmup), int64(0)
	if w.Iterations == 0 {
		end = open + int64(w.Duration)
	}
	r.window.Plan(open, end)
	if w.Slots() {
		r.recorder.OpenLoop()
	}
	r.arrivals = newArrivals(w, now, open, uint64(w.Seed)+uint64(r.Round))
	r.chooser = w.KeyDist.Over(w.Keys)
	r.herd = newHerd(r)
	r.disturbance = r.disturb(ctx)
	for range r.clients {
		begin <- now
	}
	r.disturbance.start()
}

// clientRandom returns a client's own source for a round: its draws do not depend on
// the scheduling of the clients.
func clientRandom(w workloads.Spec, round, id int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(w.Seed), uint64(round)<<32|uint64(id)))
}

// cycle runs the loop once. thinking is the instant since which the client has been
// thinking; cycle returns the next such instant, and false when the run is over.
func (c *client) cycle(thinking int64) (int64, bool) {
	r, clock := c.run, c.run.clock
	c.park()
	if r.herd != nil {
		r.herd.wait(c)
	}
	r.disturbance.standBack()
	// Read this before the clock: if it is true the window has ended, and the accounts
	// up to now cover all of it.
	stopping := r.control.stopping.Load()
	asked := clock.Now()
	due := asked
	if r.arrivals != nil && !stopping {
		due, c.random = r.arrivals.arrive()
		c.sleep(time.Duration(due - asked))
		free := asked
		stopping = r.control.stopping.Load()
		asked = clock.Now()
		c.record.Started(due, free, asked)
		if free <= due {
			due = asked // the client was free in time and waited only for its own timer
		}
	}
	c.record.Thought(thinking, asked)
	if stopping {
		if due < asked { // no client took this arrival in time
			c.record.Waited(measure.Stopped, due, asked, asked, 0)
		}
		return asked, false
	}
	key := r.chooser.Choose(c.random)
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

// contend acquires, works and releases. It returns the instant of the end, and an error
// if it got no lease.
func (c *client) contend(key int, due, asked int64) (int64, error) {
	r, clock, audit := c.run, c.run.clock, c.run.audit[key]
	audit.Arrive(c.waiter, due, asked)
	lease, err := c.acquire(r.keys[key])
	granted := clock.Now()
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
	hold := r.Workload.Hold.Draw(c.random)
	if r.herd != nil {
		r.herd.granted(c, granted)
	}
	r.disturbance.granted(key, granted, grant)
	r.disturbance.detain(key)
	if r.Observer != nil {
		r.Observer.Holding(c.id)
	}
	if err := c.work(key, granted+int64(hold), lease); err != nil {
		r.fail(err)
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
	audit.Exit(c.waiter, released)
	err = lease.Release(r.control.release)
	done := clock.Now()
	audit.Settle(c.waiter, lease, err)
	c.record.Acquired(measure.Acquisition{Due: due, Asked: asked, Granted: granted, Released: released, Done: done, Grant: grant, Hold: int64(hold), Counted: counted})
	if r.Observer != nil {
		r.Observer.Acquired(Acquisition{
			Client: c.id, Key: key, Due: due, Asked: asked, Granted: granted, Released: released, Done: done,
			Handoff: grant.Handoff, Counted: counted && r.window.Contains(granted),
		})
	}
	switch {
	case err == nil:
		if len(r.disturbance.faults) > 0 {
			audit.Freed(done)
		}
	case errors.Is(err, strategies.ErrNotHeld):
		audit.Lost()
	default:
		r.fail(err)
	}
	return done, nil
}

// errNoLease reports that a Locker broke its contract.
var errNoLease = errors.New("the strategy returned neither a lease nor an error")

func (c *client) acquire(key string) (strategies.Lease, error) {
	lease, err := c.ask(key)
	if lease == nil && err == nil {
		err = errNoLease
	}
	return lease, err
}

func (c *client) ask(key string) (strategies.Lease, error) {
	ctx := c.run.control.acquire
	switch timeout := c.run.Workload.Timeout; {
	case timeout == nil:
		return c.instance.locker.Acquire(ctx, key)
	case *timeout == 0:
		return c.instance.trier.TryAcquire(ctx, key)
	default:
		ctx, cancel := context.WithTimeout(ctx, time.Duration(*timeout))
		defer cancel()
		return c.instance.locker.Acquire(ctx, key)
	}
}

// outcome says why a wait of waited nanoseconds ended without a lease.
func (c *client) outcome(err error, waited int64) measure.Outcome {
	timeout := c.run.Workload.Timeout
	switch {
	case errors.Is(err, strategies.ErrHeld):
		return measure.TimedOut
	case timeout != nil && errors.Is(err, context.DeadlineExceeded) && waited >= int64(*timeout):
		return measure.TimedOut
	case c.run.control.stopping.Load() && errors.Is(err, context.Canceled):
		return measure.Stopped
	default:
		return measure.Failed
	}
}

// sleep waits for d or until the run is over.
func (c *client) sleep(d time.Duration) { c.run.sleepers.Sleep(c.run.control.acquire.Done(), d) }
