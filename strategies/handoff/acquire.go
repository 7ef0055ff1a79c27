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

func (l *Locker) acquire(ctx context.Context, key string, ttl time.Duration) (*Lease, error) {
	ln, err := l.enter(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	ln.came++
	number := ln.came
	if ln.idle() && !ln.isCrowded() {
		held, err := l.ask(ctx, ln)
		if !taken(err) {
			ln.settle()
			l.mu.Unlock()
			return held, err
		}
	}
	w := &waiter{number: number, over: make(chan struct{})}
	element := ln.join(w)
	if p := ln.short(); p != nil {
		l.begin(func() { l.bring(ln, element, p) })
	}
	l.mu.Unlock()
	select {
	case <-w.over:
	case <-ctx.Done():
		err := l.waitEnded(ctx, ln)
		if l.leave(ctx, ln, element) {
			return nil, err
		}
	}
	if w.err != nil {
		return nil, indeterminate.Because(ctx, w.err)
	}
	return &w.turn, nil
}

// bring queues the place that a waiter brings to its line. It does not end with the waiter's ctx:
// what was asked for is answered, and who comes next can use the place.
func (l *Locker) bring(ln *line, element *list.Element, p *slot) {
	err := l.queue(l.ctx, p, "wait")
	l.mu.Lock()
	defer l.mu.Unlock()
	w := element.Value.(*waiter)
	select {
	case <-w.over:
	default:
		if err != nil {
			ln.waiters.Remove(element) // it may have gone
			w.err = err
			close(w.over)
		}
	}
	ln.tidy()
	ln.forget()
}

func (l *Locker) try(ctx context.Context, key string, ttl time.Duration) (*Lease, error) {
	for before := (*question)(nil); ; {
		ln, err := l.enter(ctx, key, ttl)
		if err != nil {
			return nil, err
		}
		// A lease may have run out, and no waiter is here who would notice.
		if g := ln.held; g != nil && !time.Now().Before(g.until.Get()) {
			ln.runOut(g)
		}
		q := ln.asking
		switch {
		case ln.held != nil:
			err = strategies.ErrHeld
		case q != nil:
			l.mu.Unlock()
			select {
			case <-q.over:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			// That the lock was another's may be older than this call, if the question is.
			if held := errors.Is(q.err, strategies.ErrHeld); q.err != nil && (!held || before != nil) {
				return nil, q.err
			}
			before = q
			continue
		case ln.waiters.Len() > 0 || len(ln.slots) > 0: // another has the lock, or Redis does not serve the line
			if err = ln.failure; err == nil && !ln.isKnown() {
				l.mu.Unlock()
				pause.Plain(ctx.Done(), 5*time.Millisecond)
				continue
			}
			if err == nil {
				err = strategies.ErrHeld
			}
		default:
			held, err := l.ask(ctx, ln)
			ln.settle()
			l.mu.Unlock()
			return held, err
		}
		l.mu.Unlock()
		return nil, err
	}
}

// enter returns the line of a key and a TTL. Without an error it returns with the mutex
// locked.
func (l *Locker) enter(ctx context.Context, key string, ttl time.Duration) (*line, error) {
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
	return l.line(key, ttl), nil
}

// ask takes a lock that is free, or returns ErrHeld. The caller has the mutex; ask unlocks it
// while it talks to Redis.
func (l *Locker) ask(ctx context.Context, ln *line) (*Lease, error) {
	q := &question{over: make(chan struct{})}
	ln.asking = q
	defer close(q.over)
	began := time.Now()
	l.mu.Unlock()
	g, err := l.take(ctx, ln)
	l.mu.Lock()
	ln.asking = nil
	if err != nil {
		if ctx.Err() == nil || taken(err) {
			q.err = err
		}
		if ctx.Err() == nil && !taken(err) {
			ln.failed(began, err)
		}
		if l.closed {
			err = strategies.ErrClosed
		}
		return nil, indeterminate.Because(ctx, err)
	}
	held := new(Lease)
	ln.begin(g)
	ln.hand(g, held)
	return held, nil
}

// taken says that Redis has answered, and the caller has not got the lock: another has it, or the lease had run out
// when the answer came.
func taken(err error) bool {
	return errors.Is(err, strategies.ErrHeld) || errors.Is(err, validity.ErrLate)
}

// take asks Redis for a free lock, once more if this process has still to give it up.
func (l *Locker) take(ctx context.Context, ln *line) (*lease, error) {
	g, owner, err := l.takeOnce(ctx, ln)
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
	g, _, err = l.takeOnce(ctx, ln)
	return g, err
}

// takeOnce asks Redis for a free lock. If the answer is lost it asks again under the same id: the
// owner in the answer shows whether the id got the lock.
func (l *Locker) takeOnce(ctx context.Context, ln *line) (_ *lease, owner string, err error) {
	g := &lease{id: l.ids.next(ln.lock), since: time.Now(), quiet: true}
	g.until.Set(end(g.since, ln.ttl))
	doubtful, err := l.persist(ctx, func(ctx context.Context) (err error) {
		l.config.Probe.Attempt()
		owner, g.token, err = l.redis.take(ctx, &ln.names, &g.id, milliseconds(ln.ttl), l.tokens)
		return err
	})
	g.indeterminate = doubtful
	switch {
	case err == nil && owner == g.id && time.Now().Before(g.until.Get()):
		return g, owner, nil
	case err == nil && owner == g.id:
		err, doubtful = validity.ErrLate, true
	case err == nil:
		err = strategies.ErrHeld
	}
	if doubtful {
		l.mu.Lock()
		acked := l.addPending(ln.names, g.id, true)
		l.mu.Unlock()
		await(ctx, acked)
	}
	return nil, owner, err
}

// queue puts a place into Redis's queue if the lock is not free. An error means that the
// place is not queued and that no waiter uses it.
func (l *Locker) queue(ctx context.Context, p *slot, mode string) error {
	began := time.Now()
	if l.redis.cluster != nil { // no other caller's answer shows that a node is slow
		bound, done := patient(ctx, began)
		defer done()
		ctx = bound
	}
	ln, doubtful := p.line, false
	err := l.listen(ctx, ln)
	if err == nil {
		doubtful, err = l.persist(ctx, func(ctx context.Context) error {
			l.config.Probe.Attempt()
			err := l.queueOnce(ctx, p, mode)
			l.mu.Lock()
			defer l.mu.Unlock()
			mode, ln.failure = "again", err
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
	if !ln.drop(p) { // the place was granted all the same
		return nil
	}
	l.addPending(ln.names, p.entry(), doubtful) // an error may come after a write
	ln.failed(began, err)
	return err
}

// queueOnce asks Redis once. It needs no script if other places are known to be queued.
func (l *Locker) queueOnce(ctx context.Context, p *slot, mode string) error {
	ln := p.line
	l.mu.Lock()
	if l.slots[p.id] == nil { // it was given up meanwhile
		l.mu.Unlock()
		return nil
	}
	p.listened = ln.listens()
	follow := mode == "wait" && ln.ahead > 1 && time.Since(ln.kept) < time.Minute
	l.mu.Unlock()
	if follow {
		n, err := l.redis.follow(ctx, ln.queue, p.entry())
		if err != nil && lost(err) {
			return err
		}
		if err == nil { // if it was refused, such as by a replica, the script looks for the primary
			l.mu.Lock()
			if ln.ahead = n; n > 0 {
				p.queued = true
				ln.known(longest)
			}
			l.mu.Unlock()
			if n > 0 {
				return nil
			}
		}
	}
	sent := time.Now()
	reply, err := l.redis.run(ctx, queueScript, &ln.names, &p.id, milliseconds(ln.ttl), mode)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if grantMsg, ok := reply.(string); ok {
		l.learnOwner(grantMsg, p.since)
		if l.slots[p.id] != nil { // the grant is for another place of this process
			p.queued = true
			ln.known(longest)
		}
		return nil
	}
	left, ahead, ok := pair(reply)
	if !ok {
		return unexpected("to queue", reply)
	}
	p.queued, ln.ahead, ln.kept, ln.crowded = true, ahead, sent, sent.Add(l.attention)
	ln.known(time.Duration(left) * time.Millisecond)
	return nil
}

// leave ends a wait and returns true. It returns false if the wait has already ended. But if
// the turn came after the end of ctx, leave releases it and returns true.
func (l *Locker) leave(ctx context.Context, ln *line, element *list.Element) bool {
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
		l.tasks.Go(func() {
			settle, done := context.WithTimeout(context.Background(), patience)
			defer done()
			_ = w.turn.Release(settle)
			close(released)
		})
		acked = released
	default:
		ln.waiters.Remove(element)
		acked = ln.tidy()
		ln.forget()
	}
	l.mu.Unlock()
	await(ctx, acked)
	return true
}

// waitEnded is the error of a wait that ctx has ended: in a queue, or while Redis does not serve the line.
func (l *Locker) waitEnded(ctx context.Context, ln *line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ln.failure != nil:
		return indeterminate.Because(ctx, ln.failure)
	case ln.isKnown():
		return strategies.WaitEnded(ctx)
	}
	return ctx.Err()
}

// grace is how long a caller whose ctx has ended waits for its clean-up at Redis.
const grace = 100 * time.Millisecond

func await(ctx context.Context, acked <-chan struct{}) {
	if acked == nil || ctx.Err() == nil {
		return
	}
	select {
	case <-acked:
	case <-time.After(grace):
	}
}
