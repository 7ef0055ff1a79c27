//go:build !race

package model

import "slices"

// This file models how a process handles replies and messages: acquire.go, turn.go, subscriber.go and pending.go.

func (q *process) waiting() int { return length(q.waiters[:]) }

func (q *process) standing() int { return length(q.slots[:]) }

func (q *process) idle() bool {
	return q.holder == 0 && !q.asking && !q.look.on && q.waiters[0] == 0 && q.slots[0].id == 0
}

func (p *protocol) wanted(q *process) int {
	switch n := q.waiting(); {
	case !p.linger:
		return n
	case n == 0 || q.asking || q.holder != 0:
		return 0
	default:
		return 1
	}
}

func (q *process) slot(id ident) *slot {
	if i := q.at(id); i >= 0 {
		return &q.slots[i]
	}
	return nil
}

func (q *process) at(id ident) int {
	return slices.IndexFunc(q.slots[:], func(other slot) bool { return other.id == id })
}

func (q *process) drop(id ident) (was slot, there bool) {
	i := q.at(id)
	if i < 0 {
		return was, false
	}
	return take(q.slots[:], i), true
}

// short adds a slot and returns its id, or returns 0 if the process has enough slots.
func (p *protocol) short(w *world, proc int8) ident {
	q := &w.procs[proc]
	n := q.standing()
	if n >= p.wanted(q) {
		return 0
	}
	if n == len(q.slots) {
		w.full = true
		return 0
	}
	q.slots[n] = slot{id: w.fresh(proc)}
	return q.slots[n].id
}

func (w *world) addPending(proc int8, id ident, doubtful bool) {
	q := &w.procs[proc]
	i := slices.IndexFunc(q.pendingReleases[:], func(d pendingRelease) bool { return d.id == 0 || d.id == id })
	if i < 0 {
		w.full = true
		return
	}
	q.pendingReleases[i] = pendingRelease{id: id, indeterminate: doubtful || q.pendingReleases[i].indeterminate}
}

func (t *task) send(c command) { *t = task{stage: sent, command: c} }

// stand makes task t queue the slot id at Redis, in mode m of queue.lua. If the process is not subscribed, the task
// subscribes first.
func (w *world) stand(t *task, proc int8, id ident, m mode) {
	t.send(command{verb: enqueue, by: proc, mode: m, id: id})
	if !w.procs[proc].subscription.on {
		t.stage = listening
	}
}

// again makes a task send its command again after the reply was lost.
func (t *task) again() {
	t.stage, t.reply, t.indeterminate = sent, reply{}, true
}

func (p *protocol) enter(w *world, c int) {
	proc := home[c]
	q := &w.procs[proc]
	w.clients[c].phase = waiting
	q.waiters[q.waiting()] = int8(c + 1)
	if id := p.short(w, proc); id != 0 {
		w.stand(&w.clients[c].task, proc, id, wait)
	}
}

func (q *process) forgetWaiter(c int) {
	if i := slices.Index(q.waiters[:], int8(c+1)); i >= 0 {
		take(q.waiters[:], i)
	}
}

// quit ends a client's wait without the lock. If the process then has too many slots, quit gives one up.
func (p *protocol) quit(w *world, c int) {
	proc := home[c]
	q := &w.procs[proc]
	q.forgetWaiter(c)
	w.clients[c].phase = done
	if n := q.standing(); n > p.wanted(q) {
		w.giveBack(proc, q.slots[n-1].id)
	}
}

// tidy gives up queued slots, the latest first, while the process has more than its clients need.
func (p *protocol) tidy(w *world, proc int8) {
	q := &w.procs[proc]
	for n := q.standing(); n > p.wanted(q) && q.slots[n-1].queued; n-- {
		w.giveBack(proc, q.slots[n-1].id)
	}
}

// giveBack drops a slot and adds a pending release for it, like localQueue.giveBack.
func (w *world) giveBack(proc int8, id ident) {
	slot, _ := w.procs[proc].drop(id)
	w.addPending(proc, id, !slot.queued || slot.indeterminate)
}

// hint models Locker.hint: the process receives the message that an id is the owner.
func (p *protocol) hint(w *world, proc int8, id ident, t token) {
	q := &w.procs[proc]
	if q.slot(id) == nil || p.planted == trustTheOld || p.planted == staleBelieved {
		p.learnOwner(w, proc, id, t, 0)
		return
	}
	if q.confirm.stage == nothing {
		p.confirm(w, proc, id, t)
		return
	}
	if q.confirm.command.id != id {
		w.full = true
		return
	}
	if q.hinted = true; p.planted == doubtGivenBack {
		w.addPending(proc, id, false)
	}
}

