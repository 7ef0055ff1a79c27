package redisson

import (
	"container/list"
	"math"
)

// allWaiters is an argument of wake that wakes all waiters.
const allWaiters = math.MaxInt

// Flaws are faults that occur in published sample code in which waiters share a subscription. They are built in so that
// lockbench can measure their effect. The zero value has no fault.
type Flaws struct {
	Unconfirmed bool // only the first waiter on a channel waits until SUBSCRIBE is confirmed
	Hoards      bool // the subscription never ends, and a message that finds no parked waiter is kept as a wake-up
	Keeps       bool // a waiter that gives up does not pass its unused wake-up to the next waiter
}

// channel is the subscription to one channel of Redis, with the waiters that share the subscription. Waiters are woken
// in the same order as in Redisson, which uses a java.util.concurrent.Semaphore. A waiter that parks is appended to the
// queue, and a message wakes the first waiter. If the try of a woken waiter fails, the waiter parks again at the end.
//
// The Subscriber's mu guards all fields.
type channel struct {
	name    string
	members int       // number of waiters that have joined and not left
	parked  list.List // of *waiter: the members that are parked, longest first
	// savedWakeUps is the number of wake-ups for which no member was parked. A member that was awake may have tried before
	// the message was sent. The next savedWakeUps members that would park therefore try again instead.
	savedWakeUps int

	subscribed bool          // SUBSCRIBE has been sent in the present session
	ticks      int           // ticks of the pulse since then, until Redis has replied to SUBSCRIBE
	ready      chan struct{} // closed when known becomes true
	known      bool          // the subscription is confirmed or has failed
	err        error         // why there is no subscription; set before ready is closed
}

// wake wakes up to n parked waiters, the longest parked first, so that they try again. If only m < n waiters
// are parked, up to n-m waiters that are awake will try again instead of parking.
func (c *channel) wake(n int) {
	awake := c.members - c.parked.Len()
	for ; n > 0 && c.parked.Len() > 0; n-- {
		w := c.parked.Front().Value.(*waiter)
		c.unpark(w)
		w.woken <- struct{}{}
	}
	c.savedWakeUps = max(c.savedWakeUps, min(n, awake))
}

// park adds w to the parked members and returns true. It returns false if w must try again at once, because a message
// may have been missed since its last try.
func (c *channel) park(w *waiter) (asleep bool) {
	if w.early && c.known { // the last try may have been before the subscription, so messages may have been missed
		w.early = false
		return false
	}
	if c.savedWakeUps > 0 {
		c.savedWakeUps--
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

// leave removes w from the channel. If handOn is true, or if w was woken but has not tried since, leave wakes the next
// waiter.
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
		c.savedWakeUps = min(c.savedWakeUps, c.members-c.parked.Len())
	}
	if handOn && !flaws.Keeps {
		c.wake(1)
	}
}

// settle records that Redis has confirmed the subscription or, if err is not nil, that subscribing has failed. It wakes
// the waiters that are already parked.
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
