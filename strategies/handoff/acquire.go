package handoff

import (
	"container/list"
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// acquire first tries to take the lock directly, if the lock may be free. Otherwise it waits in the local queue. If the
// local queue has too few slots at Redis, acquire queues another one.
func (l *Locker) acquire(ctx context.Context, key string, ttl time.Duration) (*Lease, error) {
	lq, err := l.enter(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	lq.came++
	number := lq.came
	// Acquiring a free lock costs one round trip. If the lock was held a moment ago, or if other callers of this process
	// wait, the caller joins the queue at once.
	if lq.idle() && !lq.isCrowded() {
		held, err := l.ask(ctx, lq)
		if !taken(err) {
			lq.settle()
			l.mu.Unlock()
			return held, err
		}
	}
	w := &waiter{number: number, over: make(chan struct{})}
	element := lq.join(w)
	if p := lq.short(); p != nil {
		l.begin(func() { l.bring(lq, element, p) })
	}
	l.mu.Unlock()
	select {
	case <-w.over:
	case <-ctx.Done():
		err := l.waitEnded(ctx, lq)
		// The wait may have ended at the same moment; then its result counts, not the end of ctx.
		if l.leave(ctx, lq, element) {
			return nil, err
		}
	}
	if w.err != nil {
		return nil, indeterminate.Because(ctx, w.err)
	}
	return &w.turn, nil
}

// bring queues at Redis the slot that a waiter has added to its local queue. It does not end with the waiter's ctx,
// because Redis executes the command anyway and the next caller can use the slot.
func (l *Locker) bring(lq *localQueue, element *list.Element, p *slot) {
	err := l.queue(l.ctx, p, "wait")
	l.mu.Lock()
	defer l.mu.Unlock()
	w := element.Value.(*waiter)
	select {
	case <-w.over:
	default:
		if err != nil {
			lq.waiters.Remove(element) // no effect if the waiter has given up and left the list
			w.err = err
			close(w.over)
		}
	}
	lq.tidy()
	lq.forget()
}

// try takes a lock that may be free. It sends nothing if this process knows that the lock is held. If another caller's
// request is under way, it waits for the result of that request.
func (l *Locker) try(ctx context.Context, key string, ttl time.Duration) (*Lease, error) {
	for before := (*question)(nil); ; {
		lq, err := l.enter(ctx, key, ttl)
		if err != nil {
			return nil, err
		}
		// The lease may have expired. Without waiters no other code of this process detects that.
		if g := lq.held; g != nil && !time.Now().Before(g.until.Get()) {
			lq.runOut(g)
		}
		q := lq.asking
		switch {
		case lq.held != nil:
			err = strategies.ErrHeld
		case q != nil:
			l.mu.Unlock()
			select {
			case <-q.over:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			// If the request began before this call, its result ErrHeld may describe the lock's state before this call.
			if held := errors.Is(q.err, strategies.ErrHeld); q.err != nil && (!held || before != nil) {
				return nil, q.err
			}
			before = q
			continue
		case lq.waiters.Len() > 0 || len(lq.slots) > 0: // another client has the lock, or Redis does not serve this queue
			if err = lq.failure; err == nil && !lq.isKnown() {
				l.mu.Unlock()
				pause.Plain(ctx.Done(), 5*time.Millisecond)
				continue
			}
			if err == nil {
				err = strategies.ErrHeld
			}
		default:
			held, err := l.ask(ctx, lq)
			lq.settle()
			l.mu.Unlock()
			return held, err
		}
		l.mu.Unlock()
		return nil, err
	}
}

// enter returns the local queue of a key and a TTL. If it returns no error, the mutex is locked.
func (l *Locker) enter(ctx context.Context, key string, ttl time.Duration) (*localQueue, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := errors.Join(validTTL(ttl), goredis.CheckKey(l.config.Key(key), queueSuffix)); err != nil {
		return nil, err
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, strategies.ErrClosed
	}
	return l.localQueue(key, ttl), nil
}

// ask takes a lock that is free, or returns ErrHeld. The caller holds the mutex; ask unlocks it during the request to
// Redis.
func (l *Locker) ask(ctx context.Context, lq *localQueue) (*Lease, error) {
	// Other callers see the question and wait for its end instead of sending their own.
	q := &question{over: make(chan struct{})}
	lq.asking = q
	defer close(q.over)
	began := time.Now()
	l.mu.Unlock()
	g, err := l.take(ctx, lq)
	l.mu.Lock()
	lq.asking = nil
	if err != nil {
		// If this caller's ctx has ended, the error says nothing about Redis. The callers that wait for this question must
		// then send their own requests.
		if ctx.Err() == nil || taken(err) {
			q.err = err
		}
		if ctx.Err() == nil && !taken(err) {
			lq.failed(began, err)
		}
		if l.closed {
			err = strategies.ErrClosed
		}
		return nil, indeterminate.Because(ctx, err)
	}
	held := new(Lease)
	lq.begin(g)
	lq.hand(g, held)
	return held, nil
}

// taken reports whether err means that Redis has replied but the caller did not get the lock: another client holds it,
// or the lease had expired when the reply arrived.
func taken(err error) bool {
	return errors.Is(err, strategies.ErrHeld) || errors.Is(err, validity.ErrLate)
}

// take requests a free lock from Redis. If the owner is an id of this process whose release is still pending, take
// waits for that release and tries once more.
func (l *Locker) take(ctx context.Context, lq *localQueue) (*lease, error) {
	g, owner, err := l.takeOnce(ctx, lq)
	if !errors.Is(err, strategies.ErrHeld) {
		return g, err
	}
	l.mu.Lock()
	d := l.pendingReleases[owner]
	if d == nil || d.answered {
		l.mu.Unlock()
		return nil, err
	}
	acked := l.addPending(d.names, d.entry, d.indeterminate)
	l.mu.Unlock()
	select {
	case <-acked:
	case <-time.After(grace):
	case <-ctx.Done():
	}
	g, _, err = l.takeOnce(ctx, lq)
	return g, err
}

// takeOnce requests a free lock from Redis. If the reply is lost, it repeats the request with the same id: the owner in
// the next reply shows whether the id got the lock.
func (l *Locker) takeOnce(ctx context.Context, lq *localQueue) (_ *lease, owner string, err error) {
	g := &lease{id: l.ids.next(lq.lock), since: time.Now(), quiet: true}
	g.until.Set(end(g.since, lq.ttl))
	doubtful, err := l.persist(ctx, func(ctx context.Context) (err error) {
		l.config.Probe.Attempt()
		owner, g.token, err = l.redis.take(ctx, &lq.names, &g.id, milliseconds(lq.ttl), l.tokens)
		return err
	})
	g.indeterminate = doubtful
	switch {
	case err == nil && owner == g.id && time.Now().Before(g.until.Get()):
		return g, owner, nil
	case err == nil && owner == g.id:
		// Redis has granted the lease, but by the clock of this process it has already expired, so it must be released.
		err, doubtful = validity.ErrLate, true
	case err == nil:
		err = strategies.ErrHeld
	}
	if doubtful {
		l.mu.Lock()
		acked := l.addPending(lq.names, g.id, true)
		l.mu.Unlock()
		await(ctx, acked)
	}
	return nil, owner, err
}

// queue puts a slot into Redis's queue if the lock is not free. An error means that the slot is not queued and that
// no waiter uses it.
func (l *Locker) queue(ctx context.Context, p *slot, mode string) error {
	began := time.Now()
	if l.redis.cluster != nil { // in a cluster the pipeline does not detect that a node has stopped replying
		bound, done := patient(ctx, began)
		defer done()
		ctx = bound
	}
	lq, doubtful := p.localQueue, false
	err := l.listen(ctx, lq)
	if err == nil {
		doubtful, err = l.persist(ctx, func(ctx context.Context) error {
			l.config.Probe.Attempt()
			err := l.queueOnce(ctx, p, mode)
			l.mu.Lock()
			defer l.mu.Unlock()
			// The command may have been executed although its reply was lost. With "again" the script does not queue the same id
			// twice.
			mode, lq.failure = "again", err
			p.indeterminate = p.indeterminate || lost(err)
			return err
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.coming = false
	if err == nil {
		return nil
	}
	if !lq.drop(p) { // the slot got the lock in spite of the error
		return nil
	}
	l.addPending(lq.names, p.entry(), doubtful) // an error may come after a write
	lq.failed(began, err)
	return err
}

// queueOnce tries once to queue a slot. It needs no script if other slots are known to be queued.
func (l *Locker) queueOnce(ctx context.Context, p *slot, mode string) error {
	lq := p.localQueue
	l.mu.Lock()
	if l.slots[p.id] == nil { // the slot has been given up
		l.mu.Unlock()
		return nil
	}
	p.listened = lq.listens()
	// RPUSHX queues an entry behind other entries without a script. It does not renew the TTL of the queue, so it is used
	// only if a script has done so within the last minute.
	follow := mode == "wait" && lq.ahead > 1 && time.Since(lq.kept) < time.Minute
	l.mu.Unlock()
	if follow {
		n, err := l.redis.follow(ctx, lq.queue, p.entry())
		if err != nil && lost(err) {
			return err
		}
		if err == nil { // after a refusal, such as by a replica, the script finds the primary
			l.mu.Lock()
			if lq.ahead = n; n > 0 {
				p.queued = true
				lq.known(longest)
			}
			l.mu.Unlock()
			if n > 0 {
				return nil
			}
		}
	}
	sent := time.Now()
	reply, err := l.redis.run(ctx, queueScript, &lq.names, &p.id, milliseconds(lq.ttl), mode)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if grantMsg, ok := reply.(string); ok {
		l.learnOwner(grantMsg, p.since)
		if l.slots[p.id] != nil { // the grant is for another slot of this process
			p.queued = true
			lq.known(longest)
		}
		return nil
	}
	left, ahead, ok := pair(reply)
	if !ok {
		return unexpected("queue.lua", reply)
	}
	p.queued, lq.ahead, lq.kept, lq.crowded = true, ahead, sent, sent.Add(l.attention)
	lq.known(time.Duration(left) * time.Millisecond)
	return nil
}

// leave ends a wait and returns true. It returns false if the wait has already ended. If the waiter got its turn
// after the end of ctx, leave releases the lease and returns true.
func (l *Locker) leave(ctx context.Context, lq *localQueue, element *list.Element) bool {
	w := element.Value.(*waiter)
	var acked <-chan struct{}
	l.mu.Lock()
	select {
	case <-w.over:
		if w.err != nil || ctx.Err() == nil || l.closed {
			l.mu.Unlock()
			return false
		}
		released := make(chan struct{})
		// The waiter got its turn after the end of ctx. A goroutine releases the turn, because the caller waits only for
		// grace.
		l.tasks.Go(func() {
			settle, done := context.WithTimeout(context.Background(), patience)
			defer done()
			_ = w.turn.Release(settle)
			close(released)
		})
		acked = released
	default:
		lq.waiters.Remove(element)
		acked = lq.tidy()
		lq.forget()
	}
	l.mu.Unlock()
	await(ctx, acked)
	return true
}

// waitEnded returns the error of a wait that ctx has ended: strategies.WaitEnded if the lock is known to be held,
// Redis's last error if there is one, and ctx's error otherwise.
func (l *Locker) waitEnded(ctx context.Context, lq *localQueue) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case lq.failure != nil:
		return indeterminate.Because(ctx, lq.failure)
	case lq.isKnown():
		return strategies.WaitEnded(ctx)
	}
	return ctx.Err()
}

// grace is how long a caller whose ctx has ended waits for its clean-up at Redis to finish.
const grace = 100 * time.Millisecond

// await waits for a clean-up at Redis if ctx has ended, for at most grace. A caller whose ctx has not ended does not
// wait.
func await(ctx context.Context, acked <-chan struct{}) {
	if acked == nil || ctx.Err() == nil {
		return
	}
	select {
	case <-acked:
	case <-time.After(grace):
	}
}
