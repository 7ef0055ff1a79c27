package handoff

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// lease is what Redis gives a process: one turn or several. The Locker's mutex guards it.
type lease struct {
	id    string
	token int64     // from Redis's clock, in µs
	since time.Time // Redis cannot have given it earlier
	until validity.Until
	kept  time.Time // by this process's clock Redis may keep it for longer than until, up to here

	holder        *Lease // whose turn it is; nil when it is given up or lost
	passed        int    // turns so far
	last          int64  // the number of the last waiter that gets one
	began         time.Time
	seen          time.Time // when it was last known to be the process's
	looking       bool      // a task asks Redis whether it still is
	lost          bool
	indeterminate bool // a command that takes it may come late
	quiet         bool // it was taken while the lock was free, so probably nobody waits
}

// Lease is one turn of a caller. It is a strategies.Lease, Extender, Fenced, Timed and
// Watched; without Tokens it is wrapped, and not Fenced.
type Lease struct {
	localQueue *localQueue
	lease      *lease
	fence      int64

	// The Locker's mutex guards these.
	over    bool          // it was passed on, released or lost
	refused bool          // its release ended with an error, and the keeper repeats it
	gone    chan struct{} // nil until Lost is called
	timer   *time.Timer
}

// FencingToken is larger than that of every earlier lease on the same lock.
func (t *Lease) FencingToken() int64 { return t.fence }

// unfenced is what a Lease can do without tokens.
type unfenced interface {
	strategies.Lease
	strategies.Extender
	strategies.Timed
	strategies.Watched
}

// shown returns a lease as its caller gets it.
func (l *Locker) shown(held *Lease) strategies.Lease {
	if l.tokens {
		return held
	}
	return struct{ unfenced }{held}
}

// ValidUntil returns when the lease ends, unless it is extended or released.
func (t *Lease) ValidUntil() time.Time { return t.lease.until.Get() }

// Lost returns a channel that is closed when the lease ends before it is released, or is
// found to be lost.
func (t *Lease) Lost() <-chan struct{} {
	l := t.localQueue.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.gone == nil {
		t.gone = make(chan struct{})
		if t.over && t.lease.lost {
			close(t.gone)
		} else if !t.over {
			t.timer = time.AfterFunc(time.Until(t.ValidUntil()), t.expire)
		}
	}
	return t.gone
}

// expire ends the lease as lost, unless it was extended.
func (t *Lease) expire() {
	l := t.localQueue.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	switch left := time.Until(t.ValidUntil()); {
	case t.over:
	case left > 0:
		t.timer.Reset(left)
	default:
		t.localQueue.runOut(t.lease)
	}
}

// reportLoss ends a turn that is lost.
func (t *Lease) reportLoss() {
	t.end()
	if t.gone != nil {
		close(t.gone)
	}
}

func (t *Lease) end() {
	t.over = true
	if t.timer != nil {
		t.timer.Stop()
	}
}

// Release hands the lock to the next waiter of this process, or of another. It may be called
// again after an error other than ErrNotHeld.
func (t *Lease) Release(ctx context.Context) error {
	lq, g := t.localQueue, t.lease
	l := lq.locker
	l.mu.Lock()
	if t.over && !t.refused {
		l.mu.Unlock()
		return strategies.ErrNotHeld
	}
	if next := lq.goesOn(g); next != nil && !t.over {
		t.end()
		lq.give(g, next)
		if !g.looking && time.Since(g.seen) > mostUnseen {
			g.looking = true
			l.begin(func() { l.see(lq, g) })
		}
		l.mu.Unlock()
		return nil
	}
	var p *slot
	if !t.over {
		t.end()
		lq.giveUp(g)
		if l.linger > 0 && !l.closed {
			if p = lq.short(); p != nil { // it queues in the same script
				p.listened = lq.listens()
			}
		}
	}
	alone := g.quiet && len(lq.slots) == 0 && l.redis.serves()
	l.mu.Unlock()
	if err := l.release(ctx, t, p, alone); err != nil {
		return fmt.Errorf("release %q: %w", lq.key, indeterminate.Because(ctx, err))
	}
	return nil
}

