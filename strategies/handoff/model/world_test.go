//go:build !race

package model

import "slices"

// A world is a server, two processes with three clients, and what is under way between
// them. It has no pointers, so that the search can tell where it has been. There is one
// lock. All that a process does between two words with Redis is one step, as it is done
// under one mutex.
const clients = 3

// home places the clients: the first has a process to itself.
var home = [clients]int8{0, 1, 1}

// troubled is the process that meets with faults of its own, which saves half of the states.
const troubled = 1

type phase uint8

const (
	idle phase = iota
	taking
	waiting
	holding
	releasing
	done
)

type stage uint8

const (
	nothing   stage = iota
	listening       // to be sent when the process listens
	sent
	replied
	lost // it ended without an answer, and may have been carried out
)

// task is somebody who talks to Redis. The commands of a process may be carried out, and
// their answers heeded, in any order: they are sent without the mutex.
type task struct {
	stage         stage
	indeterminate bool // it was asked before, and there was no answer
	age           int8 // ticks since it was sent; of a set since the first time
	command       command
	reply         reply
}

// place is one in Redis's queue, as its process knows it.
type slot struct {
	id            ident
	age           int8 // ticks since before it was asked for
	queued        bool
	unsure        bool
	unheard       bool // it was queued when the process did not listen
	indeterminate bool // a lost command may queue it again
}

type lease struct {
	id            ident
	passed        int8
	until         int8 // ticks that it may be relied on
	indeterminate bool
	token         token
}

type client struct {
	phase phase
	asked bool // a release has been sent, and not been answered
	lease lease
	task  task
}

const pendingReleases = 4

// debt is what a process may have at Redis, and does not want.
type pendingRelease struct {
	id            ident
	indeterminate bool
	answered      bool
}

// ear is the connection by which a process is told.
type subscription struct {
	on     bool
	astray bool // at what was the primary
	said   [3]message
}

type look struct {
	on      bool
	task    task
	seen    ident    // at its beginning
	asked   [2]ident // to be checked
	missing [2]ident // to be queued again
}

type process struct {
	dead            bool
	astray          bool // its commands go to what was the primary
	asking          bool
	holder          int8 // the client whose lease is the process's, +1
	turns           uint8
	seen            ident // any of the process that was the owner
	waiters         [2]int8
	slots           [3]slot
	subscription    subscription
	look            look
	sendPending     task
	confirm         task
	hinted          bool // a message has come since confirm was sent
	pendingReleases [pendingReleases]pendingRelease
}

const lateRoom = 2

type world struct {
	redisState
	clock    token // the highest so far
	granted  token // the highest that was granted
	top      token // of who held it last, and …
	turn     int8  // … its number in the process
	excluded uint16
	procs    [2]process
	clients  [clients]client
	late     [lateRoom]command // of a broken connection, to be carried out some time
	faults   budget
	flaws    uint16 // a bit each
	full     bool   // more than there is room for: not followed
}

// budget are how often what may go wrong.
type budget struct {
	breaks   int8 // of a command: lost, late, or its answer lost
	deaf     int8 // breaks of what is listened by
	deaths   int8
	cancels  int8
	refusals int8 // writes are refused for a time
	mutes    int8 // SPUBLISH is
	failover int8
	twice    int8 // a message is heard twice
	steps    int8 // Redis's clock is set forward: the lease ends
	losses   int8 // of the queue
	extends  int8
	again    int8 // clients ask once more
	ticks    int8 // of time that pass
	looks    int8 // that processes take; fewLooks bounds them
}

// flaw is an invariant that does not hold.
type flaw uint8

const (
	sound flaw = iota
	twoOwners
	tokenFell
	tokenAgain
	falselyLost
	untold
	stuck
	stuckForLease
	stuckForLook
)

