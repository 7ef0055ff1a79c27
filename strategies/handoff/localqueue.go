package handoff

import (
	"container/list"
	"slices"
	"strconv"
	"time"
)

// localQueue is the queue of the callers of this process that want one lock with one TTL. It also contains the
// process's slots and lease for this lock and TTL. The Locker's mutex guards it. A goroutine does not hold the mutex
// while it sends commands to Redis.
type localQueue struct {
	names
	locker *Locker
	localQueueKey
	waiters list.List // of *waiter, in the order of arrival
	came    int64     // number of callers so far
	slots   []*slot   // this queue's slots in Redis's queue, oldest first
	held    *lease    // the lease of this process; nil while it has none
	asking  *question // a caller's request for the lock that is under way; nil if there is none
	looking bool      // a task is checking the queue

	subscriber *subscriber // receives the messages about turns; nil means none
	due        time.Time   // when the keeper checks the queue; zero means never
	planned    int         // its index in the keeper's heap, from 1; 0 if it is not there
	failing    time.Time   // since when Redis has not served this queue; zero if it does
	failure    error       // the error of Redis or of the subscription; nil if both work
	seen       string      // the owner that the last check found
	crowded    time.Time   // until then another process probably has the lock
	ahead      int64       // number of entries in Redis's queue according to the last reply
	kept       time.Time   // when a command last renewed the TTL of Redis's queue
}

// localQueueKey identifies a local queue. It includes the TTL, because a process passes a lease on only to callers that
// request the same TTL.
type localQueueKey struct {
	key string
	ttl time.Duration
}

// waiter is a caller that waits in a local queue for its turn on the lock.
type waiter struct {
	number int64         // in the order of arrival, from 1
	turn   Lease         // filled in when the waiter gets its turn
	over   chan struct{} // closed when the wait has a result
	err    error
}

// question is a caller's request for a lock that may be free. Callers that arrive during the request wait for its
// result.
type question struct {
	over chan struct{} // closed when the request has a result
	err  error         // the result: nil if the caller got the lock or gave up
}

// slot is an entry in the lock's queue in Redis that this process holds, or wants to hold, on behalf of one local
// queue.
type slot struct {
	id         string
	localQueue *localQueue
	since      time.Time // an instant before the command that queues it was sent
	queued     bool      // Redis has confirmed that the slot is queued
	unsure     bool      // it may be queued, but Redis has not confirmed it
	coming     bool      // a command that queues it is under way
	// indeterminate is true if a command that queues the slot may still reach Redis.
	indeterminate bool
	listened      bool // the process was subscribed when the slot was queued
	confirming    bool // a task is checking at Redis whether the slot has the lock
	hinted        bool // another message about the slot has arrived since confirming began
}

func (p *slot) entry() string { return entry(p.id, p.localQueue.ttl) }

// entry returns the entry in Redis's queue for an id that requests a lease of ttl: the id, a space and the TTL in ms.
func entry(id string, ttl time.Duration) string {
	return id + " " + strconv.FormatInt(milliseconds(ttl), 10)
}

// localQueue returns the local queue of a key and a TTL. If there is none, it creates one. The caller must use the
// queue or call forget.
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

// idle reports whether the queue is unused: no lease, no request or check under way, no waiters and no slots.
func (lq *localQueue) idle() bool {
	return lq.held == nil && lq.asking == nil && !lq.looking && lq.waiters.Len() == 0 && len(lq.slots) == 0
}

// forget removes an idle local queue. If another process probably has the lock (isCrowded), forget only plans the
// removal. A release may end after this queue was removed and the key got a newer one; forget then leaves the newer
// queue in place.
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

// isCrowded reports whether another process probably has the lock. For an uncontended lock it does not read the clock,
// which saves time in each Acquire.
func (lq *localQueue) isCrowded() bool { return !lq.crowded.IsZero() && time.Now().Before(lq.crowded) }

// isKnown reports whether this process knows that the lock is held or was held within the last second. If so,
// TryAcquire returns ErrHeld.
func (lq *localQueue) isKnown() bool {
	queued := func(p *slot) bool { return p.queued }
	return lq.held != nil || lq.isCrowded() || slices.ContainsFunc(lq.slots, queued)
}

