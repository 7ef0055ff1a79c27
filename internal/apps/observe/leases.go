package observe

import (
	"slices"
	"time"

	"github.com/lockbench/lockbench/results"
)

// lock is the state of a key: its lease and its waiters, in Redis's order of commands and by Redis's clock.
//
// MONITOR does not show the result of a bare SET NX: it took the lock if the earlier commands left the lock free. For
// the first commands on a key this is not known. Its tries count as waits until a release, which names its owner,
// proves that one of them had taken the lock.
type lock struct {
	figures
	seen    int64 // first, µs
	known   bool  // whether it is held
	freeBy  int64 // ms: a lease from before the capture has ended by then; 0 if not known
	held    bool
	lease   lease
	waiters map[mark]*waiter
	lost    []lost
	pooled  bool // an owner used several connections, or several owners shared one
	// byOthers counts deletes by the connections of other clients. It is ignored if connections turn out to be pooled.
	byOthers int64
	looked   int64 // GETs by clients during the lease
	freed    int64 // when the last lease ended, µs
	ranOut   int64 // the last time that a TTL ended a lease, µs
	watcher  mark  // the connection of the last WATCH: its transaction compares before it deletes
	glances  []glance
	journal  *journal // nil if no trace is wanted
	of       *named
}

// lease is a grant under way.
type lease struct {
	owner, from mark // its value, and its client's connection
	asked, at   int64
	until       int64 // ms; 0 without a TTL
	guessed     bool  // only the connection proved the owner, and a pool may have given it to another client since
	renewed     bool
	early       bool  // only an expired TTL shows that its try took the lock, and Redis may still have refused the try
	rivals      []try // of other clients since an early try: if Redis refused it, the first of these took the lock
	leaving     bool  // its holder released it for a later time (ShedLock's lockAtLeastFor)
}

// waiter is an owner that tried and has not got the lock.
type waiter struct {
	first, last int64
	until       int64 // ms: the end of the lease that the last try asked for
	tries       int64
	from        mark // the last connection
}

// lost is a lease that ended before its client released it.
type lost struct {
	owner, from mark
	forgotten   int64 // ms: no release is expected any more
	// deleted counts deletes that may have hit the leases of others. Each client deletes once. So if the first delete
	// after an expiry came from the expired lease, every later owner loses its lease to the previous one, until one
	// delete finds no lock.
	deleted int64
}

const mostLost = 8 // leases of a key

// try is a client's attempt to take a lock.
type try struct {
	owner, from mark
	at, until   int64
	hash, bare  bool
}

// advance lets a lease end whose TTL is over. Redis compares whole ms.
func (l *lock) advance(at int64) {
	now := at / 1000
	if l.held && l.lease.until > 0 && now > l.lease.until {
		l.expire(l.lease.until * 1000)
	}
	if !l.known && l.freeBy > 0 && now > l.freeBy {
		l.known = true
	}
	l.lost = slices.DeleteFunc(l.lost, func(past lost) bool { return now > past.forgotten })
}

// expire ends a lease without a release.
func (l *lock) expire(at int64) {
	if l.lease.leaving {
		l.release(at)
		return
	}
	l.countExpiry()
	l.lose(at, 0)
	l.finish(at)
	l.ranOut = at
}

// countExpiry counts a lease that its TTL has ended.
func (l *lock) countExpiry() {
	l.Expired++
	if l.lease.renewed {
		l.RenewalsStopped++
	}
}

// emptied ends the lease when all keys of the database are deleted, as tests do between two cases. This is no fault of
// the lock.
func (l *lock) emptied(at int64) {
	if l.advance(at); l.held {
		l.finish(at)
	}
	l.known, l.freed, l.lost, l.looked = true, at, nil, 0
}

// lose remembers the current lease, because its client does not know of the loss and will still release it. deleted is
// the count of the previous lost lease in the same chain of deletes.
func (l *lock) lose(at, deleted int64) {
	ttl := int64(0)
	if l.lease.until > 0 {
		ttl = max(0, l.lease.until-l.lease.at/1000)
	}
	const patience = 10 // TTLs
	l.lost = append(l.lost, lost{l.lease.owner, l.lease.from, at/1000 + patience*max(ttl, 1000), deleted})
	if len(l.lost) > mostLost {
		l.lost = slices.Delete(l.lost, 0, 1)
	}
}

