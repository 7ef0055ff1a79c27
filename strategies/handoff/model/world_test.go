//go:build !race

package model

import "slices"

// A world is a server, two processes with three clients, and everything in transit between them. It has no pointers,
// so that the search can recognise it by its memory. There is one lock. Everything that a process does between two
// exchanges with Redis is one step, because one mutex protects it.
const clients = 3

// home assigns the clients to processes: the first client has a process to itself.
var home = [clients]int8{0, 1, 1}

// troubled is the only process with its own faults, which saves half of the states.
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
	lost // it ended without an answer, and may have been executed
)

// task is one exchange with Redis. Redis may execute the commands of a process, and the process may handle their
// answers, in any order, because they are sent without the mutex.
type task struct {
	stage         stage
	indeterminate bool // it was asked before, and there was no answer
	age           int8 // ticks since it was sent; of a set since the first time
	command       command
	reply         reply
}

// slot is a slot in Redis's queue as its process knows it.
type slot struct {
	id            ident
	age           int8 // ticks since before its command was sent
	queued        bool
	unsure        bool
	unheard       bool // it was queued while the process did not listen
	indeterminate bool // a lost command may queue it again
}

type lease struct {
	id            ident
	passed        int8
	until         int8 // ticks for which its holder may rely on it
	indeterminate bool
	token         token
}

type client struct {
	phase phase
	asked bool // a release was sent and has no answer
	lease lease
	task  task
}

const pendingReleases = 4

// pendingRelease is a lock or an entry that a process may have at Redis and that no client wants.
type pendingRelease struct {
	id            ident
	indeterminate bool
	answered      bool
}

// subscription is the connection on which a process receives messages.
type subscription struct {
	on     bool
	astray bool // at the former primary
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
	astray          bool // its commands go to the former primary
	asking          bool
	holder          int8 // the client whose lease is the process's, +1
	turns           uint8
	seen            ident // an id of the process that was the owner
	waiters         [2]int8
	slots           [3]slot
	subscription    subscription
	look            look
	sendPending     task
	confirm         task
	hinted          bool // a message has arrived since confirm was sent
	pendingReleases [pendingReleases]pendingRelease
}

const lateRoom = 2

type world struct {
	redisState
	clock    token // the highest so far
	granted  token // the highest that was granted
	top      token // the token of the last holder, and …
	turn     int8  // … the number of its turn in the process
	excluded uint16
	procs    [2]process
	clients  [clients]client
	late     [lateRoom]command // commands of a broken connection, which may be executed later
	faults   budget
	flaws    uint16 // one bit per flaw
	full     bool   // an array is full, so the search does not follow the world
}

// budget is how often each fault may happen.
type budget struct {
	breaks   int8 // of a command: lost, late, or its answer lost
	deaf     int8 // breaks of a subscription
	deaths   int8
	cancels  int8
	refusals int8 // writes are refused for a time
	mutes    int8 // SPUBLISH is
	failover int8
	twice    int8 // a message arrives twice
	steps    int8 // Redis's clock is set forward: the lease ends
	losses   int8 // of the queue
	extends  int8
	again    int8 // clients ask once more
	ticks    int8 // ticks of time that pass
	looks    int8 // that processes take; fewLooks bounds them
}

// flaw is a broken invariant.
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
		"sound", "two clients hold the lock", "a token did not increase", "a token was offered again",
		"a valid lease was reported as lost", "the lock was granted without a message to the owner", "a client waits forever",
		"a client waits, or the lock is taken, until a lease without a holder runs out",
		"a client waits until its process checks",
	}[f]
}

// protocol is the variant of the protocol that the model runs.
type protocol struct {
	planted  mistake
	linger   bool // a process passes the lock on
	cluster  bool
	clients  cast // the clients that take part
	fewLooks bool // at most faults.looks checks, which keeps a world small in which time passes
	scripts  *scripts
}

// cast is the set of clients that take part.
type cast uint8

const (
	all   cast = iota
	apart      // one in each process
	aPair      // two in one process
)

func (c cast) plays(client int) bool {
	return c == all || c == apart && client != 2 || c == aPair && client != 0
}

// run makes the server execute a command, and delivers its messages. A command that goes to the former primary writes
// nothing.
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

// offered records a token that the scripts have granted to an id.
func (w *world) offered(t token) {
	if t <= w.granted {
		w.found(tokenAgain)
	}
	w.granted = max(w.granted, t)
}

// deliver puts a message in transit. A separate step delivers a message twice.
func (p *protocol) deliver(w *world, m message, old bool) {
	e := &w.procs[m.id.process()].subscription
	hears := e.on && (m.heard || e.astray && !old)
	if !hears || w.procs[m.id.process()].dead {
		return
	}
	m.heard = true
	put(w, e.said[:], m)
}

// put adds an element to a list or a set, if there is room.
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

// tick lets one tick of time pass.
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

// tasks returns all tasks of the clients and of the processes.
func (w *world) tasks() [clients + 2*(tasks-clients)]*task {
	a, b := &w.procs[0], &w.procs[1]
	return [...]*task{
		&w.clients[0].task, &w.clients[1].task, &w.clients[2].task,
		&a.look.task, &a.sendPending, &a.confirm, &b.look.task, &b.sendPending, &b.confirm,
	}
}

// work returns a task of a client of the process, or of the process itself.
func (w *world) work(proc int8, k int) *task {
	if k >= clients {
		k += int(proc) * (tasks - clients)
	}
	return w.tasks()[k]
}

const tasks = clients + 3

// timed reports whether the age of a task matters.
func timed(t *task) bool {
	return t.stage != nothing && t.stage != listening && (t.command.verb != enqueue || t.command.mode == try)
}

// each visits all ids and tokens of a world. Visiting one at a time needs no memory, which matters because a search
// does little else.
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

// used returns the set of all ids in a world.
func (w *world) used() (set uint16) {
	w.each(func(id ident) { set |= 1 << id }, func(*token) {})
	return set
}

// fresh returns an id of a process that the world does not contain. In reality an id is used only once; the model
// uses an id again when no part of the world can know it.
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

// tidy makes worlds equal that differ only in irrelevant fields.
func (w *world) tidy() {
	under := uint16(0) // ids that a late command may still queue, or that are at the server
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

// flying returns the set of ids in commands that are in transit.
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

// rank keeps the order of the tokens, and their distances as far as a script can bridge them, but not their values.
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