// join inserts a waiter so that the waiters stay ordered by number. A caller whose direct request failed has a smaller
// number than the callers that joined during that request.
func (lq *localQueue) join(w *waiter) *list.Element {
	if lq.held != nil {
		lq.lookAt(lq.held.until.Get()) // the holder may hang and never release
	}
	if lq.waiters.Len() == 0 {
		lq.failing, lq.failure = time.Time{}, nil // the earlier waiters have already received that error
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

// wanted returns how many slots the local queue needs at Redis. With Linger 0 it needs one for each waiter. Otherwise
// it needs one for all waiters together, or none while this process has the lock or requests it directly.
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

// short adds a slot if the local queue has too few, and returns it. The caller must queue the slot at Redis. If there
// are enough slots, short returns nil.
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
	if l.slots[p.id] = p; len(l.slots) == 1 { // the keeper checks the subscription only while there are slots
		l.keep(l.echoed.Add(l.attention))
	}
	return p
}

// longQueue is the length of Redis's queue above which a local queue briefly keeps the slots of callers that gave up,
// so that new callers can use them. leave.lua does not remove slots from the middle of a longer queue.
const longQueue = 64

// tidy gives up the slots if no caller waits. If Redis's queue is longer than longQueue, it does so only after a delay.
// While callers wait, tidy keeps all slots, so a caller that gives up causes no command. A process therefore never has
// more slots than it had concurrent callers. acked is closed when Redis has replied to the release of the last slot; it
// is nil if no slot was given up.
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

// abandon gives up all slots except those whose queueing command is still under way.
func (lq *localQueue) abandon() (acked <-chan struct{}) {
	for _, p := range slices.Clone(lq.slots) {
		if !p.coming {
			acked = lq.giveBack(p)
		}
	}
	return acked
}

// giveBack drops a slot and adds a pending release, which removes the slot from Redis's queue or releases its lock.
func (lq *localQueue) giveBack(p *slot) (acked <-chan struct{}) {
	lq.drop(p)
	// leave.lua may not find the slot in a long queue. The pending release is then repeated, and when the slot gets its
	// turn, the pending release frees the lock.
	return lq.locker.addPending(lq.names, p.entry(), !p.queued || p.indeterminate || lq.ahead > longQueue)
}

// drop removes a slot from the local queue and reports whether the slot was in it.
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

// granted gives a new lease to the first waiter, or releases it if no caller waits.
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

// begin makes g the lease of the local queue. Only callers that have already arrived get turns on this lease.
func (lq *localQueue) begin(g *lease) {
	g.last, g.began, g.seen = lq.came, time.Now(), g.since
	g.kept = g.until.Get()
	lq.held = g
	lq.lookAtEnd(g)
}

// give removes a waiter from the local queue, gives the waiter the next turn of the lease, and ends the wait.
func (lq *localQueue) give(g *lease, element *list.Element) {
	w := lq.waiters.Remove(element).(*waiter)
	lq.hand(g, &w.turn)
	lq.locker.config.Probe.Wake(true)
	close(w.over)
}

// hand makes turn the next turn of lease g. The fencing token of each turn is one larger than that of the previous turn
// of the same lease.
func (lq *localQueue) hand(g *lease, turn *Lease) {
	turn.localQueue, turn.lease, turn.fence = lq, g, g.token*MostTurns+int64(g.passed)
	g.passed++
	g.holder = turn
}

// goesOn returns the waiter of this process that gets the lease next, or nil if the lease must be released at Redis.
// The result is nil if no waiter arrived before the lease began, if the lease is lost, if Linger or Turns is used up,
// or if the remaining time of the lease is less than half the TTL or more than the TTL.
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

// fail ends all waits with err and gives up the slots.
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

// lose ends a lease that is known to be lost, and reports the loss to its holder.
func (lq *localQueue) lose(g *lease) {
	g.lost = true
	delete(lq.locker.held, g.id)
	if g.holder != nil {
		g.holder.reportLoss()
	}
	lq.giveUp(g)
	if lq.waiters.Len() > 0 { // the lock may be free or held by another process
		lq.look(0)
	}
}

// runOut ends a lease that has expired by this process's clock. Redis may keep the lock longer if the holder shortened
// the lease or an extension got no reply, so runOut adds a pending release.
func (lq *localQueue) runOut(g *lease) {
	lq.lose(g)
	lq.locker.addPending(lq.names, g.id, g.indeterminate)
}

// giveUp records that this process no longer has a lease. If callers wait, it resumes the checks at Redis.
func (lq *localQueue) giveUp(g *lease) {
	g.holder = nil
	if lq.held == g {
		if lq.held = nil; lq.waiters.Len() > 0 {
			lq.known(longest) // resume the checks, which stopped while this process held the lease
		}
	}
}

// settle makes the keeper check a local queue that has too few slots for its waiters. It gives up the slots if no
// caller waits, and removes an idle local queue.
func (lq *localQueue) settle() {
	if lq.waiters.Len() > 0 && len(lq.slots) < lq.wanted() {
		lq.look(0)
	}
	lq.tidy()
	lq.forget()
}

// look makes the keeper check the local queue after the given time, or earlier if an earlier check is planned.
func (lq *localQueue) look(soon time.Duration) { lq.lookAt(time.Now().Add(soon)) }

func (lq *localQueue) lookAt(due time.Time) {
	if lq.due.IsZero() || due.Before(lq.due) {
		lq.plan(due)
	}
}

// lookAtEnd makes the keeper check the local queue at the end of lease g if callers of this process wait, or if Redis
// keeps the lock beyond that end. In the second case the lock must then be released for other processes.
func (lq *localQueue) lookAtEnd(g *lease) {
	if until := g.until.Get(); lq.held == g && (lq.waiters.Len() > 0 || until.Before(g.kept)) {
		lq.lookAt(until)
	}
}

// known plans the next check of the local queue. ttl is the remaining time of the owner's lease according to Redis. The
// check is due shortly after the end of that lease at the latest, because perhaps no other process checks the lock.
func (lq *localQueue) known(ttl time.Duration) {
	switch ttl {
	case -time.Millisecond: // no TTL, so it is the lock of another program
		ttl = longest
	case -2 * time.Millisecond: // no lock
		ttl = 0
	}
	lq.plan(time.Time{})
	// The interval grows by 4 ms for each entry in Redis's queue, because the turn comes later in a longer queue. It is at
	// least 10 ms for each slot of the process, so that the process checks at most a hundred slots a second in total.
	l := lq.locker
	attention := max(l.attention, time.Duration(len(l.slots))*10*time.Millisecond)
	attention += time.Duration(lq.ahead) * 4 * time.Millisecond
	lq.look(min(ttl+l.jitter(), attention, max(lq.ttl, 50*time.Millisecond)))
	if lq.held != nil {
		lq.lookAtEnd(lq.held)
	}
}
