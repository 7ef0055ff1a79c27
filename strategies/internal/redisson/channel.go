package redisson

import (
	"container/list"
	"math"
)

// everybody is larger than any number of waiters, to wake all of them.
const everybody = math.MaxInt

// Flaws are faults that occur in published sample code in which waiters share a subscription. They exist only for
// measurements; the zero value has no fault.
type Flaws struct {
	Unconfirmed bool // only the first waiter on a channel waits until SUBSCRIBE is confirmed
	Hoards      bool // the subscription never ends, and a message that finds no parked waiter is kept as a wake-up
	Keeps       bool // a waiter that gives up does not pass its unused wake-up to the next waiter
}

// channel is one subscription and the waiters on it. The order is that of the java.util.concurrent.Semaphore in
// Redisson: a waiter that parks goes to the end of the queue, a message wakes the first waiter, and a woken waiter
// whose try fails parks again at the end.
//
// The subscriber's mu guards it.
type channel struct {
	name    string
	members int       // number of waiters that have joined and not left
	parked  list.List // of *waiter: the members that are parked, longest first
	// owed is the number of wake-ups that arrived while too few members were parked. A member that was awake may have
	// tried before the message was sent, so this number of members try again instead of parking.
	owed int

	subscribed bool          // SUBSCRIBE has been sent in the present session
	ticks      int           // ticks of the pulse since then, until Redis has replied to SUBSCRIBE
	ready      chan struct{} // closed when known becomes true
	known      bool          // the subscription is confirmed or has failed
	err        error         // why there is no subscription; set before ready is closed
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

// park adds w to the parked members, unless w must try again at once.
func (c *channel) park(w *waiter) (asleep bool) {
	if w.early && c.known { // the last try may have been before the subscription, so messages may have been missed
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

// unpark removes w from the parked members and reports whether w was parked.
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

// settle records that the subscription is confirmed, or has failed with err, and wakes waiters that have parked before
// that.
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
