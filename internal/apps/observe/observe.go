package observe

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"slices"
	"time"
)

// This file turns the lines of a stream into operations on locks. take collects a command, or a script with its
// commands, in a unit. handle finds what the unit did to each of its keys (a deed), and do applies each deed to the
// state of its lock in leases.go. attribute counts the commands.
//
// The stream may be endless or hostile, so the observer limits everything that it stores: keys, waiters, scripts, and
// the steps of a unit. forget and sweep add the figures of dropped keys and waiters to the result.

// linesBetween is the number of lines between two checks of the context. A check for each line would take too long.
const linesBetween = 4096

// Options select what Read and Watch read, and what the document shows.
type Options struct {
	Prefix   string // keys with this prefix are the locks; if it is "", locks are recognized by their use
	HashKeys bool   // show hashes in place of the names of keys
	Top      int    // number of locks to list
	Trace    bool   // keep the arrivals of clients, for WriteTrace and WriteWorkload
}

// observer reconstructs the locks of one stream, line by line. Only one goroutine may use it.
type observer struct {
	marks   hasher
	keys    *keys
	shapes  matcher
	scripts map[mark]*script
	name    []byte // of the current command, in upper case
	unit    unit
	deeds   []deed   // buffer for handle
	words   []string // buffer for handle

	first, now int64 // times of the first and of the latest line, µs
	backwards  int64 // lines with an earlier time than the previous line
	waiters    int   // waiters of all keys, bounded by mostWaiters

	journal *journal // nil if no trace is needed
	folded  figures  // sum of the locks that are no longer followed
	foldedN int      // number of these locks
	caches  nonLocks
	unclear nonLocks // semaphores
}

// nonLocks counts keys that are not locks, and keeps a few of their names. The document lists them separately.
type nonLocks struct {
	keys     int
	commands int64
	names    []string
}

const namesAside = 3

func (a *nonLocks) add(name string, commands int64) {
	a.keys++
	a.commands += commands
	if len(a.names) < namesAside {
		a.names = append(a.names, name)
	}
}

func (a *nonLocks) include(other nonLocks) {
	a.keys += other.keys
	a.commands += other.commands
	a.names = append(a.names, other.names[:min(len(other.names), namesAside-len(a.names))]...)
}

// unit is a command of a client, or a script with the commands that it executed. The same command has different
// meanings in different scripts, so only a whole unit shows the operation on the lock.
type unit struct {
	at     int64
	from   mark // the client's connection
	script mark // the script or its hash; 0 for a plain command
	args   values
	steps  []step
	lines  int64
}

// Read reconstructs the contention from a MONITOR stream. When ctx ends, it returns the figures up to then.
func Read(ctx context.Context, in io.Reader, options Options) (*Document, error) {
	o := newObserver(options)
	s, stopped, err := o.read(ctx, in)
	if err != nil {
		return nil, err
	}
	d := o.document(s.counted, options)
	d.Interrupted = stopped
	return d, nil
}

// read processes a stream until it ends or ctx ends. stopped is true if ctx ended first.
func (o *observer) read(ctx context.Context, in io.Reader) (s *scanner, stopped bool, err error) {
	s = newScanner(in)
	for !stopped {
		l, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		o.take(l)
		stopped = s.number%linesBetween == 0 && ctx.Err() != nil
	}
	o.flush()
	return s, stopped, nil
}

func newObserver(options Options) *observer {
	o := &observer{
		marks: hasher{maphash.MakeSeed()}, shapes: newMatcher(), scripts: map[mark]*script{},
		name: make([]byte, 0, 32),
	}
	o.keys = newKeys(options.Prefix, o.forget)
	if options.Trace {
		o.journal = &journal{}
		o.keys.journal = o.journal
	}
	return o
}

// tick processes a command of lockbench's own connection. Only its time matters: it shows that time passes even if the
// clients send nothing.
func (o *observer) tick(at int64) {
	if o.first == 0 {
		o.first = at
	}
	o.now = max(o.now, at)
}