// learnOwner models Locker.learnOwner: the process learns which id owns the lock. This knowledge is at most age ticks
// old.
func (p *protocol) learnOwner(w *world, proc int8, id ident, t token, age int8) {
	q := &w.procs[proc]
	for i := range w.clients {
		if c := &w.clients[i]; c.lease.id == id &&
			(c.phase == holding || c.phase == releasing && p.planted != releasedUnknown) {
			if p.planted == heldGivenBack {
				w.addPending(proc, id, false)
			}
			return
		}
	}
	slot := q.slot(id)
	if slot == nil {
		w.addPending(proc, id, false)
		return
	}
	until := max(leaseTime-min(age, slot.age), 0)
	if p.planted == staleBelieved {
		until = leaseTime
	}
	p.arrive(w, proc, id, t, until)
}

// arrive handles a grant of the lock to the slot id. until is the number of ticks after which the lease expires. If
// until is 0, arrive first confirms the lease at Redis, and otherwise it calls take.
func (p *protocol) arrive(w *world, proc int8, id ident, t token, until int8) {
	q := &w.procs[proc]
	switch {
	case until > 0:
		p.take(w, proc, lease{id: id, token: t, until: until})
	case q.confirm.stage == nothing:
		p.confirm(w, proc, id, t)
	case q.confirm.command.id != id:
		w.full = true
	}
}

// take drops the slot to which a lease was granted, and gives the lease to the process's first waiter.
func (p *protocol) take(w *world, proc int8, l lease) {
	was, _ := w.procs[proc].drop(l.id)
	l.indeterminate = was.indeterminate
	p.grantedTo(w, proc, l)
}

// confirm sends the script that checks whether a slot has the lock and renews its lease.
func (p *protocol) confirm(w *world, proc int8, id ident, t token) {
	q := &w.procs[proc]
	q.confirm.send(command{verb: extend, by: proc, id: id, ttl: leaseTime, token: t})
	q.hinted = false
}

func (p *protocol) grantedTo(w *world, proc int8, l lease) {
	q := &w.procs[proc]
	front := q.waiters[0]
	if front == 0 {
		w.addPending(proc, l.id, l.indeterminate)
		return
	}
	q.forgetWaiter(int(front - 1))
	w.begin(int(front-1), l)
}

// handleReply makes process proc handle the reply to its task k, or the loss of this reply.
func (p *protocol) handleReply(w *world, proc int8, k int) {
	t := *w.work(proc, k)
	switch {
	case k == clients:
		p.looked(w, proc, t)
	case k == clients+1:
		p.pendingAnswered(w, proc, t)
	case k == clients+2:
		p.confirmed(w, proc, t)
	case t.command.verb == set || t.command.mode == try:
		p.took(w, k, t)
	case t.command.verb == enqueue:
		over, failed := p.queued(w, proc, w.work(proc, k))
		if over {
			w.clients[k].task = task{}
		}
		if failed && w.clients[k].phase == waiting {
			p.quit(w, k)
		}
	case t.command.verb == release:
		p.released(w, k, t)
	case t.command.verb == extend:
		p.extended(w, k, t)
	}
}

// ask makes a client request the lock directly: by SET, or in a cluster by queue.lua in mode try.
func (p *protocol) ask(w *world, c int) {
	proc := home[c]
	w.procs[proc].asking = true
	w.clients[c].phase = taking
	ask := command{verb: set, by: proc, id: w.fresh(proc)}
	if p.cluster {
		ask.verb, ask.mode = enqueue, try
	}
	w.clients[c].task.send(ask)
}

func (p *protocol) took(w *world, c int, t task) {
	proc, cl, id := home[c], &w.clients[c], t.command.id
	q := &w.procs[proc]
	if t.stage == lost || t.reply.outcome != answered && t.indeterminate {
		cl.task.again()
		return
	}
	cl.task = task{}
	q.asking = false
	doubtful := t.indeterminate && p.planted != lateSetKept
	switch {
	case t.reply.outcome != answered:
		cl.phase = done
	case t.reply.owner != id && t.reply.newOwner != id:
		if doubtful {
			w.addPending(proc, id, true)
		}
		p.enter(w, c)
	case t.age >= leaseTime: // too late
		w.addPending(proc, id, true)
		p.enter(w, c)
	default:
		w.begin(c, lease{id: id, token: t.reply.token, until: leaseTime - t.age, indeterminate: doubtful})
	}
}

