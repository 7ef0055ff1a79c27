//go:build !race

package model

import "slices"

// clients is the number of clients in a world. A world is one lock at a server, two processes with these clients, and
// everything in transit between them. The type world has no pointers, so that the search can hash and compare worlds.
// Everything that a process does between two exchanges with Redis is one step, because the Locker's mutex protects it.
const clients = 3

// home assigns each client to a process: the first client to process 0, the other two to process 1.
var home = [clients]int8{0, 1, 1}

// troubled is the only process that faults affect: its connections and its subscription break, its clients give up, and
// it may die. If faults affected both processes, a search would meet twice as many states.
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
// replies, in any order, because the mutex is not held during an exchange.
type task struct {
	stage         stage
	indeterminate bool // it was asked before, and there was no answer
	age           int8 // ticks since it was sent; of a set since the first time
	command       command
	reply         reply
}

// slot is what a process knows about one of its slots in Redis's queue.
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

// pendingRelease is an id that may have the lock or an entry at Redis although no client wants it any more.
type pendingRelease struct {
	id            ident
	indeterminate bool
	answered      bool
}

// subscription is the connection on which a process receives grant messages. said contains the messages in transit.
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

// budget contains the number of times that each fault and each optional step may still happen.
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

// flaw is a violation that a search can find.
type flaw uint8

const (
	sound flaw = iota
	twoOwners
	tokenFell
	tokenAgain
	falselyLost
	unnotifiedWaiter
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

// protocol is the variant of the protocol that a search runs: the options of the lock, the clients that take part, and
// a planted mistake.
type protocol struct {
	planted  mistake
	linger   bool // a process passes the lock on
	cluster  bool
	clients  cast // the clients that take part
	fewLooks bool // at most faults.looks checks, which keeps a world small in which time passes
	scripts  *scripts
}

// cast selects the clients that take part in a search.
type cast uint8

const (
	all   cast = iota
	apart      // one in each process
	aPair      // two in one process
)

func (c cast) plays(client int) bool {
	return c == all || c == apart && client != 2 || c == aPair && client != 0
}

// run makes the server execute a command, and puts the messages that the command publishes in transit. If old is true,
// the command goes to the former primary, which refuses writes.
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
		w.found(unnotifiedWaiter)
	}
	for _, m := range said {
		p.deliver(w, m, old)
	}
	return r
}

// offered records the token of a grant. A token that is not larger than all earlier ones is a flaw.
func (w *world) offered(t token) {
	if t <= w.granted {
		w.found(tokenAgain)
	}
	w.granted = max(w.granted, t)
}

// deliver puts message m in transit if the process to which m.id belongs is subscribed to the server that published m.
// If old is true, that server is the former primary.
func (p *protocol) deliver(w *world, m message, old bool) {
	e := &w.procs[m.id.process()].subscription
	hears := e.on && (m.heard || e.astray && !old)
	if !hears || w.procs[m.id.process()].dead {
		return
	}
	m.heard = true
	put(w, e.said[:], m)
}

// put appends an element to a list. If the list is full, put sets w.full, and the search does not follow the world.
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

// tick makes the time of one tick pass: all leases get closer to their end, and the lock at Redis may expire.
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

// tasks returns pointers to all tasks: one of each client, then three of each process.
func (w *world) tasks() [clients + 2*(tasks-clients)]*task {
	a, b := &w.procs[0], &w.procs[1]
	return [...]*task{
		&w.clients[0].task, &w.clients[1].task, &w.clients[2].task,
		&a.look.task, &a.sendPending, &a.confirm, &b.look.task, &b.sendPending, &b.confirm,
	}
}

// work returns task k of a process. If k is less than clients, this is the task of client k; otherwise it is one of the
// process's own tasks.
func (w *world) work(proc int8, k int) *task {
	if k >= clients {
		k += int(proc) * (tasks - clients)
	}
	return w.tasks()[k]
}

const tasks = clients + 3

// timed reports whether the age of task t matters. It does if a lease may begin at the time when the task was sent.
func timed(t *task) bool {
	return t.stage != nothing && t.stage != listening && (t.command.verb != enqueue || t.command.mode == try)
}

// each calls the function id for every id and the function at for every token in a world. A search calls each more
// often than any other function. It therefore does not return slices, which it would have to allocate.
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

// used returns the set of all ids in a world, one bit for each.
func (w *world) used() (set uint16) {
	w.each(func(id ident) { set |= 1 << id }, func(*token) {})
	return set
}

// fresh returns an id of process proc that is unused in the world. In reality an id is used only once. The model uses
// an id again when it is no longer in any part of the world.
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

// tidy removes differences that cannot affect later steps. The search then treats worlds that differ only in these as
// one world.
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
			return d.id == 0 || d.answered && (!d.indeterminate || (under|atServer|w.idsInTransit())&(1<<d.id) == 0)
		})
	}
	if w.excluded != 0 {
		w.excluded &= w.used() &^ 1
	}
	w.rank()
}

// idsInTransit returns the set of ids in commands that are in transit or yet to be sent, one bit for each.
func (w *world) idsInTransit() (set uint16) {
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

// rank replaces all tokens by small numbers in the same order. It limits the distances between them to far, because no
// script adds more than that to a token.
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
