package handoff

import (
	"slices"
	"time"
)

// crowd is how many can wait in one place. As many tokens are reserved with it, and those
// that nobody takes are lost; there are 2^32 for every second.
const crowd = 256

// party are those of a place to whom its lease goes next, one after the other, without
// Redis being asked. To Redis it is one holder. The home's mutex guards it.
type party struct {
	home   *home
	lock   *lock
	grant  grant // of the last turn
	ticket int64
	seats  []*seat
	over   *time.Timer // when the lease is; nil until somebody waits for it
}

// seat gives a lease to the first who waits in a place; the others are the party behind.
// The caller holds mu.
func (h *home) seat(p *place, o outcome) {
	first, others := p.seats[0], p.seats[1:]
	if len(others) > 0 {
		o.party = &party{home: h, lock: p.lock, grant: o.grant, ticket: p.ticket, seats: others}
		for _, s := range others {
			s.party = o.party
		}
		o.party.watch(o.until)
	}
	o.grant.block = first.block
	h.tell(p.lock, o, first)
}

// tell ends the waits of some who wait for a lock. The caller holds mu.
func (h *home) tell(l *lock, o outcome, seats ...*seat) {
	for _, s := range seats {
		h.served(l)
		s.told <- o
	}
}

// served notes that one less waits for a lock. The caller holds mu.
func (h *home) served(l *lock) {
	if l.waiting--; l.waiting == 0 {
		delete(h.locks, l.name)
	}
}

// pass gives a lease to the next of a party and says whether it could: there has to be
// somebody, the connection must have lasted since Redis was heard of the lease, or Redis
// may have lost it, and at least half a TTL be left. Nor may more than a whole one be
// left, as its holder may have extended it and a process that dies would keep it for as
// long. The caller holds mu.
func (g *party) pass(until time.Time, connection int64) bool {
	h := g.home
	now := time.Now()
	left := until.Sub(now)
	if len(g.seats) == 0 || h.connection != connection || left < h.config.TTL/2 || left > h.config.TTL {
		return false
	}
	g.grant.fence++
	o := outcome{grant: g.grant, until: until, connection: connection, party: g, woken: true}
	o.grant.block = 1
	g.lock.turn = now
	first := g.seats[0]
	if g.seats = g.seats[1:]; len(g.seats) == 0 {
		g.end()
		o.party = nil
	}
	h.tell(g.lock, o, first)
	return true
}

// next is pass for a lease whose turn is over; if it cannot be passed, it is to be
// released, and those who are left are queued before that. A nil party has nobody.
func (g *party) next(until time.Time, connection int64) bool {
	if g == nil {
		return false
	}
	if g.pass(until, connection) {
		return true
	}
	g.rejoin()
	return false
}

// watch has those who are left go back to the queue when the lease is over, whatever its
// holder does. The caller holds mu.
func (g *party) watch(until time.Time) {
	switch {
	case len(g.seats) == 0:
	case g.over == nil:
		g.over = time.AfterFunc(time.Until(until), g.disband)
		g.home.parties[g] = struct{}{}
	default:
		g.over.Reset(time.Until(until))
	}
}

// end is for a party of which nobody is left. The caller holds mu.
func (g *party) end() {
	g.over.Stop()
	delete(g.home.parties, g)
}

// fail tells all who are left. The caller holds mu.
func (g *party) fail(err error) {
	g.home.tell(g.lock, outcome{err: err}, g.seats...)
	g.seats = nil
	g.end()
}

func (g *party) disband() {
	g.home.mu.Lock()
	defer g.home.mu.Unlock()
	g.rejoin()
	g.home.line.Flush()
}

// rejoin has those who are left wait where they did before, in a place that was asked
// for when the party's own was. If the lock is released by the next command, they are
// the next, unless somebody waits who asked before. The caller holds mu, and flushes.
func (g *party) rejoin() {
	if len(g.seats) == 0 {
		return
	}
	g.end()
	h := g.home
	p := &place{lock: g.lock, ttl: h.config.TTL, block: crowd, ticket: g.ticket, seats: g.seats}
	g.seats = nil
	for _, s := range p.seats {
		s.place, s.party = p, nil
	}
	h.name(p)
	switch {
	case h.fault != nil:
		h.settle(p, outcome{err: h.fault})
	case h.connection == 0:
		p.connection = asking // as if it had been queued: it is to get the old place back
	default:
		now := time.Now()
		h.live(now)
		h.stand(p)
		p.lock.check = now.Add(h.config.TTL + time.Second)
		h.putBack([]*place{p})
	}
	h.wake()
}

// leave removes who waits no longer, and returns the place if nobody is left there. The
// caller holds mu.
func (s *seat) leave(h *home) *place {
	seats := &s.place.seats
	if s.party != nil {
		seats = &s.party.seats
	}
	*seats = slices.DeleteFunc(*seats, func(o *seat) bool { return o == s })
	h.served(s.place.lock)
	switch {
	case len(*seats) > 0:
	case s.party == nil:
		return s.place
	default:
		s.party.end()
	}
	return nil
}
