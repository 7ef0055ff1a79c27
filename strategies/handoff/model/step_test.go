//go:build !race

package model

// class groups steps by their cause, for example a fault. A goal lists the classes of the steps that may lead to it.
type class uint8

const (
	plain class = iota // happens eventually if nothing else does
	looks              // like plain, but may take a second
	ticks              // time passes
	mends              // a fault ends
	wills              // an optional action of a client
	harms              // a fault
)

// step describes a transition from one world to the next.
type step struct {
	class class
	who   int8 // a client, a process (see asProcess), or theServer
	what  string
}

const theServer = -1

// asProcess returns the value of step.who for a process. It is negative, because clients are numbered from 0.
func asProcess(proc int8) int { return theServer - 1 - int(proc) }

// next calls visit for each step that is possible in world w, with the world after this step.
func (p *protocol) next(w *world, visit func(n *world, s step)) {
	try := func(class class, who int, what string, do func(n *world) bool) {
		n := *w
		if do(&n) {
			visit(&n, step{class, int8(who), what})
		}
	}
	p.clientSteps(w, try)
	for proc := range int8(2) {
		p.processSteps(w, proc, try)
		for k := range tasks {
			if k >= clients || home[k] == proc {
				p.taskSteps(w, proc, k, try)
			}
		}
	}
	p.serverSteps(w, try)
	for i, c := range w.late {
		if c.verb == 0 {
			continue
		}
		try(plain, asProcess(c.by), "a late command arrives: "+c.verb.String(), func(n *world) bool {
			n.late[i] = command{}
			p.run(n, c, false)
			return true
		})
		if before := begun(w, c); before != 0 {
			try(plain, asProcess(c.by), "a late command arrives: "+before.String(), func(n *world) bool {
				n.late[i] = command{}
				c.verb = before
				p.run(n, c, false)
				return true
			})
		}
	}
}

// begun returns the cheaper command that a process may send before the script of command c: RPUSHX before queue.lua, or
// the release for a lock without waiters before release.lua. It returns 0 if there is none.
func begun(w *world, c command) verb {
	switch {
	case c.verb == enqueue && c.mode == wait && w.queue[0] != 0:
		return follow
	case c.verb == release && c.entry == 0:
		return free
	}
	return 0
}

type trying func(class class, who int, what string, do func(n *world) bool)

func (p *protocol) clientSteps(w *world, try trying) {
	for c, cl := range w.clients {
		proc := home[c]
		q := &w.procs[proc]
		if q.dead || !p.clients.plays(c) {
			continue
		}
		switch {
		case cl.phase == idle, cl.phase == done && cl.task.stage == nothing && w.faults.again > 0:
			asks := func(how func(w *world, c int)) func(n *world) bool {
				return func(n *world) bool {
					if cl.phase == done {
						n.faults.again--
					}
					how(n, c)
					return true
				}
			}
			if q.idle() {
				try(wills, c, "asks", asks(p.ask))
				try(wills, c, "queues at once", asks(p.enter))
			} else {
				try(wills, c, "asks", asks(p.enter))
			}
		case cl.phase == holding && cl.task.stage == nothing:
			try(plain, c, "releases", func(n *world) bool { p.release(n, c); return true })
			try(plain, c, "passes on", func(n *world) bool { return p.pass(n, c) })
			if w.faults.extends > 0 {
				for _, ttl := range []int8{1, leaseTime + 1} {
					try(wills, c, "extends", func(n *world) bool {
						n.faults.extends--
						n.clients[c].task.send(command{verb: extend, by: proc, id: cl.lease.id, ttl: ttl})
						return true
					})
				}
			}
		}
		if w.faults.cancels > 0 && proc == troubled {
			try(harms, c, "gives up", func(n *world) bool { n.faults.cancels--; return p.giveUp(n, c) })
		}
	}
}

