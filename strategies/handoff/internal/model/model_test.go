package model

import "slices"

// The model is the protocol of DESIGN.md without time-outs and bytes: two processes,
// one lock, three clients, one connection a process on which nothing overtakes.
// search_test.go plays every interleaving of it. Times are ticks of one clock;
// a message may take any number of them.
const (
	modelTTL     = 2
	modelClients = 3
	modelIDs     = 2 // each client may ask that often
	modelProcs   = 2
)

// procOf places the clients: the first has a process to itself.
var procOf = [modelClients]int{0, 1, 1}

// troubled is the process that meets with faults, which saves half of the states.
const troubled = 1

// mistake is what is left out of the protocol, to see that the search finds it.
type mistake string

const (
	noMistake        mistake = ""
	noAskAfterBreak  mistake = "after a break nobody asks what became of the waiters"
	validFromReceipt mistake = "validity counts from the receipt of the grant"
	cancelOnlyQueue  mistake = "who cancels leaves the queue, but not the lock it was granted meanwhile"
	repeatedEnqueue  mistake = "an enqueue without an answer is sent again under its id"
	grantToTheDead   mistake = "a grant that reached nobody stands"
	grantToTheSilent mistake = "a silent process is granted the lock again and again"
	keepUnknown      mistake = "a grant to an unknown id is ignored"
	noChecker        mistake = "nobody looks when a lease has run out"
	blindPush        mistake = "an enqueue that does not look does not even look whether it is the first"
	lateEnqueue      mistake = "an enqueue that Redis reads from a broken connection takes the lock"
	popBeforePublish mistake = "the entry is removed before it is told"
	tellBeforeWrite  mistake = "a grant is told before the first write, which may be refused"
	asItWas          mistake = "and one that is told again is given back, though it is held"
	replicatedTold   mistake = "what a primary tells, those hear who listen at what was the primary"
	offeredAgain     mistake = "a token that nobody heard of is offered again"
	refusedIsPaid    mistake = "what is owed is forgotten when Redis refuses it"
)

// ident is client*modelIDs + try + 1; 0 is nobody.
type ident int8

func (i ident) client() int { return int(i-1) / modelIDs }
func (i ident) proc() int   { return procOf[i.client()] }

type phase int8

const (
	idle phase = iota
	waiting
	holding
	releasing
	leaving
	done
)

type kind int8

const (
	none    kind = iota
	enqueue      // enqueue-or-acquire
	push         // enqueue without a look
	release
	leave
	check
	ask     // what became of my ids?
	granted // downwards, with the server's time
	answer  // to release and leave
	first   // to push: nobody was queued before, the lock may be free
	found   // to ask: bit c is set when client c's id is queued or owner
	refusal // to what would have written, by a server that refuses writes
	demoted // so does one that is the primary no more: the process dials the new one
)

type message struct {
	kind  kind
	id    ident
	time  int8
	bits  uint8 // of found; of refusal the kind of what was refused
	fence int8
}

const inFlight = 4

type process struct {
	connected, dead, stopped bool
	astray                   bool // connected to what was the primary
	since                    int8 // when it was stopped
	asking                   bool
	known                    int8   // the latest expiry it has been told of
	owed                     uint16 // ids of stale and unknown grants whose release is not answered yet
	up, down                 [inFlight]message
}

// silent says whether its heartbeat, which lasts as long as a lease, has run out.
func (p *process) silent(now int8) bool { return p.stopped && now > p.since+modelTTL }

type client struct {
	phase phase
	id    ident
	tries int8
	until int8
	fence int8 // of what it holds, or held last
}

// model is comparable, so that the search knows where it has been.
type model struct {
	now     int8
	owner   ident
	expiry  int8
	fence   int8 // the last that was used up
	last    ident
	queue   [8]ident
	ghost   message // of a broken connection, not yet read by the server
	procs   [modelProcs]process
	clients [modelClients]client
	faults  faults // still to come
	wasted  bool   // a lease was granted to a process that was dead, or silent for a TTL
	refused bool   // PUBLISH is forbidden
	closed  bool   // writes are refused
	delayed bool   // it was: a lock may have to wait for its checker
	full    bool   // more in flight than the model has room for: not followed
}

// faults are what may go wrong, and how many ticks the world lasts.
type faults struct{ breaks, cancels, deaths, stops, refusals, closures, failovers, ticks int8 }

func start(f faults) model {
	m := model{faults: f}
	for p := range m.procs {
		m.procs[p].connected = true
	}
	return m
}

func put(to *[inFlight]message, msg message) bool {
	for i := range to {
		if to[i].kind == none {
			to[i] = msg
			return true
		}
	}
	return false
}

