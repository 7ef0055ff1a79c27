package handoff

import (
	"time"

	"github.com/lockbench/lockbench/internal/pause"
)

// A slot gets its turn by the reply to a command of its process, or by a message. A message is only a hint, because a
// client that may publish and read the keys can forge or repeat one. The process therefore confirms each message by a
// script, whose reply has the token.

// learnOwner handles a grant message of grant.lua. The message was in the reply to a command that this process sent at
// the time since.
func (l *Locker) learnOwner(grantMsg string, since time.Time) {
	id, token, lock, ok := l.ids.parse(grantMsg)
	if !ok || l.held[id] != nil { // the grant is known already
		return
	}
	p := l.slots[id]
	if p == nil {
		l.passOn(lock, id)
		return
	}
	if p.since.After(since) {
		since = p.since
	}
	p.arrive(token, since, end(since, p.localQueue.ttl))
}

// hint handles a grant message that arrived on the subscription. It confirms the grant at Redis. If the process has no
// slot with the id, hint releases the lock for the next waiter.
func (l *Locker) hint(message string) {
	id, _, lock, ok := l.ids.parse(message)
	if !ok || l.held[id] != nil {
		return
	}
	switch p := l.slots[id]; {
	case p != nil && p.confirming:
		p.hinted = true
	case p != nil:
		p.confirming = true
		l.begin(func() { l.confirm(p) })
	default:
		if now := time.Now(); now.Sub(l.straysFrom) > straysIn {
			l.straysFrom, l.strays = now, 0
		}
		if l.strays++; l.strays <= mostStrays {
			l.passOn(lock, id)
		}
	}
}

const (
	// mostStrays is the largest number of messages about ids without a slot that are handled within straysIn. Each such
	// message costs a script, so without this limit a client that repeats messages could cause any number of scripts.
	mostStrays = 64
	straysIn   = 100 * time.Millisecond
	// hintsApart is the pause after a message that Redis has not confirmed. Messages for the same slot are ignored during
	// the pause.
	hintsApart = 10 * time.Millisecond
)

// passOn releases a lock that was granted to a slot that this process has already given up.
func (l *Locker) passOn(lock, id string) {
	l.addPending(namesOf(lock, l.base, l.redis.cluster != nil), id, false)
	for _, d := range l.pendingReleases { // the lock may next go to another slot that was given up
		if d.lock == lock {
			d.due = time.Now()
		}
	}
}

// arrive handles a lease that a reply has granted to a slot. If at most a quarter of the TTL is left, because the reply
// took long, arrive first confirms the lease at Redis, which renews it.
func (p *slot) arrive(token int64, since, until time.Time) {
	lq := p.localQueue
	l := lq.locker
	if time.Until(until) <= lq.ttl/4 {
		if !p.confirming {
			p.confirming = true
			l.begin(func() { l.confirm(p) })
		}
		return
	}
	p.take(token, since, until)
}

// take drops the slot to which a lease was granted, and gives the lease to the slot's local queue.
func (p *slot) take(token int64, since, until time.Time) {
	lq := p.localQueue
	g := &lease{id: p.id, token: token, since: since, indeterminate: p.indeterminate}
	g.until.Set(until)
	lq.drop(p)
	lq.locker.held[p.id] = g
	lq.granted(g)
}

// confirm checks at Redis whether a slot has the lock and, if so, renews the lease. A slot that does not have the lock
// stays in the queue.
func (l *Locker) confirm(p *slot) {
	lq := p.localQueue
	for {
		l.mu.Lock()
		p.hinted = false
		l.mu.Unlock()
		since := time.Now()
		clock, err := l.extend(l.ctx, lq, p.id, lq.ttl)
		l.mu.Lock()
		mine := err == nil && clock != 0
		until := end(since, lq.ttl)
		switch {
		case mine && l.slots[p.id] != nil && time.Now().Before(until):
			p.take(clock, since, until) // larger than every token granted so far
		case mine && l.held[p.id] != nil: // a reply has granted the lease in the meantime
			if g := l.held[p.id]; until.After(g.kept) {
				g.kept = until
			}
		case mine:
			lq.drop(p)
			l.addPending(lq.names, p.id, p.indeterminate)
			lq.look(0)
		case err != nil:
			lq.look(0)
		default: // the message was forged, or it arrived after the lease had ended
			lq.look(l.attention / 4)
		}
		if l.slots[p.id] == nil {
			p.confirming = false
			lq.forget()
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		pause.Plain(l.ctx.Done(), hintsApart)
		l.mu.Lock()
		again := p.hinted && l.ctx.Err() == nil
		p.confirming = again
		l.mu.Unlock()
		if !again {
			return
		}
	}
}
