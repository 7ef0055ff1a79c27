package handoff

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
)

// waiter is somebody who asks for a lock under a name that is used once.
type waiter struct {
	lock       *lock
	ttl        time.Duration
	block      int64
	id, entry  string // entry is how it stands in the queue
	ticket     int64  // about when it came, by Redis's clock in µs; no two of a home are equal
	connection int64  // on which it was queued last; 0 for none
	told       chan outcome
}

// outcome ends a wait.
type outcome struct {
	grant grant
	until time.Time // when the lease ends
	woken bool      // it was not the answer to the waiter's own command
	err   error
}

// newWaiter has somebody wait, and puts the command that queues it. The caller
// flushes.
func (h *home) newWaiter(name string, block int64) (*waiter, error) {
	return h.admit(name, block, h.enqueue)
}

// admit has somebody wait who is queued so, once there is a connection.
func (h *home) admit(name string, block int64, enqueue func(*waiter, time.Time)) (*waiter, error) {
	now := time.Now()
	w := &waiter{
		ttl: h.config.TTL, block: block, told: make(chan outcome, 1),
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ticket = max(h.ticket+1, h.clock.estimate(now))
	w.ticket = h.ticket
	if h.fault != nil {
		return nil, h.fault
	}
	h.start()
	w.lock = h.locks[name]
	if w.lock == nil {
		w.lock = &lock{name: name}
		h.locks[name] = w.lock
	}
	w.lock.waiting++
	h.name(w)
	if h.connection != 0 {
		enqueue(w, now)
	}
	return w, nil
}

// name gives a waiter a fresh id. The caller holds mu.
func (h *home) name(w *waiter) {
	w.id = h.names.Next()
	w.entry = h.entry(w.id, w.ticket, w.ttl, w.block)
	h.waiters[w.id] = w
}

// entry is how somebody stands in the queue.
func (h *home) entry(id string, ticket int64, ttl time.Duration, block int64) string {
	b := make([]byte, 0, 96)
	b = append(b, id...)
	b = strconv.AppendInt(append(b, ' '), ticket, 10)
	b = strconv.AppendInt(append(b, ' '), max(ttl.Milliseconds(), 1), 10)
	b = strconv.AppendInt(append(b, ' '), block, 10)
	return string(b)
}

// enqueue puts the command that takes the lock or queues the waiter. Behind another
// waiter of this process a plain RPUSHX will do: whoever sees to that one sees to both.
// The caller holds mu.
func (h *home) enqueue(w *waiter, now time.Time) {
	h.config.Probe.Attempt()
	h.live(now)
	push := w.lock.queued > 0
	w.connection = h.connection
	w.lock.queued++
	if push {
		h.line.Put(&pushed{w.in(h)}, "RPUSHX", w.lock.name, w.entry)
		return
	}
	w.lock.check = now.Add(h.config.TTL + time.Second)
	h.run(&queued{w.in(h), now}, acquireScript, w.lock.name, "wait", keep(h.config.TTL), w.entry)
	h.wake()
}

// keep is how long Redis keeps an idle lock, in ms as an argument.
func keep(ttl time.Duration) string {
	return strconv.FormatInt(max(keepIdle, 2*ttl).Milliseconds(), 10)
}

// forget removes a waiter. The caller holds mu.
func (h *home) forget(w *waiter) {
	delete(h.waiters, w.id)
	if w.connection == h.connection && h.connection != 0 {
		w.lock.queued--
	}
	if w.lock.waiting--; w.lock.waiting == 0 {
		delete(h.locks, w.lock.name)
	}
}

// settle ends a wait. The caller holds mu.
func (h *home) settle(w *waiter, o outcome) {
	h.forget(w)
	w.told <- o
}

// give hands a grant to whom it is for. One for somebody who is not known, or not
// any more, is passed on at once.
func (h *home) give(o outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch w := h.waiters[o.grant.id]; {
	case w != nil:
		h.settle(w, o)
	case h.debts[o.grant.id] == nil:
		h.owe(o.grant.id, o.grant.lock, "")
	}
}

// hand is give for a grant that comes by itself.
func (h *home) hand(text []byte) {
	if g, ok := parseGrant(text); ok {
		h.give(outcome{grant: g, until: h.clock.until(g.expiry, time.Now(), g.ttl()), woken: true})
	}
}

// waiterIn is a waiter and where it is at home.
type waiterIn struct {
	*waiter
	home *home
}

func (w *waiter) in(h *home) waiterIn { return waiterIn{w, h} }

// queued hears the answer of the acquire script.
type queued struct {
	waiterIn
	sent time.Time
}

func (q *queued) Answer(reply line.Reply) {
	h := q.home
	if reply.Err != nil {
		q.refused(reply.Err, true)
		return
	}
	a := parseAnswer(reply.Text)
	h.clock.learn(q.sent, a.now)
	if a.status == 'G' {
		if g, ok := parseGrant(a.grant); ok {
			h.give(outcome{grant: g, until: q.sent.Add(g.ttl() - drift(g.ttl()))})
			h.line.Flush()
		}
		return
	}
	h.heard(q.lock, a)
}

// pushed hears the length of the list.
type pushed struct{ waiterIn }

func (p *pushed) Answer(reply line.Reply) {
	h := p.home
	switch {
	case reply.Err != nil:
		p.refused(reply.Err, false)
		return
	case reply.Number > 2:
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiters[p.id] != p.waiter || h.connection == 0 {
		return
	}
	if reply.Number == 0 { // the list is no more, nor are those who were queued before
		h.resume(time.Now(), func(w *waiter) bool { return w.lock == p.lock && w.connection == h.connection })
	} else { // nobody else waits: the lock may be free
		h.look(p.lock, time.Now())
	}
	h.line.Flush()
}

// refused sees to a waiter whose command ended with an error.
func (w waiterIn) refused(err error, byScript bool) {
	h := w.home
	if errors.Is(err, line.ErrBroken) {
		return // it is asked for once there is another connection
	}
	if transient(err) {
		h.line.Break()
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiters[w.id] != w.waiter {
		return
	}
	if byScript && strings.HasPrefix(err.Error(), "NOSCRIPT") && h.connection != 0 {
		h.line.Put(nil, "SCRIPT", "LOAD", acquireScript.source)
		h.run(&queued{w, time.Now()}, acquireScript, w.lock.name, "wait", keep(h.config.TTL), w.entry)
		h.line.Flush()
		return
	}
	name, entry := w.lock.name, w.entry
	h.settle(w.waiter, outcome{err: err})
	h.owe(w.id, name, entry)
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

// byTicket orders waiters as they came.
func byTicket(waiters []*waiter) {
	slices.SortFunc(waiters, func(a, b *waiter) int { return cmp.Compare(a.ticket, b.ticket) })
}
