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

// acquire requests the lock directly if it may be free. If that request does not get the lock, or if none is made, the
// caller waits in the local queue. If the local queue has fewer slots than it needs, acquire adds one.
func (l *Locker) acquire(ctx context.Context, key string, ttl time.Duration) (*Lease, error) {
	lq, err := l.enter(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	lq.came++
	number := lq.came
	// A direct request gets a free lock in one round trip. It is skipped if this process holds the lock, requests it or
	// waits for it, or if another process probably has it (isCrowded).
	if lq.idle() && !lq.isCrowded() {
		held, err := l.takeIfFree(ctx, lq)
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
		// If leave returns false, the wait already has a result, which the caller gets instead of err.
		if l.leave(ctx, lq, element) {
			return nil, err
		}
	}
	if w.err != nil {
		return nil, indeterminate.Because(ctx, w.err)
	}
	return &w.turn, nil
}

// bring puts p, a new slot of lq, into Redis's queue. If that fails, the waiter in element, whose caller added p, gets
// the error. bring does not stop when the ctx of that caller ends: Redis may execute the command anyway, and another
// caller can then use the slot.
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

// try requests a lock that may be free. If this process knows that the lock is held, try returns ErrHeld without a
// request. If a request of another caller is under way, try first waits for the result of that request.
func (l *Locker) try(ctx context.Context, key string, ttl time.Duration) (*Lease, error) {
	for before := (*question)(nil); ; {
		lq, err := l.enter(ctx, key, ttl)
		if err != nil {
			return nil, err
		}
		// If no caller waits, the keeper does not notice that the lease of this process has expired, so try ends the lease.
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
			// ErrHeld from a request that began before this call may be outdated. In that case try asks again.
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
			held, err := l.takeIfFree(ctx, lq)
			lq.settle()
			l.mu.Unlock()
			return held, err
		}
		l.mu.Unlock()
		return nil, err
	}
}

// enter locks the mutex and returns the local queue of a key and a TTL. If ctx has ended, the key or the TTL is
// invalid, or the Locker is closed, enter returns an error and leaves the mutex unlocked.
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

// takeIfFree requests the lock directly. It returns ErrHeld if another client holds the lock. The caller holds the
// mutex, which takeIfFree unlocks while it waits for Redis.
func (l *Locker) takeIfFree(ctx context.Context, lq *localQueue) (*Lease, error) {
	// Callers that arrive during this request wait for its result instead of sending their own.
	q := &question{over: make(chan struct{})}
	lq.asking = q
	defer close(q.over)
	began := time.Now()
	l.mu.Unlock()
	g, err := l.take(ctx, lq)
	l.mu.Lock()
	lq.asking = nil
	if err != nil {
		// An error caused by the end of this caller's ctx says nothing about the lock. The callers that wait for this request
		// must then send their own.
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

// take requests a free lock from Redis. Redis may reply that the owner is an id of this process whose release is still
// pending. take then waits for that release, for at most grace, and tries once more.
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

// takeOnce requests a free lock from Redis. If the reply is lost, it repeats the request with the same id. The next
// reply contains the owner, which shows whether the id got the lock.
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

// queue puts slot p into Redis's queue, or gets the lock for p if the lock is free. The modes are described in
// queue.lua. If queue returns an error, it has dropped p and added a pending release, which removes p from Redis's
// queue if it is there.
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
			// The command may have been executed although its reply was lost. In mode "again" the script does not queue the same
			// id twice.
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

// queueOnce tries once to queue slot p: by RPUSHX if that suffices, otherwise by queue.lua.
func (l *Locker) queueOnce(ctx context.Context, p *slot, mode string) error {
	lq := p.localQueue
	l.mu.Lock()
	if l.slots[p.id] == nil { // the slot has been given up
		l.mu.Unlock()
		return nil
	}
	p.listened = lq.listens()
	// RPUSHX queues an entry behind other entries without a script. It does not renew the TTL of the queue, so it is used
	// only if a script has renewed the TTL within the last minute.
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

// leave ends the wait of a caller whose ctx has ended. If the waiter already has its turn, leave releases the lease.
// leave returns false if the caller must use the result of the wait instead: an error, or a turn granted before the
// Locker was closed.
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
		// A goroutine releases the turn, because leave waits for the release for at most grace.
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

// waitEnded returns the error of a wait that ended because ctx has ended. That is Redis's last error if there is one,
// otherwise strategies.WaitEnded if the lock is known to be held, and otherwise ctx's error.
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

// grace limits how long a caller whose ctx has ended waits until its slot or lease has been released at Redis.
const grace = 100 * time.Millisecond

// await waits until acked is closed, which means that Redis has replied to the release of a slot or lease, but at most
// for grace. If ctx has not ended, await returns at once.
func await(ctx context.Context, acked <-chan struct{}) {
	if acked == nil || ctx.Err() == nil {
		return
	}
	select {
	case <-acked:
	case <-time.After(grace):
	}
}
