package model

// send queues a command of process p.
func (m *model) send(p int, msg message) bool {
	if m.procs[p].connected {
		m.put(&m.procs[p].up, msg)
	}
	return m.procs[p].connected
}

// begin has a client ask for the lock under a fresh id.
func (m *model) begin(c int, how kind) bool {
	cl := &m.clients[c]
	if cl.tries == modelIDs {
		m.full = true
		return false
	}
	id := ident(c*modelIDs + int(cl.tries) + 1)
	if !m.send(procOf[c], message{kind: how, id: id}) {
		return false
	}
	cl.tries++
	cl.id, cl.phase = id, waiting
	return true
}

// othersWait says whether somebody else of the client's process waits: whoever is
// queued behind on the same connection will be seen to with the other.
func (m *model) othersWait(c int) bool {
	for o, cl := range m.clients {
		if o != c && procOf[o] == procOf[c] && cl.phase == waiting {
			return true
		}
	}
	return false
}

// receive has process p take what has come.
func (m *model) receive(p int, msg message, planted mistake) {
	switch msg.kind {
	case granted:
		m.given(p, msg, planted)
	case refusal:
		m.isRefused(p, msg, planted)
	case demoted:
		m.lose(p, false)
	case first:
		m.send(p, message{kind: check})
	case answer:
		m.procs[p].owed &^= 1 << msg.id
		if cl := &m.clients[msg.id.client()]; cl.id == msg.id && (cl.phase == releasing || cl.phase == leaving) {
			cl.phase, cl.id = done, 0
		}
	case found:
		m.procs[p].asking = false
		for c := range m.clients {
			cl := &m.clients[c]
			if procOf[c] != p || cl.phase != waiting {
				continue
			}
			switch {
			case msg.id == cl.id:
				m.given(p, message{id: cl.id, time: msg.time, fence: msg.fence}, planted)
			case msg.bits&(1<<c) != 0:
			default:
				m.begin(c, enqueue)
			}
		}
	}
}

// given is what a process does with a grant, however it has learnt of it.
func (m *model) given(p int, msg message, planted mistake) {
	id := msg.id
	cl := &m.clients[id.client()]
	if cl.id != id || cl.phase != waiting {
		if cl.id == id && (cl.phase == holding && planted != asItWas || cl.phase == leaving) {
			return // told twice, or the leave that is under way releases it
		}
		if planted != keepUnknown {
			m.giveBack(p, id)
		}
		return
	}
	cl.until = msg.time + modelTTL
	m.procs[p].known = max(m.procs[p].known, cl.until)
	if planted == validFromReceipt {
		cl.until = m.now + modelTTL
	}
	if m.now >= cl.until { // too late: release, and queue again
		m.giveBack(p, id)
		m.begin(id.client(), enqueue)
		return
	}
	cl.phase, cl.fence = holding, msg.fence
}

// isRefused is what a process does when Redis refuses what it has asked for: a wait ends
// with the error, and what may be left of it is owed; the rest is asked for again.
func (m *model) isRefused(p int, msg message, planted mistake) {
	cl := &m.clients[msg.id.client()]
	owed := m.procs[p].owed&(1<<msg.id) != 0
	switch {
	case planted == refusedIsPaid && (owed || cl.id == msg.id && cl.phase == leaving):
		m.procs[p].owed &^= 1 << msg.id
		if cl.id == msg.id && cl.phase == leaving {
			cl.phase, cl.id = done, 0
		}
	case cl.id == msg.id && cl.phase == waiting:
		cl.phase = leaving
		m.send(p, message{kind: leave, id: msg.id})
	default:
		m.send(p, message{kind: kind(msg.bits), id: msg.id})
	}
}

// giveBack releases what was granted to nobody, until that is answered.
func (m *model) giveBack(p int, id ident) {
	m.procs[p].owed |= 1 << id
	m.send(p, message{kind: release, id: id})
}

// lose breaks a connection. What was sent and not read is lost, but for the first of
// it, which may be read any time later.
func (m *model) lose(p int, ghost bool) {
	pr := &m.procs[p]
	if ghost && pr.up[0].id != 0 {
		m.ghost = pr.up[0]
	}
	pr.connected, pr.asking, pr.astray = false, false, false
	pr.up, pr.down = [inFlight]message{}, [inFlight]message{}
}

