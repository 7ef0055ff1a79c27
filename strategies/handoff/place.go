package handoff

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
)

// place is one in a lock's queue, under a name that is used once. Somebody who asks for
// the lock waits there, in a rush several do.
type place struct {
	lock       *lock
	ttl        time.Duration
	block      int64
	id, entry  string // entry is how it stands in the queue
	ticket     int64  // about when it was asked for, by Redis's clock in µs; no two of a home are equal
	connection int64  // on which it was queued last; 0 for none
	asked      time.Time
	queued     time.Time // when Redis answered that it is; only kept where others may join
	seats      []*seat   // who wait there, as they came
}

// seat is where one waits who asks for a lock, in a place or in the party that it became.
type seat struct {
	name  string // of the lock
	block int64
	told  chan outcome // capacity 1
	place *place
	party *party // nil before the place is granted
}

// outcome ends a wait.
type outcome struct {
	grant      grant
	until      time.Time // when the lease ends
	connection int64     // on which it came
	party      *party    // to whom the lock goes next, if anybody
	woken      bool      // it was not the answer to the waiter's own command
	err        error
}

// take has somebody wait for a lock: in a place that others of the process have, or in
// one of their own, for which it puts the command. The caller flushes.
func (h *home) take(name string, block int64) (*seat, error) {
	return h.admit(name, block, true, h.enqueue)
}

// admit has somebody wait in a place that is queued so, once there is a connection, or
// that is queued already if the two may be joined.
func (h *home) admit(name string, block int64, join bool, enqueue func(*place, time.Time)) (*seat, error) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fault != nil {
		return nil, h.fault
	}
	h.start()
	l := h.locks[name]
	if l == nil {
		l = &lock{name: name}
		h.locks[name] = l
	}
	l.waiting++
	s := &seat{name: name, block: block, told: make(chan outcome, 1)}
	join = join && block == 1 && h.lingers(l, now)
	if join && h.open(l.open, now) {
		s.place = l.open
		s.place.seats = append(s.place.seats, s)
		return s, nil
	}
	h.ticket = max(h.ticket+1, h.clock.estimate(now))
	s.place = &place{lock: l, ttl: h.config.TTL, block: block, asked: now, ticket: h.ticket, seats: []*seat{s}}
	l.open = nil // who comes after this one is not to be served before it
	if join {
		s.place.block, l.open = crowd, s.place
	}
	h.name(s.place)
	if h.connection != 0 {
		enqueue(s.place, now)
	}
	return s, nil
}

// name gives a place a fresh id. The caller holds mu.
func (h *home) name(p *place) {
	p.id = h.names.Next()
	p.entry = h.entry(p.id, p.ticket, p.ttl, p.block)
	h.places[p.id] = p
}

// entry is how a place stands in the queue.
func (h *home) entry(id string, ticket int64, ttl time.Duration, block int64) string {
	b := make([]byte, 0, 96)
	b = append(b, id...)
	b = strconv.AppendInt(append(b, ' '), ticket, 10)
	b = strconv.AppendInt(append(b, ' '), max(ttl.Milliseconds(), 1), 10)
	b = strconv.AppendInt(append(b, ' '), block, 10)
	return string(b)
}

// enqueue puts the command that takes the lock or queues a place for it. Behind another
// place of this process a plain RPUSHX will do: whoever sees to that one sees to both.
// The caller holds mu.
func (h *home) enqueue(p *place, now time.Time) {
	h.config.Probe.Attempt()
	h.live(now)
	push := p.lock.queued > 0
	h.stand(p)
	if push {
		put := h.line.Put
		if h.lingers(p.lock, now) {
			put = h.putLate
		}
		put(&pushed{p.in(h)}, "RPUSHX", p.lock.name, p.entry)
		return
	}
	p.lock.check, p.lock.kept = now.Add(h.config.TTL+time.Second), now
	h.run(&queued{p.in(h), now}, acquireScript, p.lock.name, "wait", keep(h.config.TTL), p.entry)
	h.wake()
}

// keep is how long Redis keeps a lock after its lease, in ms as an argument.
func keep(ttl time.Duration) string {
	return strconv.FormatInt(max(keepIdle, 2*min(ttl, longest/2)).Milliseconds(), 10)
}

// stand notes that a place is being queued on this connection. The caller holds mu.
func (h *home) stand(p *place) {
	p.connection = h.connection
	p.lock.queued++
}

// forget removes a place. The caller holds mu.
func (h *home) forget(p *place) {
	delete(h.places, p.id)
	if p.connection == h.connection && h.connection != 0 {
		p.lock.queued--
	}
}

// settle ends the wait in a place. The caller holds mu.
func (h *home) settle(p *place, o outcome) {
	h.forget(p)
	o.connection = h.connection
	if o.err != nil {
		h.tell(p.lock, o, p.seats...)
		return
	}
	if o.woken {
		p.lock.turned(time.Now(), h.linger, len(p.seats))
	}
	h.hold(o.grant.id, o.until)
	h.seat(p, o)
}