// finish counts the current lease, which ended at this time.
func (l *lock) finish(at int64) {
	if l.lease.until == 0 {
		l.WithoutTTL++
	}
	l.holds.end(at - l.lease.at)
	l.come(arrival{
		at: l.lease.asked, end: at, hold: max(0, at-l.lease.at), owner: l.lease.owner, granted: l.lease.at,
	})
	l.heldUS += max(0, at-l.lease.at)
	l.held, l.known, l.freed = false, true, at
	l.read, l.looked = l.read+l.looked, 0
}

// release ends the lease by a delete.
func (l *lock) release(at int64) {
	l.Releases++
	l.finish(at)
}

// refuse counts a try that did not take the lock.
func (l *lock) refuse(t try, room bool) {
	l.Tries++
	w := l.waiters[t.owner]
	switch {
	case w != nil:
		l.asksAgain(w, t.at)
		l.pooled = l.pooled || w.from != t.from
	case !room:
		return
	default:
		if l.waiters == nil {
			l.waiters = map[mark]*waiter{}
		}
		w = &waiter{first: t.at}
		l.waiters[t.owner] = w
	}
	l.pooled = l.pooled || t.bare && l.shares(t)
	w.last, w.from, w.until = t.at, t.from, t.until
	w.tries++
}

// soon is the longest pause of a polling client, and the longest time for which a connection counts as that of a
// waiter, in µs.
const soon = int64(time.Second / time.Microsecond)

// asksAgain counts the next try of a waiter. After a long pause the try may belong to another wait.
func (l *lock) asksAgain(w *waiter, at int64) {
	if at-w.last <= soon {
		l.again++
	}
	if w.tries == 1 {
		l.continued++
	}
	l.pauses.add(at - w.last)
}

// shares reports whether another waiter uses the same connection: then connections do not distinguish clients.
func (l *lock) shares(t try) bool {
	const most = 64
	for owner, w := range l.waiters {
		if same := owner != t.owner && w.from == t.from && w.last > t.at-soon; same || len(l.waiters) > most {
			return same
		}
	}
	return false
}

// grant begins a lease.
func (l *lock) grant(t try) {
	l.Tries++
	if w := l.waiters[t.owner]; w != nil {
		l.asksAgain(w, t.at)
		l.pooled = l.pooled || w.from != t.from && t.bare
		if l.freed > w.first {
			l.gaps.end(t.at - l.freed)
		}
	}
	l.begin(t)
}

// begin counts a lease of an owner that may have waited.
func (l *lock) begin(t try) {
	waited := int64(0)
	if w := l.waiters[t.owner]; w != nil {
		waited = t.at - w.first
		delete(l.waiters, t.owner)
	}
	l.Acquisitions++
	l.waits.end(waited)
	l.waitedUS += max(0, waited)
	if t.hash {
		l.hashed++
	}
	l.read, l.looked = l.read+l.looked, 0
	l.held, l.known = true, true
	l.lease = lease{owner: t.owner, from: t.from, asked: t.at - max(0, waited), at: t.at, until: t.until}
	if t.until > 0 {
		l.leased(t.until - t.at/1000)
	}
}

// values are the arguments of a script.
type values []mark

func (v values) has(m mark) bool { return m != 0 && slices.Contains(v, m) }

// proveBy proves that a waiter has the lock: a script compared the waiter's value, and that of no other waiter.
func (l *lock) proveBy(v values, but mark) {
	found, owner := 0, mark(0)
	for at, each := range v {
		if each != but && l.waiters[each] != nil && !slices.Contains(v[:at], each) {
			found, owner = found+1, each
		}
	}
	if found == 1 {
		l.prove(owner)
	}
}

// proveFrom proves it by the connection, which is weaker, because several waiters may share a connection.
func (l *lock) proveFrom(from mark) {
	found, owner := 0, mark(0)
	for each, w := range l.waiters {
		if w.from == from || len(l.waiters) == 1 {
			found, owner = found+1, each
		}
		if len(l.waiters) > mostCompared {
			return
		}
	}
	if found == 1 {
		l.prove(owner)
		l.lease.guessed = true
	}
}

// mostCompared bounds the waiters that proveFrom compares one by one, and so its time.
const mostCompared = 1000

// prove makes a waiter's last try the one that took the lock: what it does now only an owner does.
func (l *lock) prove(owner mark) {
	w := l.waiters[owner]
	switch {
	case !l.held:
	case l.lease.guessed: // the guess was wrong: this is the same lease
		l.waiters[l.lease.owner] = &waiter{first: l.lease.at, last: l.lease.at, from: l.lease.from, tries: 1}
		delete(l.waiters, owner)
		l.pooled = true
		l.lease.owner, l.lease.from, l.lease.guessed = owner, w.from, false
		return
	default: // its end was not seen
		if l.lease.until > 0 {
			l.countExpiry()
			l.lose(w.last, 0)
		}
		l.finish(max(w.last, l.lease.at))
	}
	l.begin(try{owner: owner, from: w.from, at: w.last, until: w.until})
}