// next calls visit for every state that can follow. progress is false for faults,
// for the passing of time and for what clients do when they like.
func (m model) next(planted mistake, visit func(n model, progress bool)) {
	try := func(progress bool, do func(n *model) bool) {
		if n := m; do(&n) {
			visit(n, progress)
		}
	}
	if m.now < m.faults.ticks {
		try(false, func(n *model) bool { n.now++; return true })
	}
	if m.ghost.kind != none {
		try(true, func(n *model) bool {
			n.ghost = message{}
			n.serve(m.ghost.id.proc(), m.ghost, true, planted)
			return true
		})
	}
	for p, pr := range m.procs {
		m.processSteps(p, pr, planted, try)
	}
	for c, cl := range m.clients {
		m.clientSteps(c, cl, planted, try)
	}
	if m.faults.closures > 0 {
		try(false, func(n *model) bool { n.faults.closures--; n.closed, n.delayed = !n.closed, true; return true })
	}
	if m.faults.failovers > 0 {
		try(false, func(n *model) bool {
			n.faults.failovers--
			for p := range n.procs {
				n.procs[p].astray = n.procs[p].connected
			}
			return true
		})
	}
	if m.faults.refusals > 0 {
		try(false, func(n *model) bool { n.faults.refusals--; n.refused, n.delayed = !n.refused, true; return true })
	}
}

type trying func(progress bool, do func(n *model) bool)

func (m model) processSteps(p int, pr process, planted mistake, try trying) {
	if pr.dead {
		return
	}
	if pr.connected && pr.up[0].kind != none {
		try(true, func(n *model) bool { n.serve(p, take(&n.procs[p].up), false, planted); return true })
	}
	if pr.connected && pr.down[0].kind != none && !pr.stopped {
		try(true, func(n *model) bool { n.receive(p, take(&n.procs[p].down), planted); return true })
	}
	if m.faults.breaks > 0 && pr.connected && p == troubled {
		for _, ghost := range []bool{false, true} {
			try(false, func(n *model) bool { n.faults.breaks--; n.lose(p, ghost); return true })
		}
	}
	if m.faults.deaths > 0 && p == troubled {
		try(false, func(n *model) bool {
			n.faults.deaths--
			n.lose(p, false)
			n.procs[p].dead = true
			return true
		})
	}
	if m.faults.stops > 0 && !pr.stopped && p == troubled {
		try(false, func(n *model) bool { n.faults.stops--; n.procs[p].stopped, n.procs[p].since = true, n.now; return true })
	}
	if pr.stopped {
		try(false, func(n *model) bool { // it goes on, and asks if it was silent
			n.procs[p].stopped = false
			if pr.silent(n.now) {
				return n.wonders(p, planted)
			}
			return true
		})
		return
	}
	if !pr.connected {
		try(true, func(n *model) bool { n.procs[p].connected = true; return n.wonders(p, planted) })
	}
	if pr.connected && pr.astray && pr.up[0].kind == none { // a heartbeat finds it out
		try(true, func(n *model) bool { return n.send(p, message{kind: check}) })
	}
	if pr.connected && m.overdue(p) && planted != noChecker {
		try(true, func(n *model) bool { return n.send(p, message{kind: check}) })
	}
}

// wonders has a process ask, once it can be told again, what became of its clients.
func (m *model) wonders(p int, planted mistake) bool {
	for id := range ident(modelClients*modelIDs + 1) {
		if m.procs[p].owed&(1<<id) != 0 {
			m.send(p, message{kind: release, id: id})
		}
	}
	for c := range m.clients {
		cl := &m.clients[c]
		if procOf[c] != p {
			continue
		}
		switch cl.phase {
		case releasing:
			m.send(p, message{kind: release, id: cl.id})
		case leaving:
			m.send(p, message{kind: leave, id: cl.id})
		case waiting:
			if planted == repeatedEnqueue {
				m.send(p, message{kind: enqueue, id: cl.id})
			} else if planted != noAskAfterBreak && !m.procs[p].asking {
				m.procs[p].asking = m.send(p, message{kind: ask})
			}
		}
	}
	return true
}

// overdue says whether the process's checker should look: somebody waits, and the
// latest expiry that it knows of is over.
func (m model) overdue(p int) bool {
	if m.now <= m.procs[p].known {
		return false
	}
	for _, msg := range m.procs[p].up {
		if msg.kind == check {
			return false
		}
	}
	for c, cl := range m.clients {
		if procOf[c] == p && cl.phase == waiting {
			return true
		}
	}
	return false
}

func (m model) clientSteps(c int, cl client, planted mistake, try trying) {
	pr := m.procs[procOf[c]]
	if pr.dead || pr.stopped || !pr.connected {
		return
	}
	switch cl.phase {
	case idle:
		try(false, func(n *model) bool { return n.begin(c, enqueue) })
		if m.othersWait(c) {
			try(false, func(n *model) bool { return n.begin(c, push) })
		}
	case waiting:
		if m.faults.cancels > 0 && procOf[c] == troubled {
			try(false, func(n *model) bool {
				n.faults.cancels--
				n.clients[c].phase = leaving
				return n.send(procOf[c], message{kind: leave, id: cl.id})
			})
		}
	case holding:
		try(false, func(n *model) bool {
			n.clients[c].phase = releasing
			return n.send(procOf[c], message{kind: release, id: cl.id})
		})
	}
}
