//go:build !race

package model

// This file models lease.go: how a process passes on, extends, releases and loses a lease.

// begin gives the first turn of a lease to client c. The later turns of this lease go only to clients of the same
// process that are already waiting.
func (w *world) begin(c int, l lease) {
	q := &w.procs[home[c]]
	q.turns = 0
	for _, other := range q.waiters {
		if other != 0 {
			q.turns |= 1 << other
		}
	}
	w.hand(c, l)
}

func (w *world) hand(c int, l lease) {
	if w.excluded&(1<<l.id) == 0 { // otherwise it is no longer there
		if l.token < w.top || l.token == w.top && l.passed <= w.turn {
			w.found(tokenFell)
		}
		w.top, w.turn = l.token, l.passed
	}
	w.procs[home[c]].holder = int8(c + 1)
	w.clients[c].phase, w.clients[c].lease = holding, l
}

// lose ends the turn of a client whose lease is lost or has expired.
func (w *world) lose(c int) {
	cl := &w.clients[c]
	if cl.task.command.verb == extend {
		cl.task = task{}
	}
	w.end(c)
}

// end ends a client's turn without passing the lease on to another client of the process.
func (w *world) end(c int) {
	cl := &w.clients[c]
	if q := &w.procs[home[c]]; q.holder == int8(c+1) {
		q.holder, q.turns = 0, 0
	}
	cl.phase, cl.lease, cl.asked = done, lease{}, false
}

// pass models a release that passes the lease on within the process. It returns false if that is not possible, so the
// lease must be released at Redis.
func (p *protocol) pass(w *world, c int) bool {
	cl, q := &w.clients[c], &w.procs[home[c]]
	next := q.waiters[0]
	if !p.linger || next == 0 || q.holder != int8(c+1) || q.turns&(1<<next) == 0 || cl.lease.until == 0 {
		return false
	}
	l := cl.lease
	l.passed++
	cl.phase, cl.lease = done, lease{}
	q.forgetWaiter(int(next - 1))
	w.hand(int(next-1), l)
	return true
}

func (p *protocol) release(w *world, c int) {
	cl, proc := &w.clients[c], home[c]
	q := &w.procs[proc]
	if q.holder == int8(c+1) {
		q.holder, q.turns = 0, 0
	}
	cl.phase = releasing
	entry := ident(0)
	if p.linger {
		entry = p.short(w, proc)
	}
	if slot := q.slot(entry); entry != 0 && slot != nil {
		slot.unheard = !q.subscription.on
	}
	t := cl.lease.token
	if cl.lease.indeterminate && p.planted != doubtReleased { // a late command takes the lock with this id
		t = 0
	}
	cl.task.send(command{verb: release, by: proc, id: cl.lease.id, token: t, entry: entry})
}

func (p *protocol) released(w *world, c int, t task) {
	cl, proc := &w.clients[c], home[c]
	q, r, entry := &w.procs[proc], t.reply, t.command.entry
	if t.stage == lost || r.outcome != answered {
		cl.asked = cl.asked || t.stage == lost
		if slot := q.slot(entry); entry != 0 && slot != nil {
			if t.stage == lost {
				slot.unsure = true
			} else {
				q.drop(entry)
			}
		}
		cl.task.command.entry = 0
		cl.task.again()
		cl.task.age = 0
		return
	}
	unheard := false
	if slot := q.slot(entry); entry != 0 && slot != nil {
		slot.queued, unheard = true, slot.unheard
	}
	if r.newOwner != 0 {
		p.learnOwner(w, proc, r.newOwner, r.token, t.age)
	} else if r.code == 0 {
		if !cl.asked && cl.lease.until > 0 && w.excluded&(1<<cl.lease.id) == 0 {
			w.found(falselyLost)
		}
		if entry != 0 {
			q.drop(entry)
		}
		for _, slot := range q.slots {
			if slot.unsure && p.planted == unsureDropped {
				q.drop(slot.id)
			}
		}
	}
	if cl.lease.indeterminate {
		w.addPending(proc, cl.lease.id, true)
	}
	cl.task = task{}
	w.end(c)
	p.tidy(w, proc)
	if unheard && q.holder == 0 && p.planted != unheardLeft {
		p.startLook(w, proc)
	}
}