// asks handles a try: it takes the lock if that is free.
func (l *lock) asks(t try, room bool) {
	l.advance(t.at)
	switch {
	case !l.known:
		if t.until > 0 {
			l.freeBy = max(l.freeBy, t.until)
		}
		l.refuse(t, room)
	case l.held && l.lease.owner == t.owner && l.lease.early:
		l.refusedBefore(t, room)
	case l.held && l.lease.owner == t.owner && t.bare:
		l.SharedValue++
		l.Tries++
	case l.held:
		l.refuse(t, room)
		if l.lease.early && len(l.lease.rivals) < mostRivals {
			l.lease.rivals = append(l.lease.rivals, t)
		}
	default:
		l.grant(t)
		l.lease.early = l.early(t.at)
	}
}

// takes handles a try that took the lock. If its script had the owner before as an argument, that handed the lock over.
func (l *lock) takes(t try, args values) {
	l.advance(t.at)
	if !l.known { // a script that hands the lock over proves who had it
		l.proveBy(args, t.owner)
	}
	switch {
	case !l.held:
	case l.lease.owner == t.owner: // entered again
		l.Tries++
		l.lease.until = max(l.lease.until, t.until)
		return
	case args.has(l.lease.owner):
		l.compared++
		l.release(t.at)
	case l.lease.until > 0 && t.at/1000 >= l.lease.until:
		l.expire(t.at)
	default: // a delete that was not seen, such as an eviction
		l.finish(t.at)
	}
	if !args.has(t.owner) { // the script of another client hands it the lock, so this is not a try
		l.Tries--
	}
	l.grant(t)
}

// overwritten handles a SET without NX.
func (l *lock) overwritten(t try) {
	l.advance(t.at)
	if l.held && l.lease.owner == t.owner {
		l.lease.until = t.until
		return
	}
	if l.held {
		l.Overwritten++
		l.lose(t.at, 0)
		l.finish(t.at)
	}
	l.WithoutNX++
	l.begin(t)
}

// freedBy handles a delete after the owner was compared with an argument.
func (l *lock) freedBy(at int64, args values) {
	l.compared++
	l.advance(at)
	if !l.held || !args.has(l.lease.owner) {
		l.proveBy(args, 0)
	}
	if l.held {
		l.release(at)
		return
	}
	l.AtStart++
	l.known, l.freed = true, at
}

// idle handles a release that released nothing, with the number of its commands.
func (l *lock) idle(at, commands int64, args values) {
	l.advance(at)
	late := slices.IndexFunc(l.lost, func(past lost) bool { return args.has(past.owner) })
	if late >= 0 {
		l.LateReleases++
		l.lost = slices.Delete(l.lost, late, late+1)
		return
	}
	l.IdleRelease++
	l.idleCommands += commands
}

// deleted handles a delete without compare, by a connection.
func (l *lock) deleted(at int64, from mark) {
	l.advance(at)
	looked, watched := l.looked > 0, l.watcher == from
	l.watcher = 0
	if looked {
		l.apart++
		l.looked--
	} else {
		l.plain++
	}
	if !l.known {
		l.proveFrom(from)
	}
	own := slices.IndexFunc(l.lost, func(past lost) bool { return past.from == from })
	if free := l.known && !l.held && len(l.lost) == 0; !free && !watched {
		l.UnsafeReleases++
	}
	switch {
	case !l.held && len(l.lost) > 0:
		past := l.lost[max(own, 0)]
		l.lost = slices.Delete(l.lost, max(own, 0), max(own, 0)+1)
		l.LateReleases++
		l.OthersDeleted += past.deleted
	case !l.held && l.known:
		l.IdleRelease++
		l.idleCommands++
	case !l.held:
		l.AtStart++
		l.known, l.freed = true, at
	case looked || !l.pooled && l.lease.from == from:
		l.release(at)
	case !l.pooled && (own >= 0 || l.waitsBy(from) || l.compared > l.plain):
		l.byOthers++
		if own >= 0 {
			l.LateReleases++
			l.lost = slices.Delete(l.lost, own, own+1)
		}
		l.lose(at, 0)
		l.release(at)
	case len(l.lost) > 0: // by which of the clients is not known
		past := l.lost[0]
		l.lost = slices.Delete(l.lost, 0, 1)
		l.lose(at, past.deleted+1)
		l.lost[len(l.lost)-1].forgotten = max(past.forgotten, l.lost[len(l.lost)-1].forgotten)
		l.release(at)
	default:
		l.release(at)
	}
}