// take processes a line. The commands of a script follow the client's EVAL as separate lines. If a line has an earlier
// time than the previous line, take uses the previous time, because durations must not be negative.
func (o *observer) take(l *line) {
	if o.first == 0 {
		o.first, o.now = l.at, l.at
	}
	if l.at < o.now {
		o.backwards++
		l.at = o.now
	}
	o.now = l.at
	o.name = upper(o.name, l.args[0])
	if !l.inner {
		o.flush()
		o.begin(l)
		// EVAL itself is not a step, because the commands that its script executes follow as separate lines.
		if o.unit.script != 0 {
			return
		}
	} else {
		if o.unit.lines == 0 { // the script began before the capture
			o.unit.at = l.at
		}
		l.at = o.unit.at // Redis uses one time for all commands of a script
		o.unit.lines++
	}
	// A script in an endless loop must not use up the memory.
	if len(o.unit.steps) < mostArgs {
		o.unit.steps = o.steps(l, o.name, o.unit.steps)
	}
}

// begin begins a unit with a client's command. It keeps the arguments of a script, because one of them is the owner.
func (o *observer) begin(l *line) {
	u := &o.unit
	u.at, u.from, u.lines = l.at, o.marks.of(l.from), 1
	if !scripted(string(o.name)) || len(l.args) < 2 {
		return
	}
	// u.script must not be 0, because 0 means that the unit is a plain command.
	u.script = max(1, o.marks.of(l.args[1]))
	for _, arg := range l.args[2:] {
		u.args = append(u.args, o.marks.of(arg))
	}
}

// flush handles the current unit. It is called at the next command of a client, which shows that the unit is complete.
func (o *observer) flush() {
	u := &o.unit
	if len(u.steps) > 0 {
		o.handle(u)
	}
	// The slices are reused to save allocations, because a stream can have millions of units.
	*u = unit{args: u.args[:0], steps: u.steps[:0]}
}

// deed is the operation of a unit on one key.
type deed struct {
	key  *key
	is   act
	at   int  // index of the shape; −1 if there is none
	last step // all steps on the key, combined by step.and
}

// handle finds the operation of a unit on each key, by the words of all commands on that key, and applies it. The main
// key is the key that is most certainly a lock, not just the first key: Redisson's unlock latch, for example, belongs
// to a lock. A weaker key in the same unit becomes a part of the main key, unless it was acquired as a lock before.
func (o *observer) handle(u *unit) {
	done := o.deeds[:0]
	// A unit without a client belongs to a script that began before the capture.
	inScript := u.script != 0 || u.from == 0
	for i, s := range u.steps {
		if slices.ContainsFunc(u.steps[:i], func(before step) bool { return before.key == s.key }) {
			continue
		}
		of := o.words[:0]
		d := deed{key: s.key, last: s}
		for _, step := range u.steps[i:] {
			if step.key != s.key {
				continue
			}
			of = append(of, step.word)
			d.last = d.last.and(step)
		}
		if d.at = o.shapes.shape(of, inScript); d.at >= 0 {
			d.is = shapes[d.at].is
		}
		done = append(done, d)
		o.words = of
	}
	o.deeds = done
	var main *key
	most := 0
	for _, d := range done {
		if strength := d.strength(); strength > most && d.key.partOf == nil {
			main, most = d.key, strength
		}
	}
	for _, d := range done {
		if d.strength() < most && d.key.partOf == nil && d.key.lock.Acquisitions == 0 {
			d.key.partOf = main
		}
		lock := d.key
		// The only operation that counts on a part of a lock is joining the lock's queue. It counts as a refused try for the
		// lock.
		if queued := d.last.word == queue; queued != (lock.partOf != nil) {
			continue
		} else if queued {
			lock = lock.partOf
		}
		o.do(u, d, &lock.lock)
	}
	o.attribute(u, main, done)
}

// strength rates how certainly an operation shows that its key is a lock: 2 for operations on locks only, 1 for
// operations that libraries also use on markers next to a lock, and 0 for all other operations.
func (d deed) strength() int {
	switch d.is {
	case grants:
		if name := shapes[d.at].name; name == setAlone || name == existsSet || name == getSet {
			return 1
		}
		return 2
	case tries, refused, releases:
		return 2
	case renews:
		if shapes[d.at].scripted && shapes[d.at].name != expireAlone {
			return 2
		}
	}
	return 0
}