func (f flaw) String() string {
	return [...]string{
		"sound", "two hold the lock", "a token did not grow", "a token was offered again",
		"a valid lease was called lost", "the lock was given to somebody who was not told", "somebody waits for ever",
		"somebody waits, or the lock is taken, until a lease runs out that nobody has",
		"somebody waits until he looks",
	}[f]
}

// protocol is what the model plays.
type protocol struct {
	planted  mistake
	linger   bool // a process passes the lock on
	cluster  bool
	clients  cast // who plays
	fewLooks bool // as many as in faults, which keeps a world small in which time passes
	scripts  *scripts
}

// cast is which clients play.
type cast uint8

const (
	all   cast = iota
	apart      // one in each process
	aPair      // two in one process
)

func (c cast) plays(client int) bool {
	return c == all || c == apart && client != 2 || c == aPair && client != 0
}

// run has the server carry out a command, and delivers what it publishes. Where the
// command went to what was the primary nothing is written.
func (p *protocol) run(w *world, c command, old bool) reply {
	before := w.redisState
	if w.length() == slots {
		w.full = true
		return reply{}
	}
	if old {
		w.fault = refusesWrite
		w.hears = [2]bool{w.procs[0].subscription.astray, w.procs[1].subscription.astray}
	}
	r, said := p.scripts.exec(&w.redisState, c, &w.clock)
	if old {
		w.fault, w.hears = before.fault, before.hears
	}
	for _, m := range said {
		w.offered(m.token)
	}
	if r.newOwner != 0 && (len(said) > 0 || c.verb != enqueue || r.newOwner != c.id) {
		w.offered(r.token)
	}
	if n := len(said); r.code == 2 && c.verb != follow && (n == 0 || !said[n-1].heard) {
		w.found(untold)
	}
	for _, m := range said {
		p.deliver(w, m, old)
	}
	return r
}

// offered notes a token that the scripts have given to somebody.
func (w *world) offered(t token) {
	if t <= w.granted {
		w.found(tokenAgain)
	}
	w.granted = max(w.granted, t)
}

// deliver has a message be under way. One that is sent twice is handled by a step of its own.
func (p *protocol) deliver(w *world, m message, old bool) {
	e := &w.procs[m.id.process()].subscription
	hears := e.on && (m.heard || e.astray && !old)
	if !hears || w.procs[m.id.process()].dead {
		return
	}
	m.heard = true
	put(w, e.said[:], m)
}

// put has a list, or what is a set, have one more, if there is room.
func put[T comparable](w *world, list []T, v T) {
	n := length(list)
	if n == len(list) {
		w.full = true
		return
	}
	list[n] = v
}

func (w *world) found(f flaw) {
	w.flaws |= 1 << f
}

func start(f budget) world { return world{faults: f} }

// tick lets time pass.
func (w *world) tick() {
	older := func(age *int8) { *age = min(*age+1, longest) }
	if w.left = max(w.left-1, 0); w.left == 0 {
		w.clear()
	}
	for i := range w.clients {
		c := &w.clients[i]
		c.lease.until = max(c.lease.until-1, 0)
	}
	for _, t := range w.tasks() {
		if timed(t) {
			older(&t.age)
		}
	}
	for i := range w.procs {
		q := &w.procs[i]
		for j := range q.slots {
			if q.slots[j].id != 0 {
				older(&q.slots[j].age)
			}
		}
	}
}

// tasks are all tasks of the clients and of the processes.
func (w *world) tasks() [clients + 2*(tasks-clients)]*task {
	a, b := &w.procs[0], &w.procs[1]
	return [...]*task{
		&w.clients[0].task, &w.clients[1].task, &w.clients[2].task,
		&a.look.task, &a.sendPending, &a.confirm, &b.look.task, &b.sendPending, &b.confirm,
	}
}

// work is a task: of a client of the process, or the process's own.
func (w *world) work(proc int8, k int) *task {
	if k >= clients {
		k += int(proc) * (tasks - clients)
	}
	return w.tasks()[k]
}

const tasks = clients + 3