// giveUp ends a client's wait for the lock, unless the client has already got the reply to its request. Commands that
// the client has sent may still arrive. giveUp returns false if it has not ended a wait.
func (p *protocol) giveUp(w *world, c int) bool {
	cl, proc := &w.clients[c], home[c]
	t := cl.task
	if cl.phase != taking && cl.phase != waiting || t.stage == replied || t.stage == lost {
		return false
	}
	cl.task = task{}
	if t.stage == sent {
		w.later(t.command)
	}
	if cl.phase == taking {
		w.procs[proc].asking = false
		w.addPending(proc, t.command.id, true)
		cl.phase = done
		return true
	}
	if t.stage != nothing {
		if _, there := w.procs[proc].drop(t.command.id); there && t.stage == sent {
			w.addPending(proc, t.command.id, true)
		} else if !there && t.stage == sent {
			p.expectLateCommand(w, proc, t.command.id)
		}
	}
	p.quit(w, c)
	return true
}

// later adds a command that Redis may execute at any later step, although its connection is broken.
func (w *world) later(c command) { put(w, w.late[:], c) }

func (p *protocol) processSteps(w *world, proc int8, try trying) {
	who := asProcess(proc)
	q := &w.procs[proc]
	if q.dead {
		if w.hears[proc] {
			try(plain, who, "Redis notices that a process is dead", func(n *world) bool {
				n.hears[proc] = false
				return true
			})
		}
		return
	}
	if !q.subscription.on && w.wantsSubscription(proc) {
		try(plain, who, "listens", func(n *world) bool { p.listen(n, proc); return true })
	}
	if m := q.subscription.said[0]; m.id != 0 {
		hear := func(n *world) {
			p.hint(n, proc, m.id, m.token)
		}
		try(plain, who, "receives a message about its turn", func(n *world) bool {
			take(n.procs[proc].subscription.said[:], 0)
			hear(n)
			return true
		})
		if w.faults.twice > 0 {
			try(harms, who, "receives the message about its turn on two connections", func(n *world) bool {
				n.faults.twice--
				hear(n)
				return true
			})
		}
	}
	try(looks, who, "checks its slots", func(n *world) bool {
		if p.fewLooks {
			n.faults.looks--
		}
		return n.faults.looks >= 0 && p.startLook(n, proc)
	})
	if q.sendPending.stage == nothing {
		try(plain, who, "sends its pending releases", func(n *world) bool { return n.sendDue(proc) })
	}
	if proc != troubled {
		return
	}
	if w.faults.deaf > 0 && q.subscription.on {
		try(harms, who, "loses its subscription", func(n *world) bool {
			n.faults.deaf--
			p.hangUp(n, proc)
			return true
		})
	}
	if w.faults.deaths > 0 {
		try(harms, who, "dies", func(n *world) bool { n.faults.deaths--; n.die(proc); return true })
	}
}

func (w *world) wantsSubscription(proc int8) bool {
	for k := range tasks {
		if (k >= clients || home[k] == proc) && w.work(proc, k).stage == listening {
			return true
		}
	}
	return false
}

// die ends a process. Redis still counts its subscription, and commands that the process has sent may still arrive.
func (w *world) die(proc int8) {
	for k := range tasks {
		if k >= clients || home[k] == proc {
			if t := w.work(proc, k); t.stage == sent {
				w.later(t.command)
			}
		}
	}
	for c := range w.clients {
		if home[c] == proc {
			w.clients[c] = client{phase: done}
		}
	}
	w.procs[proc] = process{dead: true}
}