func (m *model) put(to *[inFlight]message, msg message) {
	if !put(to, msg) {
		m.full = true
	}
}

func take(from *[inFlight]message) message {
	first := from[0]
	copy(from[:], from[1:])
	from[inFlight-1] = message{}
	return first
}

func (m *model) append(id ident) {
	for i := range m.queue {
		if m.queue[i] == 0 {
			m.queue[i] = id
			return
		}
	}
	panic("the model's queue is full")
}

func (m *model) remove(i int) {
	copy(m.queue[i:], m.queue[i+1:])
	m.queue[len(m.queue)-1] = 0
}

func (m *model) free() bool { return m.owner == 0 || m.now > m.expiry }

// grantIfFree is the step that acquire, release and check share.
func (m *model) grantIfFree(planted mistake) {
	if !m.free() {
		return
	}
	m.owner = 0
	for m.queue[0] != 0 {
		id := m.queue[0]
		p := &m.procs[id.proc()]
		m.fence++
		if m.refused {
			if planted == popBeforePublish {
				m.remove(0)
			}
			return
		}
		m.remove(0)
		if p.silent(m.now) && planted != grantToTheSilent {
			continue
		}
		hears := p.connected && !p.astray
		if hears || p.connected && (planted == replicatedTold || planted == offeredAgain) {
			m.put(&p.down, message{kind: granted, id: id, time: m.now, fence: m.fence})
		}
		if !hears && planted == offeredAgain {
			m.fence--
		}
		if hears || planted == grantToTheDead {
			m.owner, m.expiry = id, m.now+modelTTL
			m.wasted = p.dead || p.silent(m.now)
			return
		}
	}
}

// serve carries out one command of process p. late says that it comes from a broken
// connection: nobody hears the reply.
func (m *model) serve(p int, msg message, late bool, planted mistake) {
	reply := func(r message) {
		if !late {
			m.put(&m.procs[p].down, r)
		}
	}
	if late && m.procs[p].connected && msg.kind == enqueue && planted != lateEnqueue {
		return // it belongs to an earlier connection than the one that is known now
	}
	if m.procs[p].astray || m.closed {
		m.refuse(p, msg, planted, reply)
		return
	}
	switch msg.kind {
	case enqueue:
		if m.free() && m.queue[0] == 0 {
			m.fence++
			m.owner, m.expiry = msg.id, m.now+modelTTL
			reply(message{kind: granted, id: msg.id, time: m.now, fence: m.fence})
			return
		}
		m.append(msg.id)
		m.grantIfFree(planted)
		m.procs[p].known = m.expiry
	case push:
		m.append(msg.id)
		if m.queue[1] == 0 && planted != blindPush {
			reply(message{kind: first})
		}
	case check:
		m.grantIfFree(planted)
		m.procs[p].known = m.expiry
		if m.free() {
			m.procs[p].known = m.now + modelTTL
		}
	case release, leave:
		if i := slices.Index(m.queue[:], msg.id); i >= 0 && msg.kind == leave {
			m.remove(i)
		}
		if m.owner == msg.id && (msg.kind == release || planted != cancelOnlyQueue) {
			m.owner, m.last = 0, msg.id
		}
		m.grantIfFree(planted)
		reply(message{kind: answer, id: msg.id})
	case ask:
		m.grantIfFree(planted)
		reply(m.found(p))
	}
}

// found is the answer to ask.
func (m *model) found(p int) message {
	r := message{kind: found, time: m.expiry - modelTTL, fence: m.fence}
	for c, cl := range m.clients {
		if cl.id != 0 && procOf[c] == p && slices.Contains(m.queue[:], cl.id) {
			r.bits |= 1 << c
		}
		if cl.id != 0 && m.owner == cl.id {
			r.id = cl.id
		}
	}
	return r
}

// refuse is what a server does with a command that refuses writes. One that is the primary
// no more tells those who listen there still, if it tells anybody.
func (m *model) refuse(p int, msg message, planted mistake, reply func(message)) {
	frees := (msg.kind == release || msg.kind == leave) && m.owner == msg.id || m.free()
	if first := m.queue[0]; (planted == tellBeforeWrite || planted == asItWas) && frees && first != 0 && msg.kind != push {
		if to := &m.procs[first.proc()]; to.connected && to.astray == m.procs[p].astray {
			m.put(&to.down, message{kind: granted, id: first, time: m.now, fence: m.fence + 1})
		}
	}
	switch {
	case m.procs[p].astray:
		reply(message{kind: demoted})
	case msg.kind == ask: // it reads, too
		reply(m.found(p))
	case msg.kind != check:
		reply(message{kind: refusal, id: msg.id, bits: uint8(msg.kind)})
	}
}
