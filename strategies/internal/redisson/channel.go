package redisson

import (
	"container/list"
	"math"
)

// everybody is a number of waiters that is never reached.
const everybody = math.MaxInt

// Flaws are faults of sample code in articles in which waiters share a subscription. They exist only to be measured;
// the zero value has no fault.
type Flaws struct {
	Unconfirmed bool // only the first waiter on a channel waits until SUBSCRIBE is confirmed
	Hoards      bool // the subscription stays, and every message that finds no waiter asleep leaves a wake-up behind
	Keeps       bool // a waiter that gives up takes its wake-up with it
}

// channel is one subscription and the waiters on it. The rules are those of the
// java.util.concurrent.Semaphore in Redisson: a waiter that parks goes to the end, a message
// wakes from the front, and a woken waiter whose try fails parks again at the end.
//
// The subscriber's mu guards it.
type channel struct {
	name    string
	members int       // have joined and not left
	parked  list.List // of *waiter: the members that sleep, longest first
	// owed is the number of wake-ups that arrived while too few members slept. A member that was awake may have tried
	// before the message was sent, so the same number of members try again when they park next.
	owed int

	subscribed bool          // SUBSCRIBE has been sent in the present session
	ticks      int           // ticks of the pulse since then, until the outcome is known
	ready      chan struct{} // closed once the outcome is known
	known      bool
	err        error // why there is no subscription; set before ready is closed
}

// wake makes n waiters try again.
func (c *channel) wake(n int) {
	awake := c.members - c.parked.Len()
	for ; n > 0 && c.parked.Len() > 0; n-- {
		w := c.parked.Front().Value.(*waiter)
		c.unpark(w)
		w.woken <- struct{}{}
	}
	c.owed = max(c.owed, min(n, awake))
}

// park adds w to the sleeping members, unless owed has a wake-up for it.
func (c *channel) park(w *waiter) (asleep bool) {
	if w.early && c.known { // its last try may have been before the subscription
		w.early = false
		return false
	}
	if c.owed > 0 {
		c.owed--
		return false
	}
	w.place = c.parked.PushBack(w)
	return true
}

// unpark removes w from the sleeping members and reports whether w still slept.
func (c *channel) unpark(w *waiter) bool {
	if w.place == nil {
		return false
	}
	c.parked.Remove(w.place)
	w.place = nil
	return true
}

// leave removes w from the channel. It wakes the next waiter if handOn is true or if w has not used a wake-up.
func (c *channel) leave(w *waiter, handOn bool) {
	c.members--
	if !c.unpark(w) {
		select {
		case <-w.woken:
			handOn = true
		default:
		}
	}
	flaws := w.subscriber.flaws
	if !flaws.Hoards {
		c.owed = min(c.owed, c.members-c.parked.Len())
	}
	if handOn && !flaws.Keeps {
		c.wake(1)
	}
}

// settle publishes the outcome of the subscription and wakes waiters that did not wait for it.
func (c *channel) settle(err error, flaws Flaws) {
	c.err = err
	c.known = true
	close(c.ready)
	if err == nil && flaws.Unconfirmed {
		return
	}
	for e := c.parked.Front(); e != nil; e = e.Next() {
		e.Value.(*waiter).early = false
	}
	c.wake(c.parked.Len())
}
