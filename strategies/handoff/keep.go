package handoff

import (
	"container/heap"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// keeper is the background goroutine of a process. It checks local queues whose turn has not come, checks that the
// process receives messages, and sends pending releases. It runs only while a task is planned, and handles only the
// local queues and pending releases that are due.
type keeper struct {
	running     bool
	planned     time.Time // when the goroutine runs next
	wake        chan struct{}
	localQueues dueQueues
	pendingDue  time.Time // when the next pending release is due; zero if there is none
}

// dueQueues is a heap of the local queues that the keeper will check, ordered by the time of the check.
type dueQueues []*localQueue

func (d dueQueues) Len() int           { return len(d) }
func (d dueQueues) Less(i, j int) bool { return d[i].due.Before(d[j].due) }
func (d dueQueues) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].planned, d[j].planned = i+1, j+1
}

// Push appends a local queue and records its index in the heap. It implements heap.Interface.
func (d *dueQueues) Push(x any) {
	lq := x.(*localQueue)
	*d = append(*d, lq)
	lq.planned = len(*d)
}

// Pop removes the last local queue and returns it. It implements heap.Interface.
func (d *dueQueues) Pop() any {
	last := len(*d) - 1
	lq := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	lq.planned = 0
	return lq
}

// plan makes the keeper check the local queue at due; the zero time means never. If a check of the queue is under way,
// lookNow plans the next one when that check ends.
func (lq *localQueue) plan(due time.Time) {
	d := &lq.locker.keeper.localQueues
	if lq.planned > 0 {
		heap.Remove(d, lq.planned-1)
	}
	if lq.due = due; due.IsZero() || lq.looking {
		return
	}
	heap.Push(d, lq)
	lq.locker.keep(due)
}

// jitter returns a random delay from 1 ms to 51 ms, so that processes do not run the same task at the same time. For a
// TTL below 800 ms the upper bound is 1 ms plus a sixteenth of the TTL.
func (l *Locker) jitter() time.Duration {
	return time.Millisecond + rand.N(min(l.config.TTL/16, 50*time.Millisecond))
}

// begin runs do in the background, unless the Locker is closed.
func (l *Locker) begin(do func()) {
	if !l.closed {
		l.tasks.Go(do)
	}
}

