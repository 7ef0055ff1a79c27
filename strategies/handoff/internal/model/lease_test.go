//go:build !race

package model

// What a process does with a lease: lease.go.

// begin makes a lease the process's, and a client's: its other turns are those of who has come so far.
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
	if w.excluded&(1<<l.id) != 0 { // it is not there any more
		w.procs[home[c]].holder = int8(c + 1)
		w.clients[c].phase, w.clients[c].lease = holding, l
		return
	}
	if l.token < w.top || l.token == w.top && l.passed <= w.turn {
		w.found(tokenFell)
	}
	w.top, w.turn = l.token, l.passed
	w.procs[home[c]].holder = int8(c + 1)
	w.clients[c].phase, w.clients[c].lease = holding, l
}

// lose takes a lease that is over from its holder.
func (w *world) lose(c int) {
	cl := &w.clients[c]
	if cl.task.command.verb == extend {
		cl.task = task{}
	}
	w.end(c)
}

// end ends a turn that is not passed on.
func (w *world) end(c int) {
	cl := &w.clients[c]
	if q := &w.procs[home[c]]; q.holder == int8(c+1) {
		q.holder, q.turns = 0, 0
	}
	cl.phase, cl.lease, cl.asked = done, lease{}, false
}

// pass is a release that hands the lease on in the process.
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
	t := cl.lease.token
	if cl.lease.indeterminate && p.planted != doubtReleased { // what takes the lock late takes it with that id
		t = 0
	}
	cl.task.send(command{verb: release, by: proc, id: cl.lease.id, token: t, entry: entry})
}

func (p *protocol) released(w *world, c int, t task) {
	cl, proc := &w.clients[c], home[c]
	q, r, entry := &w.procs[proc], t.reply, t.command.entry
	if t.stage == lost || r.outcome != answered {
		cl.asked = cl.asked || t.stage == lost
		if place := q.place(entry); entry != 0 && place != nil {
			if t.stage == lost {
				place.unsure = true
			} else {
				q.drop(entry)
			}
		}
		cl.task.command.entry = 0
		cl.task.again()
		cl.task.age = 0
		return
	}
	if place := q.place(entry); entry != 0 && place != nil {
		place.queued = true
	}
	if r.told != 0 {
		p.told(w, proc, r.told, r.token, t.age, true)
	} else if r.code == 0 {
		if !cl.asked && cl.lease.until > 0 && w.excluded&(1<<cl.lease.id) == 0 {
			w.found(falselyLost)
		}
		if entry != 0 {
			q.drop(entry)
		}
		for _, place := range q.places {
			if place.unsure && p.planted == unsureDropped {
				q.drop(place.id)
			}
		}
	}
	if cl.lease.indeterminate {
		w.owe(proc, cl.lease.id, true)
	}
	cl.task = task{}
	w.end(c)
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
