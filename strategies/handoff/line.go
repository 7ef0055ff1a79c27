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
type line struct {
	names
	locker *Locker
	lineKey
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
type lineKey struct {
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
	id     string
	line   *line
	since  time.Time // a moment before it was asked for
	queued bool      // Redis has said that it is
	unsure bool      // it may be queued, but Redis has not said so
	coming bool      // a command that queues it is under way
	// indeterminate says that a command which queues it may come late.
	indeterminate bool
	listened      bool // the process listened when it was queued
	confirming    bool // a task asks Redis whether it has the lock …
	hinted        bool // … and another message has said so since
}

// entry returns the place's entry in Redis's queue.
func (p *slot) entry() string { return entry(p.id, p.line.ttl) }

// entry returns the entry in Redis's queue of an id that wants a lease of ttl.
func entry(id string, ttl time.Duration) string {
	return id + " " + strconv.FormatInt(milliseconds(ttl), 10)
}

// line returns the line of a key and a TTL. The caller must use or forget it.
func (l *Locker) line(key string, ttl time.Duration) *line {
	of := lineKey{key, ttl}
	ln := l.lines[of]
	if ln == nil {
		cluster := l.redis.cluster != nil
		ln = &line{names: namesOf(lockOf(l.config.Key(key), cluster), l.base, cluster), locker: l, lineKey: of}
		l.lines[of] = ln
	}
	return ln
}

// idle says that nobody here wants or has the lock.
func (ln *line) idle() bool {
	return ln.held == nil && ln.asking == nil && !ln.looking && ln.waiters.Len() == 0 && len(ln.slots) == 0
}

// forget ends a line that nobody needs; a crowded one later. The release of a
// lease that outlasted its line calls it once more: the key then has another line, which
// stays.
func (ln *line) forget() {
	switch {
	case !ln.idle():
	case ln.isCrowded():
		ln.look(time.Until(ln.crowded))
	case ln.locker.lines[ln.lineKey] == ln:
		delete(ln.locker.lines, ln.lineKey)
		ln.plan(time.Time{})
		ln.subscriber.leave(ln)
	}
}

// isCrowded says that another process is likely to have the lock. It reads no clock where none has had it.
func (ln *line) isCrowded() bool { return !ln.crowded.IsZero() && time.Now().Before(ln.crowded) }

// isKnown says whether it is known that the lock is held, or was a moment ago.
func (ln *line) isKnown() bool {
	queued := func(p *slot) bool { return p.queued }
	return ln.held != nil || ln.isCrowded() || slices.ContainsFunc(ln.slots, queued)
}

// join adds a waiter, in the order in which the waiters came.
func (ln *line) join(w *waiter) *list.Element {
	if ln.held != nil {
		ln.lookAt(ln.held.until.Get()) // its holder may hang
	}
	if ln.waiters.Len() == 0 {
		ln.failing, ln.failure = time.Time{}, nil // the waiters before have got that error
	}
	after := ln.waiters.Back()
	for after != nil && after.Value.(*waiter).number > w.number {
		after = after.Prev()
	}
	if after == nil {
		return ln.waiters.PushFront(w)
	}
	return ln.waiters.InsertAfter(w, after)
}

// wanted is how many places the line should have at Redis.
func (ln *line) wanted() int {
	switch n := ln.waiters.Len(); {
	case ln.locker.linger == 0:
		return n
	case n == 0 || ln.asking != nil || ln.held != nil:
		return 0
	default:
		return 1
	}
}

// short returns a new place, to be queued, if the line has too few; else nil.
func (ln *line) short() *slot {
	if len(ln.slots) >= ln.wanted() {
		return nil
	}
	p := ln.newSlot()
	ln.slots = append(ln.slots, p)
	return p
}

func (ln *line) newSlot() *slot {
	p := &slot{id: ln.locker.ids.next(ln.lock), line: ln, since: time.Now(), coming: true}
	l := ln.locker
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
func (ln *line) tidy() (acked <-chan struct{}) {
	switch {
	case ln.waiters.Len() > 0:
	case ln.ahead > longQueue && len(ln.slots) > 0:
		ln.look(ln.locker.attention / 4)
	default:
		acked = ln.abandon()
	}
	return acked
}

// abandon gives up the places, but for those that are not queued yet.
func (ln *line) abandon() (acked <-chan struct{}) {
	for _, p := range slices.Clone(ln.slots) {
		if !p.coming {
			acked = ln.giveBack(p)
		}
	}
	return acked
}

// giveBack gives up a place.
func (ln *line) giveBack(p *slot) (acked <-chan struct{}) {
	ln.drop(p)
	// What cannot be taken out of a long queue is given up when its turn comes.
	return ln.locker.addPending(ln.names, p.entry(), !p.queued || p.indeterminate || ln.ahead > longQueue)
}

// drop removes a place, and says whether it was there.
func (ln *line) drop(p *slot) bool {
	for i, other := range ln.slots {
		if other == p {
			ln.slots = append(ln.slots[:i], ln.slots[i+1:]...)
			delete(ln.locker.slots, p.id)
			return true
		}
	}
	return false
}

// granted gives a lease that has come to the first waiter, or back to Redis if nobody waits.
func (ln *line) granted(g *lease) {
	ln.failing, ln.failure = time.Time{}, nil
	ln.crowded = time.Now().Add(ln.locker.attention)
	front := ln.waiters.Front()
	if front == nil {
		delete(ln.locker.held, g.id)
		ln.abandon()
		ln.locker.addPending(ln.names, g.id, g.indeterminate)
		ln.forget()
		return
	}
	ln.begin(g)
	ln.give(g, front)
}

// begin makes a lease the line's own: its turns are for the waiters that have come so far.
func (ln *line) begin(g *lease) {
	g.last, g.began, g.seen = ln.came, time.Now(), g.since
	g.kept = g.until.Get()
	ln.held = g
	ln.lookAtEnd(g)
}

// give gives the next turn to a waiter.
func (ln *line) give(g *lease, element *list.Element) {
	w := ln.waiters.Remove(element).(*waiter)
	ln.hand(g, &w.turn)
	ln.locker.config.Probe.Wake(true)
	close(w.over)
}

// hand makes turn the next turn of a lease.
func (ln *line) hand(g *lease, turn *Lease) {
	turn.line, turn.lease, turn.fence = ln, g, g.token*MostTurns+int64(g.passed)
	g.passed++
	g.holder = turn
}

// goesOn returns the waiter that gets the next turn of a lease in this process; nil means
// none.
func (ln *line) goesOn(g *lease) *list.Element {
	l := ln.locker
	front := ln.waiters.Front()
	if front == nil || l.linger == 0 || g.lost || g.passed >= l.turns || front.Value.(*waiter).number > g.last {
		return nil
	}
	now := time.Now()
	if left := g.until.Get().Sub(now); now.Sub(g.began) > l.linger || left < ln.ttl/2 || left > ln.ttl {
		return nil
	}
	return front
}

// fail ends all waits with err and gives up the places.
func (ln *line) fail(err error) {
	for front := ln.waiters.Front(); front != nil; front = ln.waiters.Front() {
		w := ln.waiters.Remove(front).(*waiter)
		w.err = err
		close(w.over)
	}
	for len(ln.slots) > 0 {
		ln.giveBack(ln.slots[0])
	}
}

// lose ends a lease that is known to be lost, and tells its holder.
func (ln *line) lose(g *lease) {
	g.lost = true
	delete(ln.locker.held, g.id)
	if g.holder != nil {
		g.holder.reportLoss()
	}
	ln.giveUp(g)
	if ln.waiters.Len() > 0 { // the lock may be free, or another process's
		ln.look(0)
	}
}

// runOut ends a lease that has run out by this process's clock. Redis keeps it for longer after it
// was shortened, or after an extension without an answer, so it is owed.
func (ln *line) runOut(g *lease) {
	ln.lose(g)
	ln.locker.addPending(ln.names, g.id, g.indeterminate)
}

// giveUp records that this process no longer has a lease.
func (ln *line) giveUp(g *lease) {
	g.holder = nil
	if ln.held == g {
		if ln.held = nil; ln.waiters.Len() > 0 {
			ln.known(longest) // the keeper did not look after them while it was held
		}
	}
}

// settle has the keeper look after waiters without a place, and ends a line that nobody
// needs.
func (ln *line) settle() {
	if ln.waiters.Len() > 0 && len(ln.slots) < ln.wanted() {
		ln.look(0)
	}
	ln.tidy()
	ln.forget()
}

// look has the keeper look after the line that soon, or sooner if that is planned.
func (ln *line) look(soon time.Duration) { ln.lookAt(time.Now().Add(soon)) }

func (ln *line) lookAt(due time.Time) {
	if ln.due.IsZero() || due.Before(ln.due) {
		ln.plan(due)
	}
}

// lookAtEnd has the keeper notice the end of a lease where somebody waits for it: here, or perhaps in
// another process, to which Redis gives the lock only later.
func (ln *line) lookAtEnd(g *lease) {
	if until := g.until.Get(); ln.held == g && (ln.waiters.Len() > 0 || until.Before(g.kept)) {
		ln.lookAt(until)
	}
}

// known records how long the owner still has the lock, as Redis said. The keeper asks Redis again
// after that time: perhaps no other process does.
func (ln *line) known(ttl time.Duration) {
	switch ttl {
	case -time.Millisecond: // no TTL: it is another program's
		ttl = longest
	case -2 * time.Millisecond: // no lock
		ttl = 0
	}
	ln.plan(time.Time{})
	// A longer queue takes longer to come to the line's turn, and a process that waits for many locks looks at each less
	// often: at a hundred a second in all.
	l := ln.locker
	attention := max(l.attention, time.Duration(len(l.slots))*10*time.Millisecond)
	attention += time.Duration(ln.ahead) * 4 * time.Millisecond
	ln.look(min(ttl+l.jitter(), attention, max(ln.ttl, 50*time.Millisecond)))
	if ln.held != nil {
		ln.lookAtEnd(ln.held)
	}
}
