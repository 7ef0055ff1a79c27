package handoff

import (
	"bytes"
	"slices"
	"time"

	"github.com/lockbench/lockbench/strategies/handoff/internal/line"
)

// atOnce bounds what one script does.
const atOnce = 64

// asking is the connection of a place of which Redis is being asked.
const asking = -1

// wonder asks what became of those who were queued on a connection.
func (h *home) wonder(connection int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.connection == connection {
		h.resume(time.Now(), func(p *place) bool { return p.connection == connection })
	}
	h.line.Flush()
}

// resume sees to those places of which it is not known that they are queued: what was
// never queued is so now; of the others Redis is asked, in one call for each lock. The
// caller holds mu, and flushes.
func (h *home) resume(now time.Time, doubtful func(*place) bool) {
	var fresh []*place
	lost := map[*lock][]*place{}
	for _, p := range h.places {
		switch {
		case !doubtful(p):
		case p.connection == 0:
			fresh = append(fresh, p)
		default:
			if p.connection == h.connection {
				p.lock.queued--
			}
			p.connection = asking
			lost[p.lock] = append(lost[p.lock], p)
		}
	}
	connection := h.connection
	if len(lost) > 0 {
		h.wake() // a party's rest may have come back while the keeper had nothing to do
	}
	for l, places := range lost {
		h.live(now)
		h.look(l, now)
		l.asked = now
		h.line.Put(then(func(reply line.Reply) { h.found(connection, places, reply) }), "LRANGE", l.name, "0", "-1")
	}
	byTicket(fresh)
	for _, p := range fresh {
		h.enqueue(p, now)
	}
}

// found hears who stands in a queue, behind the lock's state. Of those who were asked
// for, each is the owner, or queued, or was dropped and gets its old place back, under a
// fresh id: a command from before may still be on its way.
func (h *home) found(connection int64, places []*place, reply line.Reply) {
	if reply.Err != nil {
		for _, p := range places {
			p.in(h).refused(reply.Err, false)
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
	var dropped []*place
	for _, p := range places {
		switch {
		case h.places[p.id] != p:
		case p.id == owner:
			g := parseState(reply.Elements[0].Text, p.ttl)
			g.lock = p.lock.name
			h.stand(p) // which settle takes back
			h.settle(p, outcome{grant: g, until: h.clock.until(g, now), woken: true})
		case queued[p.id]:
			h.stand(p)
		default:
			delete(h.places, p.id)
			h.name(p)
			h.stand(p)
			dropped = append(dropped, p)
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

// putBack has places of one lock stand where they did. The caller holds mu.
func (h *home) putBack(places []*place) {
	l, sent := places[0].lock, time.Now()
	args := []string{keep(h.config.TTL)}
	for _, p := range places {
		args = append(args, p.entry)
	}
	h.run(then(func(reply line.Reply) {
		if reply.Err == nil {
			a := parseAnswer(reply.Text)
			h.clock.learn(sent, time.Now(), a.now)
			h.heard(l, a)
			return
		}
		if unknown(reply.Err) {
			h.again(places)
			return
		}
		for _, p := range places {
			p.in(h).refused(reply.Err, false)
		}
	}), returnScript, l.name, args...)
}

// again is putBack for those of the places that are waited in still, once Redis knows the script.
func (h *home) again(places []*place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := slices.DeleteFunc(slices.Clone(places), func(p *place) bool {
		return h.places[p.id] != p || p.connection != h.connection
	})
	if len(waiting) > 0 && h.connection != 0 {
		h.load(returnScript)
		h.putBack(waiting)
		h.line.Flush()
	}
}
