package cohort

import (
	"container/list"
	"context"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/doubt"
)

// cohort is those of a process who hold or want one lock. The Locker's mutex guards it.
//
// An agent, one goroutine at most, is at work from when the lock is wanted until it is in
// somebody's hands. From then on the holder's release sees to the next, and an agent is
// only needed again to talk to Redis on behalf of others than the caller.
type cohort struct {
	locker  *Locker
	key     string
	waiters list.List // of *waiter, as they came
	came    int64     // how many have come, ever
	batch   *batch    // that somebody here holds; nil while nobody does
	working bool      // an agent is
	search  *search   // nil while no agent waits for the lock
}

// waiter is somebody who wants the lock.
type waiter struct {
	number  int64         // in which they came, from 1
	turn    Lease         // to be, so that to pass a batch on allocates nothing
	over    chan struct{} // capacity 1: told when it is known …
	outcome               // … how the wait ended
}

// outcome ends a wait.
type outcome struct {
	held   *Lease
	passed bool // by another of the cohort
	err    error
}

// tell ends the wait.
func (w *waiter) tell(o outcome) {
	w.outcome = o
	w.over <- struct{}{}
}

// search is an agent's wait for the lock among the processes.
type search struct {
	cancel context.CancelFunc // for when nobody here wants it any more
	over   chan struct{}      // closed when it is, and nothing of it is left at Redis
}

// batch is a lease from Redis, and those of the cohort to whom it goes in turn.
type batch struct {
	block     block
	next, end int64       // the tokens that nobody has had
	last      int64       // the number of the last waiter that it goes to
	holder    *Lease      // nil while an agent sees to it, and once it is given up
	lost      bool        // it is known to be
	timer     *time.Timer // nil until somebody wants to know when it is over
}

// newBatch is for those who have come so far.
func newBatch(b block, came int64) *batch {
	first, n := b.Fences()
	return &batch{block: b, next: first, end: first + n, last: came}
}

// left is how long it is valid still.
func (b *batch) left() time.Duration { return time.Until(b.block.ValidUntil()) }

// enter queues somebody.
func (l *Locker) enter(key string) (*cohort, *list.Element, error) {
	w := &waiter{over: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, strategies.ErrClosed
	}
	c := l.cohorts[key]
	if c == nil {
		c = &cohort{locker: l, key: key}
		l.cohorts[key] = c
	}
	c.came++
	w.number = c.came
	place := c.waiters.PushBack(w)
	switch {
	case c.working:
	case c.batch != nil:
		c.watch(c.batch)
	default:
		c.start(nil)
	}
	return c, place, nil
}

// begin makes the caller the agent of a cohort that is not there yet.
func (l *Locker) begin(key string) (*cohort, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, strategies.ErrClosed
	case l.cohorts[key] != nil:
		return nil, strategies.ErrHeld
	}
	c := &cohort{locker: l, key: key, working: true}
	l.cohorts[key] = c
	return c, nil
}

// leave ends a wait whose ctx has ended. Who is the last to go has the process leave
// Redis's queue, and waits until it has.
func (c *cohort) leave(ctx context.Context, place *list.Element) {
	l := c.locker
	w := place.Value.(*waiter)
	l.mu.Lock()
	select {
	case <-w.over: // just now
		l.mu.Unlock()
		if w.held != nil {
			settle, done := doubt.Settle(ctx)
			defer done()
			_ = w.held.Release(settle)
		}
		return
	default:
	}
	c.waiters.Remove(place)
	s := c.search
	if c.waiters.Len() > 0 {
		s = nil
	}
	l.mu.Unlock()
	if s != nil {
		s.cancel()
		<-s.over
	}
}

// fail ends all waits.
func (c *cohort) fail(err error) {
	for c.waiters.Len() > 0 {
		c.first().tell(outcome{err: err})
	}
}

// first takes the first waiter out of the queue.
func (c *cohort) first() *waiter { return c.waiters.Remove(c.waiters.Front()).(*waiter) }

// give gives a batch's next turn to the first waiter.
func (c *cohort) give(b *batch, passed bool) {
	w := c.first()
	c.hold(b, &w.turn)
	w.tell(outcome{held: &w.turn, passed: passed})
}

// hold makes a lease a batch's next turn.
func (c *cohort) hold(b *batch, held *Lease) {
	held.cohort, held.batch, held.fence = c, b, b.next
	held.until.Set(b.block.ValidUntil())
	b.next++
	b.holder = held
	c.batch = b
	if c.waiters.Len() > 0 {
		c.watch(b)
	}
}

// goesOn says whether a batch has somebody to go to.
func (c *cohort) goesOn(b *batch) bool {
	front := c.waiters.Front()
	return front != nil && front.Value.(*waiter).number <= b.last && b.next < b.end && !b.lost
}

// forget ends a cohort that nobody is of any more.
func (c *cohort) forget() { delete(c.locker.cohorts, c.key) }

// watch has a batch that is still held when it is over taken from its holder.
func (c *cohort) watch(b *batch) {
	if b.timer == nil {
		b.timer = time.AfterFunc(b.left(), func() { c.expire(b) })
	}
}

// expire takes a batch that is over from its holder.
func (c *cohort) expire(b *batch) {
	l := c.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	switch left := b.left(); {
	case b.holder == nil: // it is being seen to
	case left > 0:
		b.timer.Reset(left)
	default:
		c.lose(b)
	}
}

// lose takes a batch that is lost from its holder. An agent gives it up, since Redis may
// think otherwise, and sees to those who wait.
func (c *cohort) lose(b *batch) {
	b.holder.isLost()
	b.lost, b.holder = true, nil
	if c.locker.closed {
		c.forget()
	} else {
		c.start(b)
	}
}

// extended notes that a batch is over at another time now.
func (b *batch) extended() {
	if b.timer != nil {
		b.timer.Reset(b.left())
	}
}

// stop ends what watches a batch.
func (b *batch) stop() {
	if b.timer != nil {
		b.timer.Stop()
	}
}