// keep makes the keeper run at due or earlier. The caller holds the mutex.
func (l *Locker) keep(due time.Time) {
	switch k := &l.keeper; {
	case l.closed:
	// The goroutine ends when nothing is due, so an idle Locker has none.
	case !k.running:
		k.running, k.planned = true, due
		l.tasks.Go(l.keepOn)
	case due.Before(k.planned):
		k.planned = due
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

// keepOn runs the due tasks until none is planned or the Locker is closed.
func (l *Locker) keepOn() {
	for {
		l.mu.Lock()
		next := l.attend(time.Now())
		l.keeper.planned = next
		l.keeper.running = !next.IsZero() && !l.closed
		on := l.keeper.running
		l.mu.Unlock()
		if !on {
			return
		}
		timer := time.NewTimer(max(time.Until(next), time.Millisecond))
		select {
		case <-timer.C:
		case <-l.keeper.wake:
		case <-l.ctx.Done():
		}
		timer.Stop()
	}
}

// attend runs the tasks that are due at now and returns the time of the next task, or zero if none is planned.
func (l *Locker) attend(now time.Time) (next time.Time) {
	soonest := func(due time.Time) {
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	for localQueues := &l.keeper.localQueues; localQueues.Len() > 0; {
		if first := (*localQueues)[0]; first.due.After(now) {
			soonest(first.due)
			break
		}
		lq := heap.Pop(localQueues).(*localQueue)
		lq.due = time.Time{}
		lq.attend(now)
	}
	if due := l.listenOn(now); !due.IsZero() {
		soonest(due)
	}
	if pendingDue := &l.keeper.pendingDue; !pendingDue.IsZero() {
		if !pendingDue.After(now) {
			*pendingDue = l.sendDue(now)
		}
		if !pendingDue.IsZero() {
			soonest(*pendingDue)
		}
	}
	return next
}

// attend handles a local queue that is due. It ends an expired lease, gives up slots that no caller waits for, removes
// an idle queue, or starts a check at Redis.
func (lq *localQueue) attend(now time.Time) {
	if g := lq.held; g != nil {
		if until := g.until.Get(); until.After(now) {
			lq.lookAtEnd(g)
			return
		}
		lq.runOut(g)
	}
	if lq.idle() {
		lq.forget()
		return
	}
	if lq.waiters.Len() == 0 {
		lq.abandon()
		lq.forget()
		return
	}
	lq.looking = true
	lq.plan(time.Time{}) // this check replaces the one that runOut above has planned
	lq.locker.begin(lq.lookNow)
}

// lookNow checks at Redis that the local queue's slots are queued there, and queues those that are missing. After an
// error it plans another check.
func (lq *localQueue) lookNow() {
	l := lq.locker
	began, ctx := time.Now(), l.ctx
	l.mu.Lock()
	limit := patience
	if !lq.failing.IsZero() { // from the first failed check on, patience bounds all checks together
		limit = max(patience-time.Since(lq.failing), patience/4)
	}
	if !lq.failing.IsZero() || l.redis.cluster != nil { // as in queue
		bound, cancel := context.WithTimeoutCause(l.ctx, limit, errOutage)
		defer cancel()
		ctx = bound
	}
	l.mu.Unlock()
	err := because(ctx, lq.recover(ctx))
	l.mu.Lock()
	defer l.mu.Unlock()
	lq.looking = false
	lq.plan(lq.due)
	switch {
	case err == nil:
		lq.failing, lq.failure = time.Time{}, nil
	case l.ctx.Err() == nil:
		lq.failed(began, err)
	}
	lq.tidy()
	lq.forget()
}

// failed records that Redis has not served the local queue since the given time, and plans another check. Once Redis
// has not served it for the duration patience, failed ends all waits with err.
func (lq *localQueue) failed(since time.Time, err error) {
	if lq.failure = err; lq.waiters.Len() == 0 {
		return
	}
	if lq.failing.IsZero() {
		lq.failing = since
	}
	left := patience - time.Since(lq.failing)
	if left <= 0 {
		lq.failing = time.Time{}
		lq.fail(err)
		return
	}
	lq.look(max(20*time.Millisecond, min((patience-left)/2, left)))
}

// recover restores the state at Redis that the waiters need. It renews the subscription, queues missing slots and gives
// up slots that are no longer needed.
func (lq *localQueue) recover(ctx context.Context) error {
	l := lq.locker
	if err := l.listen(ctx, lq); err != nil {
		return err
	}
	missing, err := lq.check(ctx)
	if err != nil {
		return err
	}
	for _, p := range slices.Backward(missing) { // each slot goes to the front, so the oldest must be queued last
		l.mu.Lock()
		next := lq.replace(p)
		l.mu.Unlock()
		if next != nil {
			if err := l.queue(ctx, next, "front"); err != nil {
				return err
			}
		}
	}
	l.mu.Lock()
	for len(lq.slots) > lq.wanted() && !lq.slots[len(lq.slots)-1].coming { // more slots than callers to use them
		lq.giveBack(lq.slots[len(lq.slots)-1])
	}
	l.mu.Unlock()
	for {
		l.mu.Lock()
		p := lq.short()
		l.mu.Unlock()
		if p == nil {
			return nil
		}
		if err := l.queue(ctx, p, "wait"); err != nil {
			return err
		}
	}
}

// replace drops a slot that a check did not find at Redis. It returns the slot to queue in its place, or nil if none is
// needed.
func (lq *localQueue) replace(missing *slot) *slot {
	l := lq.locker
	// The slot may have got the lock since the check: a late command queued it, and the check of another local queue found
	// that the slot is the owner. In that case the slot's lease must not be released.
	if !lq.drop(missing) {
		return nil
	}
	// A late command may still queue this id, so the slot gets a new id and the old one becomes a pending release.
	if missing.indeterminate || missing.unsure {
		l.addPending(lq.names, missing.entry(), true)
	}
	if len(lq.slots) >= lq.wanted() {
		return nil
	}
	next := lq.newSlot()
	lq.slots = slices.Insert(lq.slots, 0, next)
	return next
}

// check runs check.lua, which repairs the queue at Redis, and returns the slots of the local queue that are missing
// there. Slots are checked oldest first; if one is queued, all slots behind it are queued too.
func (lq *localQueue) check(ctx context.Context) (missing []*slot, err error) {
	l := lq.locker
	l.mu.Lock()
	var asked []*slot
	for _, p := range lq.slots {
		if p.queued || p.unsure {
			asked = append(asked, p)
		}
	}
	seen := lq.seen
	l.mu.Unlock()
	for _, p := range asked {
		there, err := lq.checkOne(ctx, p, seen)
		if err != nil {
			return nil, err
		}
		if there {
			break
		}
		missing = append(missing, p)
	}
	return missing, nil
}

// checkOne runs check.lua for one slot and reports whether the slot is still queued or has been given up.
func (lq *localQueue) checkOne(ctx context.Context, p *slot, seen string) (there bool, err error) {
	l := lq.locker
	var sent time.Time
	var reply any
	_, err = l.persist(ctx, func(ctx context.Context) (err error) {
		sent = time.Now()
		reply, err = l.redis.run(ctx, checkScript, &lq.names, seen, p.entry())
		return err
	})
	if err != nil {
		return false, err
	}
	values, ok := reply.([]any)
	if !ok || len(values) != 5 {
		return false, unexpected("check.lua", reply)
	}
	owner, _ := values[0].(string)
	left, _ := values[1].(int64)
	now, _ := values[2].(string)
	at, _ := values[3].(int64)
	owner = strings.TrimSuffix(owner, "+")
	l.mu.Lock()
	defer l.mu.Unlock()
	// The next check passes this owner to the script. If the lease of this owner has expired by then, the process of the
	// owner has probably died, and the script removes the entries of that process from the queue.
	lq.seen = owner
	if grantMsg, ok := values[4].(string); ok {
		l.learnOwner(grantMsg, sent)
	} else if mine := l.slots[owner]; mine != nil { // the message about the grant is lost or in transit
		if token, err := strconv.ParseInt(now, 10, 64); err == nil {
			mine.arrive(token, sent, end(sent, time.Duration(left)*time.Millisecond))
		}
	}
	// The more entries are ahead of the slot, the later known plans the next check.
	if at >= 0 {
		lq.ahead = at + 1
	}
	lq.known(time.Duration(left) * time.Millisecond)
	if l.slots[p.id] == nil || at >= 0 {
		return true, nil
	}
	if p.queued && p.listened && lq.subscriber != nil { // otherwise the connection is not to blame
		lq.subscriber.end(errMissed)
	}
	return false, nil
}

// errMissed ends a subscriber that missed the message about a slot's turn, so that the process subscribes again.
var errMissed = errors.New("listen: the subscription missed the message that announces a turn")
