package observe

import "time"

// This file corrects grants that seem to follow the end of a TTL. MONITOR does not show the reply to a SET NX outside a
// script, so the first SET NX after the end of the TTL counts as a grant. But the time that MONITOR shows for a command
// can be too late: Redis may have executed the SET NX before the end of the TTL, and refused it.

// lag is the largest delay in µs between the execution of a command and the time that MONITOR shows for it. Redis reads
// that time after the execution, and a busy machine can suspend Redis in between.
const lag = int64(100 * time.Millisecond / time.Microsecond)

// early reports whether Redis may have executed a try before the end of the TTL. at is the time that MONITOR shows for
// the try.
func (l *lock) early(at int64) bool { return l.freed == l.ranOut && at-l.ranOut <= lag }

const mostRivals = 16 // of one early grant

// refusedBefore corrects an early grant when its owner tries again, which shows that Redis refused the earlier try. The
// lease then belongs to the first rival. If there are no rivals, it belongs to the new try t.
func (l *lock) refusedBefore(t try, room bool) {
	was := l.lease
	if len(was.rivals) == 0 {
		l.Tries++
		l.waitedUS += t.at - was.at
		l.lease.at, l.lease.until, l.lease.early = t.at, t.until, l.early(t.at)
		return
	}
	next := was.rivals[0]
	l.lease = lease{
		owner: next.owner, from: next.from, asked: next.at, at: next.at, until: next.until,
		early: l.early(next.at), rivals: was.rivals[1:],
	}
	if w := l.waiters[next.owner]; w != nil {
		l.lease.asked = w.first
		delete(l.waiters, next.owner)
	}
	if room && l.waiters != nil { // nil if there was no room to store the rival as a waiter
		l.waiters[t.owner] = &waiter{first: was.asked, last: was.at, until: was.until, from: was.from, tries: 1}
	}
	l.handleTry(t, room)
}
