package handoff

import (
	"container/list"
	"slices"
	"strconv"
	"time"
)

// line is the callers of a process that want one lock for one TTL, and what the process has
// of that lock. The Locker's mutex guards it. No goroutine talks to Redis while it has the
// mutex.
type localQueue struct {
	names
	locker *Locker
	localQueueKey
	waiters list.List // of *waiter, in the order of arrival
	came    int64     // how many waiters have come so far
	slots   []*slot   // in Redis's queue, oldest first
	held    *lease    // nil while nobody here has the lock
	asking  *question // a caller asks Redis for the lock; nil if none does
	looking bool      // a task looks after the line

	subscriber *subscriber // tells the process of its turns; nil means none
	due        time.Time   // when the keeper looks after it; zero means never
	planned    int         // its place in the keeper's heap, from 1; 0 if it is not there
	failing    time.Time   // since when Redis does not serve; zero if it does
	failure    error       // why it does not serve, or the subscription has ended; nil if both are good
	seen       string      // the owner that was seen last
	crowded    time.Time   // until when it is likely that another process has the lock
	ahead      int64       // how many places were queued when Redis last said so
	kept       time.Time   // when Redis was last told to keep the queue
}

// lineKey tells lines apart: a process passes a lease on only to callers that ask for the
// same TTL.
type localQueueKey struct {
	key string
	ttl time.Duration
}

// waiter is a caller that waits for the lock.
type waiter struct {
	number int64         // in the order of arrival, from 1
	turn   Lease         // the lease that it is to get
	over   chan struct{} // closed when it is known how the wait ended
	err    error
}

// question is a caller's request for a lock that may be free, for others that come while it is under way.
type question struct {
	over chan struct{} // closed when its end is known …
	err  error         // … and this is: nil if the caller has the lock, or has gone
}

// place is a line's entry in Redis's queue.
type slot struct {
	id         string
	localQueue *localQueue
	since      time.Time // a moment before it was asked for
	queued     bool      // Redis has said that it is
	unsure     bool      // it may be queued, but Redis has not said so
	coming     bool      // a command that queues it is under way
	// indeterminate says that a command which queues it may come late.
	indeterminate bool
	listened      bool // the process listened when it was queued
	confirming    bool // a task asks Redis whether it has the lock …
	hinted        bool // … and another message has said so since
}

// entry returns the place's entry in Redis's queue.
func (p *slot) entry() string { return entry(p.id, p.localQueue.ttl) }

// entry returns the entry in Redis's queue of an id that wants a lease of ttl.
func entry(id string, ttl time.Duration) string {
	return id + " " + strconv.FormatInt(milliseconds(ttl), 10)
}

// line returns the line of a key and a TTL. The caller must use or forget it.
func (l *Locker) localQueue(key string, ttl time.Duration) *localQueue {
	of := localQueueKey{key, ttl}
	lq := l.localQueues[of]
	if lq == nil {
		cluster := l.redis.cluster != nil
		lq = &localQueue{names: namesOf(lockOf(l.config.Key(key), cluster), l.base, cluster), locker: l, localQueueKey: of}
		l.localQueues[of] = lq
	}
	return lq
}

// idle says that nobody here wants or has the lock.
func (lq *localQueue) idle() bool {
	return lq.held == nil && lq.asking == nil && !lq.looking && lq.waiters.Len() == 0 && len(lq.slots) == 0
}

// forget ends a line that nobody needs; a crowded one later. The release of a
// lease that outlasted its line calls it once more: the key then has another line, which
// stays.
func (lq *localQueue) forget() {
	switch {
	case !lq.idle():
	case lq.isCrowded():
		lq.look(time.Until(lq.crowded))
	case lq.locker.localQueues[lq.localQueueKey] == lq:
		delete(lq.locker.localQueues, lq.localQueueKey)
		lq.plan(time.Time{})
		lq.subscriber.leave(lq)
	}
}

// isCrowded says that another process is likely to have the lock. It reads no clock where none has had it.
func (lq *localQueue) isCrowded() bool { return !lq.crowded.IsZero() && time.Now().Before(lq.crowded) }

