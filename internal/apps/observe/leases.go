package observe

import (
	"slices"
	"time"

	"github.com/lockbench/lockbench/results"
)

// This file reconstructs the leases and waits of one key. Its functions are in this order: the ends of leases, tries,
// proofs that a waiter is the holder, handlers for the operations that observer.do finds, and the ends of waits.
//
// Times are in µs by Redis's clock, but the ends of TTLs, freeBy and forgotten are in ms. Each handler calls advance
// first, so that an expired lease is over before the command counts. held is never true while known is false.

// lock is the state of a key: its lease and its waiters. The order of events and their times are those of Redis.
//
// MONITOR does not show the reply to a bare SET NX. A SET NX took the lock if the earlier commands left the lock free.
// At the first commands on a key, it is not known whether the lock is free. The tries among these commands count as
// refused until a release, which contains the owner, proves that one of them took the lock.
type lock struct {
	figures
	seen    int64 // when the key was first used, µs
	known   bool  // held is known to be true or false
	freeBy  int64 // when a lease from before the capture has ended at the latest, ms; 0 if not known
	held    bool
	lease   lease
	waiters map[mark]*waiter
	lost    []lost
	pooled  bool // an owner used several connections, or several owners shared one connection
	// byOthers counts deletes by the connections of other clients. It is ignored if pooled is true, because then a
	// connection does not identify a client.
	byOthers     int64
	looked       int64 // GETs by clients during the lease
	freed        int64 // when the last lease ended, µs
	ranOut       int64 // when a TTL last ended a lease, µs
	watcher      mark  // the connection of the last WATCH, whose transaction compares the owner before it deletes
	pendingReads []pendingRead
	journal      *journal // nil if no trace is needed
	of           *named
}

type lease struct {
	owner, from mark  // the value of the key, and the connection of the client
	asked, at   int64 // the first try and the grant, µs
	until       int64 // the end of the TTL, ms; 0 without a TTL
	guessed     bool  // the owner was found only by its connection, which a pool may have given to another client
	renewed     bool
	early       bool  // the try came so shortly after the end of a TTL that Redis may have refused it; see early.go
	rivals      []try // tries of other clients since an early try; if Redis refused that, the first of them took the lock
	leaving     bool  // its holder has shortened the TTL in place of a release (ShedLock's lockAtLeastFor)
}

// waiter is an owner that has tried and has not obtained the lock yet.
type waiter struct {
	first, last int64 // its first and its last try, µs
	until       int64 // the end of the TTL that the last try would have set, ms
	tries       int64
	from        mark // the connection of the last try
}

// lost is a lease that ended before its client released it.
type lost struct {
	owner, from mark
	forgotten   int64 // when its release is no longer expected, ms
	// deleted counts deletes that may have ended the leases of other clients. Each client deletes once. So if the first
	// delete after an expiry is that of the expired lease's client, it ends the lease of the next holder. That holder's
	// own delete then ends the lease of the holder after it, and so on, until a delete finds no lock.
	deleted int64
}

const mostLost = 8 // leases of a key

// try is a client's attempt to take a lock.
type try struct {
	owner, from mark
	at, until   int64
	hash, bare  bool
}

// advance ends the lease if its TTL has expired at the instant at. Like Redis, it keeps the lease until the end of the
// millisecond in which the TTL expires.
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

// expire ends a lease whose TTL has ended. If the holder had shortened the TTL, the end counts as a release.
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

// countExpiry counts the current lease as ended by its TTL.
func (l *lock) countExpiry() {
	l.Expired++
	if l.lease.renewed {
		l.RenewalsStopped++
	}
}

// emptied ends the lease because all keys of the database were deleted, as between two test cases. This is no fault.
func (l *lock) emptied(at int64) {
	if l.advance(at); l.held {
		l.finish(at)
	}
	l.known, l.freed, l.lost, l.looked = true, at, nil, 0
}

// lose stores the current lease as lost, because its client does not know of the loss and will still release it.
// deleted is the count of the previous lost lease in the same chain of deletes.
func (l *lock) lose(at, deleted int64) {
	ttl := int64(0)
	if l.lease.until > 0 {
		ttl = max(0, l.lease.until-l.lease.at/1000)
	}
	// The client may have crashed. Its release is no longer expected after ten times the lease's TTL.
	const patience = 10 // TTLs
	l.lost = append(l.lost, lost{l.lease.owner, l.lease.from, at/1000 + patience*max(ttl, 1000), deleted})
	if len(l.lost) > mostLost {
		l.lost = slices.Delete(l.lost, 0, 1)
	}
}