func (p *protocol) extended(w *world, c int, t task) {
	cl := &w.clients[c]
	cl.task = task{}
	switch {
	case t.stage == lost || t.reply.outcome != answered:
	case t.reply.code == 0:
		w.lose(c)
	default:
		cl.lease.until = max(t.command.ttl-t.age, 0)
	}
}

// The rest of this file models localQueue.recover in keep.go: the check of a process whose clients wait.

func (p *protocol) startLook(w *world, proc int8) bool {
	q := &w.procs[proc]
	if q.look.on || q.waiters[0] == 0 || p.planted == noLook {
		return false
	}
	if q.holder != 0 {
		if c := int(q.holder - 1); w.clients[c].lease.until > 0 {
			return false
		}
		w.lose(int(q.holder - 1))
	}
	q.look.on = true
	if !q.subscription.on {
		q.look.task = task{stage: listening}
		return true
	}
	p.checkAll(w, proc)
	return true
}

// anyOf returns the first id of id's process, which stands for all ids of that process. check.lua uses only the process
// of the owner seen last, so the search can treat worlds with other ids of that process as equal.
func anyOf(id ident) ident {
	if id == 0 {
		return 0
	}
	return ident(id.process())*idsEach + 1
}

func (p *protocol) checkAll(w *world, proc int8) {
	q := &w.procs[proc]
	q.look.seen, q.look.task = q.seen, task{}
	for _, slot := range q.slots {
		if slot.id != 0 && (slot.queued || slot.unsure) {
			put(w, q.look.asked[:], slot.id)
		}
	}
	p.checkNext(w, proc)
}

func (p *protocol) checkNext(w *world, proc int8) {
	l := &w.procs[proc].look
	if l.asked[0] == 0 {
		p.requeue(w, proc)
		return
	}
	l.task.send(command{verb: check, by: proc, id: l.asked[0], seen: l.seen})
}

func (p *protocol) looked(w *world, proc int8, t task) {
	q := &w.procs[proc]
	if t.command.verb == enqueue {
		over, failed := p.queued(w, proc, &q.look.task)
		switch {
		case failed:
			q.look = look{}
		case over:
			p.requeue(w, proc)
		}
		return
	}
	r, id := t.reply, t.command.id
	if t.stage == lost || r.outcome != answered {
		q.look = look{}
		return
	}
	q.seen = anyOf(r.owner)
	if r.newOwner != 0 {
		p.learnOwner(w, proc, r.newOwner, r.token, t.age)
	} else if r.owner == id || p.planted != ownerOverlooked {
		if r.owner != 0 && q.slot(r.owner) != nil { // its message is lost or in transit
			p.arrive(w, proc, r.owner, r.token, max(r.left-t.age, 0))
		}
	}
	slot := q.slot(id)
	if slot == nil || r.slot >= 0 { // if the first is there, so are those behind it
		q.look.asked = [2]ident{}
		p.requeue(w, proc)
		return
	}
	if slot.queued && !slot.unheard && q.subscription.on {
		p.hangUp(w, proc)
	}
	put(w, q.look.missing[:], id)
	take(q.look.asked[:], 0)
	p.checkNext(w, proc)
}

// requeue first replaces the slots that the check did not find at Redis by new ones at the front of the queue, the
// latest slot first. If the process then still has too few slots, requeue queues more.
func (p *protocol) requeue(w *world, proc int8) {
	q := &w.procs[proc]
	q.look.task = task{}
	for i := len(q.look.missing) - 1; i >= 0; i-- {
		id := q.look.missing[i]
		if q.look.missing[i] = 0; id == 0 {
			continue
		}
		was, there := q.drop(id)
		if !there { // localQueue.replace: it has got the lock since the check
			continue
		}
		if was.indeterminate || was.unsure {
			w.addPending(proc, id, true)
		}
		if q.standing() >= p.wanted(q) {
			continue
		}
		fresh := w.fresh(proc)
		copy(q.slots[1:], q.slots[:])
		q.slots[0] = slot{id: fresh}
		w.stand(&q.look.task, proc, fresh, front)
		return
	}
	if id := p.short(w, proc); id != 0 {
		w.stand(&q.look.task, proc, id, wait)
		return
	}
	q.look = look{}
	p.tidy(w, proc)
}