// release asks Redis. If the answer was lost, Redis may have released the lock, and others
// may have released it since. If it is alone, it asks twice where another process has come to wait.
func (l *Locker) release(ctx context.Context, t *Lease, p *slot, alone bool) error {
	lq, g := t.localQueue, t.lease
	var reply any
	var sent time.Time
	entry := ""
	if p != nil {
		entry = p.entry()
	}
	token := g.token
	if g.indeterminate { // a late command may take the lock again with this id
		token = 0
	}
	doubtful, err := l.persist(ctx, func(ctx context.Context) (err error) {
		sent = time.Now()
		if alone {
			var freed bool
			if freed, err = l.redis.free(ctx, &lq.names, &g.id); err != nil {
				return err
			}
			if alone = false; freed {
				reply = int64(1)
				return nil
			}
		}
		queued := entry // of this try: go-redis may read it when the try is over
		reply, err = l.redis.run(ctx, releaseScript, &lq.names, &g.id, token, &queued)
		if err != nil && entry != "" && !l.redis.passes(err) {
			entry = ""
			if !lost(err) { // Redis may have refused only to queue
				none := ""
				reply, err = l.redis.run(ctx, releaseScript, &lq.names, &g.id, token, &none)
			}
		}
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, g.id)            // only now: a late message must find the id
	before := t.refused || doubtful // Redis may have released it before
	if p != nil {
		p.coming, p.queued = false, entry != "" && err == nil
		p.unsure = !p.queued
	}
	if t.refused = err != nil; err != nil {
		l.addPending(lq.names, g.id, doubtful)
		lq.look(0)
		return err
	}
	grantMsg, granted := reply.(string)
	n, _ := reply.(int64)
	lq.crowded = time.Time{}
	switch {
	case granted:
		l.learnOwner(grantMsg, sent)
	case n == 0 && p != nil && !p.unsure: // the place is not queued
		lq.drop(p)
	case n == 2:
		lq.crowded = sent.Add(l.attention)
	}
	if p != nil && p.queued {
		lq.known(lq.ttl)
	}
	unheard := p != nil && p.queued && !p.listened // the process does not listen yet: its turn may pass
	if n == 3 || p != nil && p.unsure || unheard {
		lq.look(0)
	}
	if g.indeterminate {
		l.addPending(lq.names, g.id, true)
	}
	lq.settle()
	if n == 0 && !granted && !before {
		g.lost = true
		return strategies.ErrNotHeld
	}
	return nil
}

// mostUnseen is how long a process passes a lease on without a look whether it still has it:
// Redis may have lost it.
const mostUnseen = 25 * time.Millisecond

// see asks Redis whether the process still has a lease.
func (l *Locker) see(lq *localQueue, g *lease) {
	sent := time.Now()
	// Not GET, which go-redis may send to a replica. PEXPIRE GT with a TTL of 1 ms changes nothing.
	clock, err := l.extend(l.ctx, lq, g.id, time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	g.looking = false
	switch {
	case err != nil: // then the lease ends at until
	case clock != 0:
		g.seen = sent
	case lq.held == g:
		lq.lose(g)
		l.addPending(lq.names, g.id, g.indeterminate)
	}
}

// Extend makes the lease valid for ttl from now on, also where that is less than is left of it. An
// error other than ErrNotHeld leaves its end as it was.
func (t *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	lq, g := t.localQueue, t.lease
	l := lq.locker
	if err := validTTL(ttl); err != nil {
		return fmt.Errorf("extend %q: %w", lq.key, err)
	}
	since := time.Now()
	l.mu.Lock()
	if t.over {
		l.mu.Unlock()
		return strategies.ErrNotHeld
	}
	if until := end(since, ttl); until.After(g.kept) {
		g.kept = until
	}
	l.mu.Unlock()
	clock, err := l.extend(ctx, lq, g.id, ttl)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		lq.lookAtEnd(g)
		return fmt.Errorf("extend %q: %w", lq.key, indeterminate.Because(ctx, err))
	case clock == 0:
		lq.lose(g)
		lq.forget()
		return strategies.ErrNotHeld
	case t.over:
		return strategies.ErrNotHeld
	}
	g.until.Set(end(since, ttl))
	g.seen = since
	if t.timer != nil {
		t.timer.Reset(time.Until(t.ValidUntil()))
	}
	lq.lookAtEnd(g)
	return nil
}

// extend has Redis keep a lease. It returns Redis's time, or 0 if the id does not have the
// lock.
func (l *Locker) extend(ctx context.Context, lq *localQueue, id string, ttl time.Duration) (clock int64, err error) {
	_, err = l.persist(ctx, func(ctx context.Context) error {
		reply, err := l.redis.run(ctx, extendScript, &lq.names, &id, milliseconds(ttl))
		if err != nil {
			return err
		}
		ok := false
		if clock, ok = reply.(int64); !ok {
			return unexpected("to extend", reply)
		}
		return nil
	})
	return clock, err
}
