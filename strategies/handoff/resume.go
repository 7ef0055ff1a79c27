package handoff

import (
	"bytes"
	"time"

	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
)

// atOnce bounds what one script does.
const atOnce = 64

// asking is the connection of a waiter of whom Redis is being asked.
const asking = -1

// wonder asks what became of those who were queued on a connection.
func (h *home) wonder(connection int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connection == connection {
		h.resume(time.Now(), func(w *waiter) bool { return w.connection == connection })
	}
	h.line.Flush()
}

// resume sees to those waiters of whom it is not known that they are queued: who was
// never queued is so now; of the others Redis is asked, in one call for each lock. The
// caller holds mu, and flushes.
func (h *home) resume(now time.Time, doubtful func(*waiter) bool) {
	var fresh []*waiter
	lost := map[*lock][]*waiter{}
	for _, w := range h.waiters {
		switch {
		case !doubtful(w):
		case w.connection == 0:
			fresh = append(fresh, w)
		default:
			if w.connection == h.connection {
				w.lock.queued--
			}
			w.connection = asking
			lost[w.lock] = append(lost[w.lock], w)
		}
	}
	connection := h.connection
	for l, waiters := range lost {
		h.live(now)
		h.look(l, now)
		l.asked = now
		h.line.Put(then(func(reply line.Reply) { h.found(connection, waiters, reply) }), "LRANGE", l.name, "0", "-1")
	}
	byTicket(fresh)
	for _, w := range fresh {
		h.enqueue(w, now)
	}
}

// found hears who stands in a queue, behind the lock's state. Of those who were asked
// for, each is the owner, or queued, or was dropped and gets its old place back, under a
// fresh id: a command from before may still be on its way.
func (h *home) found(connection int64, waiters []*waiter, reply line.Reply) {
	if reply.Err != nil {
		for _, w := range waiters {
			w.in(h).refused(reply.Err, false)
		}
		return
	}
	now := time.Now()
	var owner string
	queued := map[string]bool{}
	for i, element := range reply.Elements {
		id, _, _ := bytes.Cut(element.Text, space)
		if i == 0 {
			owner = string(id)
		} else {
			queued[string(id)] = true
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connection != connection {
		return
	}
	var dropped []*waiter
	for _, w := range waiters {
		switch {
		case h.waiters[w.id] != w:
		case w.id == owner:
			g := parseState(reply.Elements[0].Text, w.ttl)
			g.lock = w.lock.name
			w.lock.queued++ // that settle takes back
			w.connection = connection
			h.settle(w, outcome{grant: g, until: h.clock.until(g.expiry, now, g.ttl()), woken: true})
		case queued[w.id]:
			w.connection = connection
			w.lock.queued++
		default:
			delete(h.waiters, w.id)
			h.name(w)
			w.connection = connection
			w.lock.queued++
			dropped = append(dropped, w)
		}
	}
	byTicket(dropped)
	for len(dropped) > 0 {
		n := min(len(dropped), atOnce)
		h.putBack(dropped[:n])
		dropped = dropped[n:]
	}
	h.line.Flush()
}

// putBack has waiters of one lock take their old places. The caller holds mu.
func (h *home) putBack(waiters []*waiter) {
	l, sent := waiters[0].lock, time.Now()
	args := []string{keep(h.config.TTL)}
	for _, w := range waiters {
		args = append(args, w.entry)
	}
	h.run(then(func(reply line.Reply) {
		if reply.Err == nil {
			a := parseAnswer(reply.Text)
			h.clock.learn(sent, a.now)
			h.heard(l, a)
			return
		}
		for _, w := range waiters {
			w.in(h).refused(reply.Err, false)
		}
	}), returnScript, l.name, args...)
}