// waitsBy reports whether a client waits by this connection.
func (l *lock) waitsBy(from mark) bool {
	for _, w := range l.waiters {
		if w.from == from || len(l.waiters) > mostCompared {
			return w.from == from
		}
	}
	return false
}

// renewed handles another end of a lease. args are those of a script; nil without one.
func (l *lock) renewed(s step, at int64, from mark, args values) {
	l.advance(at)
	if !l.known {
		if args != nil {
			l.proveBy(args, 0)
		} else {
			l.proveFrom(from)
		}
	}
	if !l.held || s.ttl == 0 && s.word == expire {
		return
	}
	endless := l.lease.until == 0
	switch {
	case s.word == expire && (endless && s.limit == shorter || !endless && s.limit == fresh):
		return
	case s.word == expire && endless:
		l.TTLApart++
		l.lease.until = s.ttl
		l.leased(s.ttl - at/1000)
		return
	case s.limit == longer:
		s.ttl = max(s.ttl, l.lease.until)
	}
	l.Renewals++
	longer := s.ttl >= l.lease.until // equal within a millisecond
	if longer {
		l.leased(s.ttl - at/1000)
	}
	l.lease.renewed = l.lease.renewed || longer
	l.lease.early = false // only its owner renews it
	l.lease.leaving = s.word == setXX && !longer
	l.lease.until = s.ttl
}

// isRead handles a client that looks at the key.
func (l *lock) isRead(at int64) {
	if l.advance(at); l.held {
		l.looked++
	} else {
		l.read++
	}
}

// patience is how long nearly all pauses between two tries of a wait were, at most.
func (l *lock) patience() int64 {
	const enough = 20
	pauses := l.pauses.histogram()
	if pauses.TotalCount() < enough {
		return soon
	}
	return results.Estimate(results.Observations{Ended: pauses}, nil).Quantile(0.99).NS / 1000
}

// quiet is the longest pause of a client that still waits.
func (l *lock) quiet() int64 {
	const times = 4
	if p := l.patience(); p < soon {
		return times * p
	}
	return soon
}

// giveUp forgets the waiters that have stopped trying.
func (l *lock) giveUp(at int64) (forgotten int) {
	if len(l.waiters) == 0 {
		return 0
	}
	quiet := l.quiet()
	for owner, w := range l.waiters {
		if at-w.last <= quiet {
			continue
		}
		l.come(arrival{at: w.first, end: w.last, hold: -1, once: w.tries == 1, owner: owner})
		if delete(l.waiters, owner); w.tries == 1 {
			l.TriedOnce++
		} else {
			l.GaveUp++
			l.waits.giveUp(w.last - w.first)
			l.waitedUS += w.last - w.first
		}
		forgotten++
	}
	return forgotten
}

// close counts the lease and the waits that are open at the end of the capture.
func (l *lock) close(at int64) {
	l.releasedBefore()
	l.advance(at)
	if l.held {
		if l.lease.until == 0 {
			l.WithoutTTL++
		}
		l.holds.stay(at - l.lease.at)
		l.come(arrival{at: l.lease.asked, end: at, hold: -1, owner: l.lease.owner, granted: l.lease.at})
		l.heldUS += at - l.lease.at
		l.held = false
	}
	if !l.pooled {
		l.OthersDeleted += l.byOthers
	}
	l.byOthers = 0
	l.giveUp(at)
	// If many values that failed once were never tried again, the library takes another one for its next tries.
	once, patience := l.TriedOnce, l.patience()
	for _, w := range l.waiters {
		if w.tries == 1 && at-w.last > patience {
			once++
		}
	}
	changes := once > 0 && 2*once >= l.continued
	if l.of != nil {
		l.of.renames = changes
	}
	for owner, w := range l.waiters {
		l.come(arrival{at: w.first, end: at, hold: -1, once: w.tries == 1, owner: owner})
		if w.tries == 1 && changes {
			l.TriedOnce++
			continue
		}
		l.waits.stay(at - w.first)
		l.waitedUS += at - w.first
		l.Open++
	}
	l.waiters = nil
}