// finish ends and counts the current lease.
func (l *lock) finish(at int64) {
	if l.lease.until == 0 {
		l.WithoutTTL++
	}
	l.holds.end(at - l.lease.at)
	l.addArrival(arrival{
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

// refuse counts a try that did not take the lock. It stores a new waiter only if room is true.
func (l *lock) refuse(t try, room bool) {
	l.Tries++
	w := l.waiters[t.owner]
	switch {
	case w != nil:
		l.countRetry(w, t.at)
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

// soon is the assumed longest pause of a polling client, in µs. A waiter counts as the user of its connection for this
// long after its last try.
const soon = int64(time.Second / time.Microsecond)

// countRetry counts another try of a waiter. After a pause longer than soon, the try may belong to a new wait.
func (l *lock) countRetry(w *waiter, at int64) {
	if at-w.last <= soon {
		l.again++
	}
	if w.tries == 1 {
		l.continued++
	}
	l.pauses.add(at - w.last)
}

// shares reports whether another waiter recently used the connection of the try t, so that connections do not identify
// clients. If there are more than 64 waiters, it checks only one of them.
func (l *lock) shares(t try) bool {
	const most = 64
	for owner, w := range l.waiters {
		if same := owner != t.owner && w.from == t.from && w.last > t.at-soon; same || len(l.waiters) > most {
			return same
		}
	}
	return false
}

// grant counts a try that took the lock, and begins its lease. The time since the last lease is a gap only if the
// client of this try was already waiting when that lease ended.
func (l *lock) grant(t try) {
	l.Tries++
	if w := l.waiters[t.owner]; w != nil {
		l.countRetry(w, t.at)
		l.pooled = l.pooled || w.from != t.from && t.bare
		if l.freed > w.first {
			l.gaps.end(t.at - l.freed)
		}
	}
	l.begin(t)
}

// begin begins and counts a lease, and ends the wait of its owner.
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

// values are the marks of a script's arguments.
type values []mark

func (v values) has(m mark) bool { return m != 0 && slices.Contains(v, m) }

// proveBy makes a waiter the holder, if it is the only waiter whose value is among the arguments of a script that only
// a holder calls. An argument equal to the mark in but does not count.
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

// proveFrom handles a command that only a holder sends, but without the holder's value. It makes a waiter the holder if
// it is the only waiter on the connection from, or the only waiter at all. This is less certain than proveBy, because
// several waiters may share a connection.
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

// mostCompared is the largest number of waiters that proveFrom and waitsBy compare with a connection. This limit bounds
// the time of both functions.
const mostCompared = 1000

// prove makes the waiter with the value owner the holder, because that waiter has sent a command that only a holder
// sends. Its lease begins with its last try.
func (l *lock) prove(owner mark) {
	w := l.waiters[owner]
	switch {
	case !l.held:
	case l.lease.guessed: // proveFrom found the wrong owner of this lease
		l.waiters[l.lease.owner] = &waiter{first: l.lease.at, last: l.lease.at, from: l.lease.from, tries: 1}
		delete(l.waiters, owner)
		l.pooled = true
		l.lease.owner, l.lease.from, l.lease.guessed = owner, w.from, false
		return
	default: // the end of the current lease did not appear in the stream
		if l.lease.until > 0 {
			l.countExpiry()
			l.lose(w.last, 0)
		}
		l.finish(max(w.last, l.lease.at))
	}
	l.begin(try{owner: owner, from: w.from, at: w.last, until: w.until})
}

// handleTry handles a try that takes the lock if the lock is free. A bare SET NX with the holder's value comes from
// another client with the same value, because a holder does not try again.
func (l *lock) handleTry(t try, room bool) {
	l.advance(t.at)
	switch {
	case !l.known:
		// Clients use similar TTLs, so a lease from before the capture ends before the TTL that this try would have set.
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

// takes handles a script that gave the lock to t.owner. If the previous owner is among the script's arguments, the
// script was its release, which handed the lock over.
func (l *lock) takes(t try, args values) {
	l.advance(t.at)
	if !l.known { // the arguments of a script that hands the lock over contain the previous owner
		l.proveBy(args, t.owner)
	}
	switch {
	case !l.held:
	case l.lease.owner == t.owner: // the holder acquires its reentrant lock again
		l.Tries++
		l.lease.until = max(l.lease.until, t.until)
		return
	case args.has(l.lease.owner):
		l.compared++
		l.release(t.at)
	// advance keeps a lease in the last millisecond of its TTL, but the script found the lock free.
	case l.lease.until > 0 && t.at/1000 >= l.lease.until:
		l.expire(t.at)
	default: // the delete did not appear in the stream, for example an eviction
		l.finish(t.at)
	}
	if !args.has(t.owner) { // another client's script handed it the lock, so this is not a try
		l.Tries--
	}
	l.grant(t)
}

// overwritten handles a SET without NX. Such a SET is a fault if it replaced the lease of another client.
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

// freedBy handles a script that compared the owner with an argument and then deleted the lock. The comparison shows
// that the argument was the holder's value, even if the capture contains no try of the holder.
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

// idle counts a release that released nothing: as late if it belongs to a lost lease, and as idle if it does not.
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

// deleted handles a delete without a compare in the same step. Only the connection shows which client sent it. Without
// a lease, the delete is the late release of a lost lease, a delete of a free lock, or the release of a lease from
// before the capture. During a lease, the delete is the holder's release, or was sent by another or an unknown client.
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
	// A delete in a transaction that watches the key is safe, because the client compares the owner before it.
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
	// A client that lost a lease or waits is not the holder. If most releases compare, a plain DEL is not a release.
	case !l.pooled && (own >= 0 || l.waitsBy(from) || l.compared > l.plain):
		l.byOthers++
		if own >= 0 {
			l.LateReleases++
			l.lost = slices.Delete(l.lost, own, own+1)
		}
		l.lose(at, 0)
		l.release(at)
	case len(l.lost) > 0: // it is not known which client sent it
		past := l.lost[0]
		l.lost = slices.Delete(l.lost, 0, 1)
		l.lose(at, past.deleted+1)
		l.lost[len(l.lost)-1].forgotten = max(past.forgotten, l.lost[len(l.lost)-1].forgotten)
		l.release(at)
	default:
		l.release(at)
	}
}

// waitsBy reports whether a waiter sent its last try over this connection.
func (l *lock) waitsBy(from mark) bool {
	for _, w := range l.waiters {
		if w.from == from || len(l.waiters) > mostCompared {
			return w.from == from
		}
	}
	return false
}

// renewed handles a command that changes the end of a lease. args are the script's arguments; nil without a script.
func (l *lock) renewed(s step, at int64, from mark, args values) {
	l.advance(at)
	if !l.known {
		if args != nil {
			l.proveBy(args, 0)
		} else {
			l.proveFrom(from)
		}
	}
	// An EXPIRE with an invalid TTL returned an error, and without a holder there is nothing to renew.
	if !l.held || s.ttl == 0 && s.word == expire {
		return
	}
	endless := l.lease.until == 0
	switch {
	case s.word == expire && s.without(l.lease.until):
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
	longer := s.ttl >= l.lease.until // a renewal within the same millisecond leaves it equal
	if longer {
		l.leased(s.ttl - at/1000)
	}
	l.lease.renewed = l.lease.renewed || longer
	l.lease.early = false // only a holder renews, so Redis did not refuse its try
	l.lease.leaving = s.word == setXX && !longer
	l.lease.until = s.ttl
}

// isRead counts a client's read of the key. During a lease, the read may be the first half of a release by GET and DEL.
func (l *lock) isRead(at int64) {
	if l.advance(at); l.held {
		l.looked++
	} else {
		l.read++
	}
}

// patience returns the p99 of the pauses between successive tries, in µs, or soon if there are too few pauses.
func (l *lock) patience() int64 {
	const enough = 20
	pauses := l.pauses.histogram()
	if pauses.TotalCount() < enough {
		return soon
	}
	return results.Estimate(results.Observations{Ended: pauses}, nil).Quantile(0.99).NS / 1000
}

// quiet returns how long, in µs, a waiter may send no try before it counts as having given up.
func (l *lock) quiet() int64 {
	const times = 4
	if p := l.patience(); p < soon {
		return times * p
	}
	return soon
}

// giveUp ends the waits of clients that have stopped trying, and returns their number.
func (l *lock) giveUp(at int64) (forgotten int) {
	if len(l.waiters) == 0 {
		return 0
	}
	quiet := l.quiet()
	for owner, w := range l.waiters {
		if at-w.last <= quiet {
			continue
		}
		l.addArrival(arrival{at: w.first, end: w.last, hold: -1, once: w.tries == 1, owner: owner})
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
		l.addArrival(arrival{at: l.lease.asked, end: at, hold: -1, owner: l.lease.owner, granted: l.lease.at})
		l.heldUS += at - l.lease.at
		l.held = false
	}
	if !l.pooled {
		l.OthersDeleted += l.byOthers
	}
	l.byOthers = 0
	l.giveUp(at)
	// If many values were tried only once, the library uses a new value after its first try. An open wait with a single
	// try then belongs to a client that is counted under its next value.
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
		l.addArrival(arrival{at: w.first, end: at, hold: -1, once: w.tries == 1, owner: owner})
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