// isKnown says whether it is known that the lock is held, or was a moment ago.
func (lq *localQueue) isKnown() bool {
	queued := func(p *slot) bool { return p.queued }
	return lq.held != nil || lq.isCrowded() || slices.ContainsFunc(lq.slots, queued)
}

// join adds a waiter, in the order in which the waiters came.
func (lq *localQueue) join(w *waiter) *list.Element {
	if lq.held != nil {
		lq.lookAt(lq.held.until.Get()) // its holder may hang
	}
	if lq.waiters.Len() == 0 {
		lq.failing, lq.failure = time.Time{}, nil // the waiters before have got that error
	}
	after := lq.waiters.Back()
	for after != nil && after.Value.(*waiter).number > w.number {
		after = after.Prev()
	}
	if after == nil {
		return lq.waiters.PushFront(w)
	}
	return lq.waiters.InsertAfter(w, after)
}

// wanted is how many places the line should have at Redis.
func (lq *localQueue) wanted() int {
	switch n := lq.waiters.Len(); {
	case lq.locker.linger == 0:
		return n
	case n == 0 || lq.asking != nil || lq.held != nil:
		return 0
	default:
		return 1
	}
}

// short returns a new place, to be queued, if the line has too few; else nil.
func (lq *localQueue) short() *slot {
	if len(lq.slots) >= lq.wanted() {
		return nil
	}
	p := lq.newSlot()
	lq.slots = append(lq.slots, p)
	return p
}

func (lq *localQueue) newSlot() *slot {
	p := &slot{id: lq.locker.ids.next(lq.lock), localQueue: lq, since: time.Now(), coming: true}
	l := lq.locker
	if l.slots[p.id] = p; len(l.slots) == 1 { // it waits for the first one
		l.keep(l.echoed.Add(l.attention))
	}
	return p
}

// longQueue is how many places are queued where those of callers that have gone are kept for a
// moment: others may come, and places in the middle of a long queue cannot be taken out.
const longQueue = 64

// tidy gives up the places if nobody waits. Otherwise they are for whoever comes next: callers
// that give up cost Redis nothing, and a process has no more places than it had callers at once.
func (lq *localQueue) tidy() (acked <-chan struct{}) {
	switch {
	case lq.waiters.Len() > 0:
	case lq.ahead > longQueue && len(lq.slots) > 0:
		lq.look(lq.locker.attention / 4)
	default:
		acked = lq.abandon()
	}
	return acked
}

// abandon gives up the places, but for those that are not queued yet.
func (lq *localQueue) abandon() (acked <-chan struct{}) {
	for _, p := range slices.Clone(lq.slots) {
		if !p.coming {
			acked = lq.giveBack(p)
		}
	}
	return acked
}

// giveBack gives up a place.
func (lq *localQueue) giveBack(p *slot) (acked <-chan struct{}) {
	lq.drop(p)
	// What cannot be taken out of a long queue is given up when its turn comes.
	return lq.locker.addPending(lq.names, p.entry(), !p.queued || p.indeterminate || lq.ahead > longQueue)
}

// drop removes a place, and says whether it was there.
func (lq *localQueue) drop(p *slot) bool {
	for i, other := range lq.slots {
		if other == p {
			lq.slots = append(lq.slots[:i], lq.slots[i+1:]...)
			delete(lq.locker.slots, p.id)
			return true
		}
	}
	return false
}

// granted gives a lease that has come to the first waiter, or back to Redis if nobody waits.
func (lq *localQueue) granted(g *lease) {
	lq.failing, lq.failure = time.Time{}, nil
	lq.crowded = time.Now().Add(lq.locker.attention)
	front := lq.waiters.Front()
	if front == nil {
		delete(lq.locker.held, g.id)
		lq.abandon()
		lq.locker.addPending(lq.names, g.id, g.indeterminate)
		lq.forget()
		return
	}
	lq.begin(g)
	lq.give(g, front)
}

// begin makes a lease the line's own: its turns are for the waiters that have come so far.
func (lq *localQueue) begin(g *lease) {
	g.last, g.began, g.seen = lq.came, time.Now(), g.since
	g.kept = g.until.Get()
	lq.held = g
	lq.lookAtEnd(g)
}

