//go:build !race

package model

// What a process does that gets no turn: line.recover in keep.go.

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
	if !q.ear.on {
		q.look.task = task{stage: listening}
		return true
	}
	p.checkAll(w, proc)
	return true
}

// anyOf stands for all ids of a process: of who was seen no more matters.
func anyOf(id ident) ident {
	if id == 0 {
		return 0
	}
	return ident(id.process())*idsEach + 1
}

func (p *protocol) checkAll(w *world, proc int8) {
	q := &w.procs[proc]
	q.look.seen, q.look.task = q.seen, task{}
	n := 0
	for _, place := range q.places {
		if place.id != 0 && (place.queued || place.unsure) {
			if n == len(q.look.asked) {
				w.full = true
				return
			}
			q.look.asked[n] = place.id
			n++
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
	if r.told != 0 {
		p.told(w, proc, r.told, r.token, t.age, true)
	} else if r.owner == id || p.planted != ownerOverlooked {
		if was, there := q.drop(r.owner); r.owner != 0 && there { // its message is lost, or under way
			l := lease{id: r.owner, token: r.token, indeterminate: was.indeterminate}
			p.arrive(w, proc, l, max(r.left-t.age, 0), true)
		}
	}
	place := q.place(id)
	if place == nil || r.place >= 0 { // if the first is there, so are those behind it
		q.look.asked = [2]ident{}
		p.requeue(w, proc)
		return
	}
	if place.queued && q.ear.on {
		p.hangUp(w, proc)
	}
	for i := range q.look.missing {
		if q.look.missing[i] == 0 {
			q.look.missing[i] = id
			break
		}
	}
	q.look.asked = [2]ident{q.look.asked[1]}
	p.checkNext(w, proc)
}

// requeue queues what is missing, the latest first, and what there is too little.
func (p *protocol) requeue(w *world, proc int8) {
	q := &w.procs[proc]
	q.look.task = task{}
	for i := len(q.look.missing) - 1; i >= 0; i-- {
		id := q.look.missing[i]
		if q.look.missing[i] = 0; id == 0 {
			continue
		}
		was, there := q.drop(id)
		if !there || q.standing() >= p.wanted(q) {
			continue
		}
		if was.indeterminate || was.unsure {
			w.owe(proc, id, true)
		}
		fresh := w.fresh(proc)
		copy(q.places[1:], q.places[:])
		q.places[0] = place{id: fresh}
		w.stand(&q.look.task, proc, fresh, front)
		return
	}
	if id := p.short(w, proc); id != 0 {
		w.stand(&q.look.task, proc, id, wait)
		return
	}
	q.look = look{}
}