// give hands a grant to whom it is for. One for a place that is not known, or not
// any more, is passed on at once, unless its lease is held: then it was told twice.
func (h *home) give(o outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch p := h.places[o.grant.id]; {
	case p != nil:
		h.settle(p, o)
	case h.debts[o.grant.id] == nil && !time.Now().Before(h.held[o.grant.id]):
		h.owe(o.grant.id, o.grant.lock, "")
	}
}

// hand is give for a grant that comes by itself.
func (h *home) hand(text []byte) {
	if g, ok := parseGrant(text); ok {
		h.give(outcome{grant: g, until: h.clock.until(g, time.Now()), woken: true})
	}
}

// misled says that a message is for another connection than the one it came on, and not
// to be believed: a replica may pass on what its primary told whoever listened before.
// Redis is asked instead.
func (h *home) misled(connection int64, text []byte) bool {
	g, _ := parseGrant(text)
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.places[g.id]
	if p == nil || connection == h.connection {
		return false
	}
	h.resume(time.Now(), func(o *place) bool { return o == p })
	return true
}

// placeIn is a place and where it is at home.
type placeIn struct {
	*place
	home *home
}

func (p *place) in(h *home) placeIn { return placeIn{p, h} }

// queued hears the answer of the acquire script.
type queued struct {
	placeIn
	sent time.Time
}

func (q *queued) Answer(reply line.Reply) {
	h := q.home
	if reply.Err != nil {
		q.refused(reply.Err, true)
		return
	}
	a := parseAnswer(reply.Text)
	h.clock.learn(q.sent, time.Now(), a.now)
	if a.status == 'O' {
		q.unheard()
		return
	}
	if a.status == 'G' {
		if g, ok := parseGrant(a.grant); ok {
			h.give(outcome{grant: g, until: q.sent.Add(g.ttl() - drift(g.ttl()))})
			h.line.Flush()
		}
		return
	}
	q.stands()
	h.heard(q.lock, a)
}

// pushed hears the length of the list.
type pushed struct{ placeIn }

func (p *pushed) Answer(reply line.Reply) {
	h := p.home
	if reply.Err != nil {
		p.refused(reply.Err, false)
		return
	}
	p.stands()
	if reply.Number > 2 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.places[p.id] != p.place || h.connection == 0 {
		return
	}
	if reply.Number == 0 { // the list is no more, nor are those who were queued before
		h.resume(time.Now(), func(o *place) bool { return o.lock == p.lock && o.connection == h.connection })
	} else { // nobody else waits: the lock may be free
		h.look(p.lock, time.Now())
	}
	h.line.Flush()
}

// stands notes that Redis has queued a place that others may join.
func (p placeIn) stands() {
	if p.block != crowd {
		return
	}
	p.home.mu.Lock()
	p.queued = time.Now()
	p.home.mu.Unlock()
}

// unheard sees to a place that Redis has not queued, because it has not heard of this
// connection or not for long: it is told again, if it wants to hear it.
func (q *queued) unheard() {
	h := q.home
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.places[q.id] != q.place || h.connection == 0 {
		return
	}
	if err := h.unbeaten; err != nil && !unknown(err) {
		h.settle(q.place, outcome{err: err})
		return
	}
	now := time.Now()
	h.beat = time.Time{}
	h.live(now)
	h.run(&queued{q.placeIn, now}, acquireScript, q.lock.name, "wait", keep(h.config.TTL), q.entry)
	h.line.Flush()
}

// refused sees to a place whose command ended with an error.
func (p placeIn) refused(err error, byScript bool) {
	h := p.home
	if errors.Is(err, line.ErrBroken) {
		return // it is asked for once there is another connection
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if transient(err) {
		h.hangUp(err)
		return
	}
	if h.places[p.id] != p.place {
		return
	}
	if byScript && unknown(err) && h.connection != 0 {
		h.load(acquireScript)
		h.run(&queued{p, time.Now()}, acquireScript, p.lock.name, "wait", keep(h.config.TTL), p.entry)
		h.line.Flush()
		return
	}
	name, entry := p.lock.name, p.entry
	h.settle(p.place, outcome{err: err})
	h.owe(p.id, name, entry)
	h.line.Flush()
}

// heard takes what a script has said of a lock.
func (h *home) heard(l *lock, a answer) {
	if len(a.grant) > 0 {
		h.hand(a.grant)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if a.more {
		h.look(l, now)
	} else {
		h.expect(l, now.Add(time.Duration(max(a.expiry-a.now, 0))*time.Millisecond))
	}
	h.line.Flush()
}

// byTicket orders places as they were asked for.
func byTicket(places []*place) {
	slices.SortFunc(places, func(a, b *place) int { return cmp.Compare(a.ticket, b.ticket) })
}