// timed says whether it matters how long ago a task was begun.
func timed(t *task) bool {
	return t.stage != nothing && t.stage != listening && (t.command.verb != enqueue || t.command.mode == try)
}

// each visits all ids and tokens that are known somewhere. One at a time costs no memory, and a search does little
// else.
func (w *world) each(id func(ident), at func(*token)) {
	ids := func(list []ident) {
		for _, i := range list {
			id(i)
		}
	}
	command := func(c *command) {
		id(c.id)
		ids(c.more[:])
		id(c.entry)
		at(&c.token)
	}
	for _, t := range w.tasks() {
		command(&t.command)
		id(t.reply.newOwner)
		id(t.reply.owner)
		at(&t.reply.token)
	}
	for i := range w.late {
		command(&w.late[i])
	}
	id(w.owner)
	ids(w.queue[:])
	at(&w.clock)
	at(&w.granted)
	at(&w.top)
	for i := range w.clients {
		id(w.clients[i].lease.id)
		at(&w.clients[i].lease.token)
	}
	for i := range w.procs {
		q := &w.procs[i]
		for j := range q.slots {
			id(q.slots[j].id)
		}
		for j := range q.subscription.said {
			id(q.subscription.said[j].id)
			at(&q.subscription.said[j].token)
		}
		for j := range q.pendingReleases {
			id(q.pendingReleases[j].id)
		}
		ids(q.look.asked[:])
		ids(q.look.missing[:])
	}
}

// used is the set of all ids that are known somewhere.
func (w *world) used() (set uint16) {
	w.each(func(id ident) { set |= 1 << id }, func(*token) {})
	return set
}

// fresh is an id of a process that is nowhere known. An id is used once in the world; the
// model uses those again that nobody can have heard of any more.
func (w *world) fresh(proc int8) ident {
	set := w.used()
	for n := ident(1); n < idsEach; n++ {
		if id := ident(proc)*idsEach + n; set&(1<<id) == 0 {
			return id
		}
	}
	w.full = true
	return ident(proc)*idsEach + 1
}

// tidy makes worlds the same that differ in nothing that matters.
func (w *world) tidy() {
	under := uint16(0) // ids that a late command may still bring, or that are at the server
	for _, c := range w.late {
		under |= 1<<c.id | 1<<c.entry
	}
	atServer := uint16(1) << w.owner
	for _, id := range w.queue {
		atServer |= 1 << id
	}
	for i := range w.procs {
		q := &w.procs[i]
		_ = slices.DeleteFunc(q.pendingReleases[:], func(d pendingRelease) bool {
			return d.id == 0 || d.answered && (!d.indeterminate || (under|atServer|w.flying())&(1<<d.id) == 0)
		})
	}
	if w.excluded != 0 {
		w.excluded &= w.used() &^ 1
	}
	w.rank()
}

// flying is the set of ids that a command brings which is under way.
func (w *world) flying() (set uint16) {
	add := func(t *task) {
		if t.stage == sent || t.stage == listening {
			set |= 1<<t.command.id | 1<<t.command.entry
		}
	}
	for i := range w.clients {
		add(&w.clients[i].task)
	}
	for i := range w.procs {
		add(&w.procs[i].look.task)
	}
	return set
}

// rank has the tokens keep their order, and their distances as far as a script can
// bridge them, but not their values.
func (w *world) rank() {
	all, values := make([]*token, 0, 64), make([]token, 0, 64)
	w.each(func(ident) {}, func(t *token) {
		if *t != 0 {
			all, values = append(all, t), append(values, *t)
		}
	})
	slices.Sort(values)
	values = slices.Compact(values)
	var mapped [64]token
	last, value := token(0), token(0)
	for i, v := range values {
		value += min(v-last, far)
		last, mapped[i] = v, value
	}
	for _, t := range all {
		i, _ := slices.BinarySearch(values, *t)
		*t = mapped[i]
	}
}
