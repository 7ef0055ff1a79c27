package handoff

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// lease is a lease that Redis grants to a process for one or more turns. The Locker's mutex guards it.
type lease struct {
	id    string
	token int64     // from Redis's clock, in µs
	since time.Time // before the request for it was sent, so Redis cannot have granted it earlier
	until validity.Until
	kept  time.Time // the latest end at Redis by this process's clock, which may be after until

	holder        *Lease // the present turn; nil when the lease is released or lost
	passed        int    // number of turns so far
	last          int64  // the number of the last waiter that gets a turn
	began         time.Time
	seen          time.Time // when the process last verified that it has the lease
	looking       bool      // a task is checking at Redis that the process still has the lease
	lost          bool
	indeterminate bool // a command that takes the lock for this id may still arrive
	quiet         bool // the lock was free when it was taken, so probably no other process waits
}

// Lease is one caller's turn on a lock. It implements strategies.Lease, Extender, Fenced, Timed and Watched. If the
// lock has no tokens, Acquire returns the Lease wrapped in a type that does not implement Fenced.
type Lease struct {
	localQueue *localQueue
	lease      *lease
	fence      int64

	// The Locker's mutex guards the following fields.
	over    bool          // the turn was passed on, released or lost
	refused bool          // its release ended with an error, and the keeper repeats the release
	gone    chan struct{} // the channel of Lost; nil until Lost is called
	timer   *time.Timer
}

// FencingToken returns a number that is larger than the token of every earlier Lease on the same lock, as long as
// Redis's clock does not go back.
func (t *Lease) FencingToken() int64 { return t.fence }

// unfenced has the methods of a Lease except FencingToken.
type unfenced interface {
	strategies.Lease
	strategies.Extender
	strategies.Timed
	strategies.Watched
}

// shown returns the lease for the caller: without the method FencingToken if the lock has no tokens.
func (l *Locker) shown(held *Lease) strategies.Lease {
	if l.tokens {
		return held
	}
	return struct{ unfenced }{held}
}

// ValidUntil returns the time at which the lease expires by this process's clock. An extension changes this time.
func (t *Lease) ValidUntil() time.Time { return t.lease.until.Get() }

// Lost returns a channel that is closed when the lease expires without a release, or when the process detects that the
// lease is lost.
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

// expire runs when the lease is expected to end. It reports the loss of the lease, or waits again if the lease was
// extended.
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

// reportLoss ends a turn whose lease is lost and closes the channel that Lost returns.
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

// Release gives the lock to the next waiter, in this process or in another. It returns ErrNotHeld if the lease has
// expired, is lost or was already released. After any other error it may be called again, and the process also repeats
// the release in the background.
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
			if p = lq.short(); p != nil { // the release script also queues this slot
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

// release sends the release to Redis. If the reply to an earlier try was lost, that try may have released the lock, so
// release then does not return ErrNotHeld. If alone is true, release first tries the cheaper release of a lock without
// waiters, and runs the release script only if that try releases nothing.
func (l *Locker) release(ctx context.Context, t *Lease, p *slot, alone bool) error {
	lq, g := t.localQueue, t.lease
	var reply any
	var sent time.Time
	entry := ""
	if p != nil {
		entry = p.entry()
	}
	token := g.token
	if g.indeterminate { // a late command may take the lock again for this id
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
		queued := entry // a copy for this try, because go-redis may read it after the try
		reply, err = l.redis.run(ctx, releaseScript, &lq.names, &g.id, token, &queued)
		if err != nil && entry != "" && !l.redis.passes(err) {
			entry = ""
			if !lost(err) { // Redis may have refused only the queueing
				none := ""
				reply, err = l.redis.run(ctx, releaseScript, &lq.names, &g.id, token, &none)
			}
		}
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, g.id)            // only now, because a message that arrives during the release must find the id
	before := t.refused || doubtful // an earlier try may have released the lock
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
	case n == 0 && p != nil && !p.unsure: // the slot is not queued
		lq.drop(p)
	case n == 2:
		lq.crowded = sent.Add(l.attention)
	}
	if p != nil && p.queued {
		lq.known(lq.ttl)
	}
	unheard := p != nil && p.queued && !p.listened // the process is not subscribed yet and may miss its turn
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

// mostUnseen is the longest time for which a process that passes a lease on relies on its last check that Redis still
// has the lease.
const mostUnseen = 25 * time.Millisecond

// see checks at Redis that the process still has a lease. If Redis has lost the lease, see reports the loss to the
// holder.
func (l *Locker) see(lq *localQueue, g *lease) {
	sent := time.Now()
	// see does not use GET, which go-redis may send to a replica. The extend script with a TTL of 1 ms changes nothing,
	// because it never shortens a lease.
	clock, err := l.extend(l.ctx, lq, g.id, time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	g.looking = false
	switch {
	case err != nil: // the state is unknown; the lease still ends at until
	case clock != 0:
		g.seen = sent
	case lq.held == g:
		lq.lose(g)
		l.addPending(lq.names, g.id, g.indeterminate)
	}
}

// Extend makes the lease valid for ttl from now on, even if this is less than the remaining time. It returns ErrNotHeld
// if the lease is lost. After any other error the lease ends at the same time as before.
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

// extend makes the lease of id last at Redis for at least ttl from now on. It returns Redis's time in µs, or 0 if id
// does not have the lock.
func (l *Locker) extend(ctx context.Context, lq *localQueue, id string, ttl time.Duration) (clock int64, err error) {
	_, err = l.persist(ctx, func(ctx context.Context) error {
		reply, err := l.redis.run(ctx, extendScript, &lq.names, &id, milliseconds(ttl))
		if err != nil {
			return err
		}
		ok := false
		if clock, ok = reply.(int64); !ok {
			return unexpected("extend.lua", reply)
		}
		return nil
	})
	return clock, err
}