// and combines two steps on a key. The value and the TTL of the later step replace those of the earlier step.
func (s step) and(next step) step {
	if next.value != 0 {
		s.value = next.value
	}
	if next.ttl != 0 {
		s.ttl, s.limit = next.ttl, next.limit
	}
	s.word = next.word
	return s
}

// attribute counts each command of the unit once. A command on a lock other than the main key counts for that lock. All
// other commands, such as commands on queues and channels, count for the main key.
func (o *observer) attribute(u *unit, main *key, done []deed) {
	if main == nil {
		main = done[0].key
	}
	if main.partOf != nil {
		main = main.partOf
	}
	rest := u.lines
	for _, d := range done {
		if d.key == main || d.strength() == 0 || d.key.partOf != nil {
			continue
		}
		own := int64(0)
		for _, s := range u.steps {
			if s.key == d.key {
				own++
			}
		}
		own = min(own, rest)
		d.key.lock.Commands += own
		rest -= own
	}
	main.lock.Commands += rest
	// A blocking pop shows that the lock's library lets waiters sleep until a signal.
	if done[0].last.word == sleep && done[0].key.partOf == main {
		main.lock.signals++
	}
}

// do applies a deed to its lock. The first executions of a script may only read the lock. When a later execution shows
// the purpose of the script, do records it and corrects the pending reads by recall and releasedBefore.
func (o *observer) do(u *unit, d deed, l *lock) {
	t := try{owner: d.last.value, from: u.from, at: u.at, until: d.last.ttl, bare: u.script == 0}
	t.hash = d.at >= 0 && shapes[d.at].name == hashLock
	s := o.scriptOf(u)
	// A renewal that found no lease sends the same commands as a refused try.
	if d.is == refused && s.does == renews {
		d.is = nothing
	}
	if d.at >= 0 && d.is != nothing && d.is != looks {
		l.shapes[d.at]++
	}
	before := len(l.waiters)
	switch d.is {
	case tries:
		s.takes(u, t.owner)
		l.handleTry(t, o.waiters < mostWaiters)
	case grants:
		s.takes(u, t.owner)
		// Another client sent this script, which hands the lock over to a waiter.
		if !u.args.has(t.owner) {
			l.recall(t.owner)
		}
		l.takes(t, u.args)
	case refused:
		if t.owner == 0 {
			t.owner = s.ownerOf(u)
		} else {
			s.takes(u, t.owner)
		}
		l.advance(t.at)
		l.refuse(t, o.waiters < mostWaiters)
	case releases:
		if s.does != releases {
			s.does = releases
			l.releasedBefore()
		}
		// Within a script, the shape shows whether the compare succeeded. Outside a script, only the state of the lock shows
		// the result of the compare.
		if d.last.word == delIFEQ && u.script == 0 {
			o.deleteIfEqual(l, u, d.last)
		} else {
			l.freedBy(u.at, u.args)
		}
	case deletes:
		l.deleted(u.at, u.from)
	case renews:
		if u.script != 0 {
			s.does = renews
		}
		args := u.args
		if u.script == 0 {
			args = nil
		}
		l.renewed(d.last, u.at, u.from, args)
	case looks:
		o.handleRead(l, s, u, t, d)
	case reads:
		l.isRead(u.at)
	case counts:
		l.counted++
	case steals:
		l.overwritten(t)
	case watches:
		l.watcher = u.from
	}
	// A deed changes only the waiters of its lock, so the others need no recount.
	o.waiters += len(l.waiters) - before
	if o.waiters >= mostWaiters {
		o.sweep()
	}
}

