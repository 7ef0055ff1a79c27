package handoff

import (
	"time"

	"github.com/lockbench/lockbench/internal/pause"
)

// How a place gets its turn: by the answer to a command of its process, or by a message. A message is a hint alone,
// because a client that may publish and read the keys can make one, or repeat it: Redis confirms it, and gives the
// token.

// learnOwner takes what grant.lua tells an owner, by the answer to a command of this process that was sent at since.
func (l *Locker) learnOwner(grantMsg string, since time.Time) {
	id, token, lock, ok := l.ids.parse(grantMsg)
	if !ok || l.held[id] != nil { // it was told before
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

// hint takes a message that says the same.
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
	// mostStrays is how many messages about ids without a place are looked into in straysIn: each costs a script. Who
	// repeats messages could have as many run as he sends.
	mostStrays = 64
	straysIn   = 100 * time.Millisecond
	// hintsApart is how long a place whose hint Redis has not confirmed takes no other one.
	hintsApart = 10 * time.Millisecond
)

// passOn gives up a lock that came to a place which was given up: it is known to be one of this process.
func (l *Locker) passOn(lock, id string) {
	l.addPending(namesOf(lock, l.base, l.redis.cluster != nil), id, false)
	for _, d := range l.pendingReleases { // the next may be one that was given up, too
		if d.lock == lock {
			d.due = time.Now()
		}
	}
}

// arrive takes a lease that has come to a place by an answer. If that was long on its way, Redis must confirm it.
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

// take makes a place the line's lease.
func (p *slot) take(token int64, since, until time.Time) {
	lq := p.localQueue
	g := &lease{id: p.id, token: token, since: since, indeterminate: p.indeterminate}
	g.until.Set(until)
	lq.drop(p)
	lq.locker.held[p.id] = g
	lq.granted(g)
}

// confirm asks Redis whether a place has the lock, and has it last from now on. A place that has not keeps its turn.
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
			p.take(clock, since, until) // later than every token given so far
		case mine && l.held[p.id] != nil: // by an answer
			if g := l.held[p.id]; until.After(g.kept) {
				g.kept = until
			}
		case mine:
			lq.drop(p)
			l.addPending(lq.names, p.id, p.indeterminate)
			lq.look(0)
		case err != nil:
			lq.look(0)
		default: // a client has made the message up, or it came after the lease
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