// queued models how Locker.queue handles a reply. over means that the task is done; failed means that the slot is not
// queued and the client's wait fails.
func (p *protocol) queued(w *world, proc int8, t *task) (over, failed bool) {
	q, id := &w.procs[proc], t.command.id
	switch r := t.reply; {
	case t.stage == lost:
		p.expectLateCommand(w, proc, id)
		t.command.verb, t.command.mode = enqueue, again
		t.again()
		t.age = 0
		return false, false
	case r.outcome != answered && t.indeterminate:
		t.again()
		t.age = 0
		return false, false
	case r.outcome != answered:
		_, there := q.drop(id)
		if there {
			w.addPending(proc, id, t.indeterminate) // an error may come after a write
		}
		return true, there
	case r.newOwner != 0:
		p.learnOwner(w, proc, r.newOwner, r.token, leaseTime)
	default:
		if slot := q.slot(id); slot != nil {
			slot.queued = true
		}
	}
	return true, false
}

// expectLateCommand records that a late command may queue an id once more, so a pending release of that id must be
// repeated.
func (p *protocol) expectLateCommand(w *world, proc int8, id ident) {
	if p.planted == lateQueueKept {
		return
	}
	if slot := w.procs[proc].slot(id); slot != nil {
		slot.indeterminate = true
		return
	}
	for i := range w.clients {
		if c := &w.clients[i]; c.lease.id == id {
			c.lease.indeterminate = true
			return
		}
	}
	w.addPending(proc, id, true)
}

func (p *protocol) pendingAnswered(w *world, proc int8, t task) {
	q := &w.procs[proc]
	q.sendPending = task{}
	forgotten := p.planted == pendingForgotten && t.stage == replied
	if t.stage == lost || t.reply.outcome != answered && !forgotten {
		return
	}
	for i := range q.pendingReleases {
		c, id := &t.command, q.pendingReleases[i].id
		if id != 0 && (id == c.id || id == c.more[0] || id == c.more[1]) {
			q.pendingReleases[i].answered = true
		}
	}
	if t.reply.newOwner != 0 { // last, because it may be one of these ids
		p.learnOwner(w, proc, t.reply.newOwner, t.reply.token, t.age)
	}
}

// sendDue sends up to three pending releases in one command: releases to which Redis has not replied, and releases of
// ids that a late command has queued or made the owner. It returns false if there is nothing to send.
func (w *world) sendDue(proc int8) bool {
	q := &w.procs[proc]
	var ids []ident
	for _, d := range q.pendingReleases {
		if d.id != 0 && len(ids) < 3 && (!d.answered || d.indeterminate && (w.owner == d.id || w.find(d.id) >= 0)) {
			ids = append(ids, d.id)
		}
	}
	if len(ids) == 0 {
		return false
	}
	c := command{verb: leave, by: proc, id: ids[0]}
	copy(c.more[:], ids[1:])
	q.sendPending.send(c)
	return true
}

func (p *protocol) confirmed(w *world, proc int8, t task) {
	q := &w.procs[proc]
	q.confirm = task{}
	id := t.command.id
	slot, mine := q.slot(id), t.stage == replied && t.reply.outcome == answered && t.reply.code == 1
	switch {
	case mine && slot != nil && (t.age < leaseTime || p.planted == lateConfirmed):
		clock := t.reply.token // other clients may have had it since the message
		if p.planted == doubtConfirmed {
			clock = t.command.token
		}
		p.take(w, proc, lease{id: id, token: clock, until: max(leaseTime-t.age, 0)})
	case mine && !w.holds(id):
		was, _ := q.drop(id)
		w.addPending(proc, id, was.indeterminate)
	case !mine && slot != nil && q.hinted:
		p.confirm(w, proc, id, t.command.token)
	}
}

// holds reports whether a client holds or is releasing the lease of an id.
func (w *world) holds(id ident) bool {
	return slices.ContainsFunc(w.clients[:], func(c client) bool {
		return c.lease.id == id && (c.phase == holding || c.phase == releasing)
	})
}

// hangUp closes the subscription of a process, which then misses its messages until it subscribes again.
func (p *protocol) hangUp(w *world, proc int8) {
	e := &w.procs[proc].subscription
	if e.on && !e.astray {
		w.hears[proc] = false
	}
	*e = subscription{}
}

// listen subscribes a process again, and starts the tasks that were waiting for the subscription.
func (p *protocol) listen(w *world, proc int8) {
	q := &w.procs[proc]
	q.subscription = subscription{on: true}
	w.hears[proc] = true
	for k := range tasks {
		if k < clients && home[k] != proc {
			continue
		}
		switch t := w.work(proc, k); {
		case t.stage != listening:
		case t.command.verb == 0:
			p.checkAll(w, proc)
		default:
			t.stage = sent
		}
	}
}