// handleRead handles an execution of a script that only read the lock. The execution found the lock held if other
// executions show that the script acquires, and it released nothing if they show that the script releases. If the
// purpose of the script is not known yet, handleRead stores a pending read. A script that reads the TTL is a try,
// because its client sleeps for the TTL.
func (o *observer) handleRead(l *lock, s *script, u *unit, t try, d deed) {
	waits := d.last.word == pttl
	for owner := range l.waiters {
		if s.does != nothing || !waits {
			break
		}
		s.takes(u, owner)
	}
	if s.does == nothing && u.script != 0 {
		l.addPendingRead(pendingRead{s, slices.Clone(u.args), u.from, u.at, u.lines, waits})
	}
	switch s.does {
	case tries:
		// A holder that runs the script has read its own lock and was not refused.
		if t.owner = s.ownerOf(u); t.owner == 0 || l.held && l.lease.owner == t.owner {
			return
		}
		l.advance(t.at)
		l.refuse(t, o.waiters < mostWaiters)
	case releases:
		l.idle(u.at, u.lines, u.args)
	}
}

// deleteIfEqual handles DELEX and DELIFEQ. MONITOR does not show their replies, so the known owner of the lease decides
// whether the command deleted the lock. If the holder is not known, a waiter with this value counts as the holder,
// because a client releases only what it holds.
func (o *observer) deleteIfEqual(l *lock, u *unit, s step) {
	is := values{s.value}
	l.advance(u.at)
	if waits := l.waiters[s.value] != nil; l.held && l.lease.owner == s.value || !l.known && waits {
		l.freedBy(u.at, is)
		return
	}
	l.compared++
	l.idle(u.at, 1, is)
}

// scriptOf returns what earlier executions have shown about the unit's script. It stores at most mostScripts scripts.
func (o *observer) scriptOf(u *unit) *script {
	s := o.scripts[u.script]
	if s == nil {
		s = &script{owner: -1}
		if u.script != 0 && len(o.scripts) < mostScripts {
			o.scripts[u.script] = s
		}
	}
	return s
}

// takes records that a script tries to take a lock, and the index of the owner in its arguments. ownerOf needs that
// index for a failed try, whose commands do not contain the owner.
func (s *script) takes(u *unit, owner mark) {
	if at := slices.Index(u.args, owner); at >= 0 {
		s.does, s.owner = tries, at
	}
}

// ownerOf returns the owner, which is one of the script's arguments. It returns 0 if the owner is not known.
func (s *script) ownerOf(u *unit) mark {
	if s.owner < 0 || s.owner >= len(u.args) {
		return 0
	}
	return u.args[s.owner]
}

// sweep bounds the memory for waiters. It drops the waiters that have stopped trying. If this is not enough, it drops
// all waiters.
func (o *observer) sweep() {
	// At the time never, in µs, every waiter counts as having stopped trying.
	const never = int64(1) << 60
	for _, at := range []int64{o.now, never} {
		for _, k := range o.keys.all {
			o.waiters -= k.lock.giveUp(at)
		}
		if o.waiters < mostWaiters/2 {
			return
		}
	}
}

// forget adds the figures of a key that is no longer followed to the sum of the dropped locks, to the caches or to the
// semaphores. If the user has set a prefix, it ignores caches and semaphores.
func (o *observer) forget(k *key) {
	o.waiters -= len(k.lock.waiters)
	o.close(k)
	f := &k.lock.figures
	switch {
	case o.keys.isLock(k):
		o.folded.add(f)
		o.foldedN++
	case k.partOf != nil:
	case o.keys.prefix == "" && f.counted > 0:
		o.unclear.add(k.name, f.Commands)
	case o.keys.prefix == "" && f.Tries+f.Acquisitions > 0:
		o.caches.add(k.name, f.Commands)
	}
}

// close counts the lease and the waits of a key that are open at the end of the capture.
func (o *observer) close(k *key) {
	o.keys.update(k)
	k.lock.close(o.now)
	if k.lock.of != nil {
		// The journal keeps arrivals at all keys, because only the end of the capture shows which keys are locks.
		k.lock.of.lock = o.keys.isLock(k)
	}
	if k.lock.Nameless = 0; noName.MatchString(k.name) {
		k.lock.Nameless = 1
	}
}

func (o *observer) seconds() float64 {
	return (time.Duration(o.now-o.first) * time.Microsecond).Seconds()
}