// give gives the next turn to a waiter.
func (lq *localQueue) give(g *lease, element *list.Element) {
	w := lq.waiters.Remove(element).(*waiter)
	lq.hand(g, &w.turn)
	lq.locker.config.Probe.Wake(true)
	close(w.over)
}

// hand makes turn the next turn of a lease.
func (lq *localQueue) hand(g *lease, turn *Lease) {
	turn.localQueue, turn.lease, turn.fence = lq, g, g.token*MostTurns+int64(g.passed)
	g.passed++
	g.holder = turn
}

// goesOn returns the waiter that gets the next turn of a lease in this process; nil means
// none.
func (lq *localQueue) goesOn(g *lease) *list.Element {
	l := lq.locker
	front := lq.waiters.Front()
	if front == nil || l.linger == 0 || g.lost || g.passed >= l.turns || front.Value.(*waiter).number > g.last {
		return nil
	}
	now := time.Now()
	if left := g.until.Get().Sub(now); now.Sub(g.began) > l.linger || left < lq.ttl/2 || left > lq.ttl {
		return nil
	}
	return front
}

// fail ends all waits with err and gives up the places.
func (lq *localQueue) fail(err error) {
	for front := lq.waiters.Front(); front != nil; front = lq.waiters.Front() {
		w := lq.waiters.Remove(front).(*waiter)
		w.err = err
		close(w.over)
	}
	for len(lq.slots) > 0 {
		lq.giveBack(lq.slots[0])
	}
}

// lose ends a lease that is known to be lost, and tells its holder.
func (lq *localQueue) lose(g *lease) {
	g.lost = true
	delete(lq.locker.held, g.id)
	if g.holder != nil {
		g.holder.reportLoss()
	}
	lq.giveUp(g)
	if lq.waiters.Len() > 0 { // the lock may be free, or another process's
		lq.look(0)
	}
}

// runOut ends a lease that has run out by this process's clock. Redis keeps it for longer after it
// was shortened, or after an extension without an answer, so it is owed.
func (lq *localQueue) runOut(g *lease) {
	lq.lose(g)
	lq.locker.addPending(lq.names, g.id, g.indeterminate)
}

// giveUp records that this process no longer has a lease.
func (lq *localQueue) giveUp(g *lease) {
	g.holder = nil
	if lq.held == g {
		if lq.held = nil; lq.waiters.Len() > 0 {
			lq.known(longest) // the keeper did not look after them while it was held
		}
	}
}

// settle has the keeper look after waiters without a place, and ends a line that nobody
// needs.
func (lq *localQueue) settle() {
	if lq.waiters.Len() > 0 && len(lq.slots) < lq.wanted() {
		lq.look(0)
	}
	lq.tidy()
	lq.forget()
}

// look has the keeper look after the line that soon, or sooner if that is planned.
func (lq *localQueue) look(soon time.Duration) { lq.lookAt(time.Now().Add(soon)) }

func (lq *localQueue) lookAt(due time.Time) {
	if lq.due.IsZero() || due.Before(lq.due) {
		lq.plan(due)
	}
}

// lookAtEnd has the keeper notice the end of a lease where somebody waits for it: here, or perhaps in
// another process, to which Redis gives the lock only later.
func (lq *localQueue) lookAtEnd(g *lease) {
	if until := g.until.Get(); lq.held == g && (lq.waiters.Len() > 0 || until.Before(g.kept)) {
		lq.lookAt(until)
	}
}

// known records how long the owner still has the lock, as Redis said. The keeper asks Redis again
// after that time: perhaps no other process does.
func (lq *localQueue) known(ttl time.Duration) {
	switch ttl {
	case -time.Millisecond: // no TTL: it is another program's
		ttl = longest
	case -2 * time.Millisecond: // no lock
		ttl = 0
	}
	lq.plan(time.Time{})
	// A longer queue takes longer to come to the line's turn, and a process that waits for many locks looks at each less
	// often: at a hundred a second in all.
	l := lq.locker
	attention := max(l.attention, time.Duration(len(l.slots))*10*time.Millisecond)
	attention += time.Duration(lq.ahead) * 4 * time.Millisecond
	lq.look(min(ttl+l.jitter(), attention, max(lq.ttl, 50*time.Millisecond)))
	if lq.held != nil {
		lq.lookAtEnd(lq.held)
	}
}