func (p *protocol) taskSteps(w *world, proc int8, k int, try trying) {
	t := w.work(proc, k)
	q := &w.procs[proc]
	who := asProcess(proc)
	if k < clients {
		who = k
	}
	name := t.command.verb.String()
	serve := func(as verb) func(n *world) bool {
		return func(n *world) bool {
			t := n.work(proc, k)
			c := t.command
			c.verb = as
			r := p.run(n, c, q.astray)
			if q.astray && r.outcome == refused { // the command was not executed; the process dials again
				n.procs[proc].astray = false
				return true
			}
			if as != t.command.verb && r.outcome == answered && r.code == 0 {
				return false // a script follows
			}
			t.stage, t.reply = replied, r
			if p.plain(t) && (n.faults.breaks == 0 || proc != troubled) {
				p.handleReply(n, proc, k)
			}
			return true
		}
	}
	breaks := w.faults.breaks > 0 && proc == troubled
	lose := func(do func(n *world, t *task)) func(n *world) bool {
		return func(n *world) bool {
			n.faults.breaks--
			t := n.work(proc, k)
			do(n, t)
			t.stage, t.reply = lost, reply{}
			return true
		}
	}
	switch t.stage {
	case sent:
		try(plain, who, "Redis executes: "+name, serve(t.command.verb))
		if before := begun(w, t.command); before != 0 {
			try(plain, who, "Redis executes: "+before.String(), serve(before))
		}
		if breaks {
			try(harms, who, "a command is lost: "+name, lose(func(*world, *task) {}))
			try(harms, who, "a command will be late: "+name, lose(func(n *world, t *task) { n.later(t.command) }))
		}
	case replied:
		try(plain, who, "has the answer to: "+name, func(n *world) bool { p.handleReply(n, proc, k); return true })
		if breaks && t.reply.outcome == answered {
			try(harms, who, "an answer is lost: "+name, lose(func(*world, *task) {}))
		}
	case lost:
		try(plain, who, "has no answer to: "+name, func(n *world) bool { p.handleReply(n, proc, k); return true })
	}
}

// plain reports whether a reply grants nothing. It then does not matter when the process handles the reply, so the
// search handles it in the same step, which saves three quarters of the worlds.
func (p *protocol) plain(t *task) bool {
	r := t.reply
	switch t.command.verb {
	case set:
		return r.owner != t.command.id
	case release:
		return r.newOwner == 0 && r.code != 0
	case check:
		return r.newOwner == 0 && (r.owner == 0 || r.owner.process() != t.command.by)
	case extend:
		return false
	default:
		return r.newOwner == 0
	}
}

func (p *protocol) serverSteps(w *world, try trying) {
	may := func(possible bool, class class, what string, do func(n *world)) {
		if possible {
			try(class, theServer, what, func(n *world) bool { do(n); return true })
		}
	}
	f, held := w.faults, w.owner != 0
	may(f.ticks > 0, ticks, "time passes", func(n *world) { n.faults.ticks--; n.tick() })
	may(held && w.procs[w.owner.process()].dead, ticks, "the lease of a dead process runs out",
		func(n *world) { n.clear() })
	may(f.refusals > 0 && w.fault == servesAll, harms, "Redis refuses writes", func(n *world) {
		n.faults.refusals--
		n.fault = refusesWrite
	})
	may(w.fault != servesAll, mends, "Redis takes writes again", func(n *world) { n.fault = servesAll })
	may(f.mutes > 0 && !w.mute, harms, "PUBLISH is forbidden", func(n *world) { n.faults.mutes--; n.mute = true })
	may(w.mute, mends, "PUBLISH is allowed again", func(n *world) { n.mute = false })
	may(f.steps > 0 && held, harms, "Redis's clock is set forward", func(n *world) {
		n.faults.steps--
		n.excluded |= 1 << n.owner
		n.clear()
	})
	may(f.losses > 0 && w.queue[0] != 0, harms, "the queue is lost", func(n *world) {
		n.faults.losses--
		n.queue, n.kept = [slots]ident{}, false
	})
	may(f.failover > 0, harms, "failover", func(n *world) { n.failOver() })
}

// failOver promotes the replica, which has all data. No process is subscribed to it yet, and the processes still send
// their commands to the old primary.
func (w *world) failOver() {
	w.faults.failover--
	for i := range w.procs {
		q := &w.procs[i]
		q.subscription.astray, q.astray = q.subscription.on, !q.dead
	}
	w.hears = [2]bool{}
	w.late = [lateRoom]command{}
}
