package observe

import "time"

// This file corrects grants at the end of a TTL. A bare try shows no result, so a try after that end is taken for one
// that took the lock. But MONITOR can date a command after the end that Redis has executed before it, and refused.

// lag is how much later than the command MONITOR's time may be, in µs: Redis reads that clock when it has executed the
// command, and on a busy machine it stands still in between.
const lag = int64(100 * time.Millisecond / time.Microsecond)

// early reports whether Redis may have executed a try of that time before the TTL had ended, and refused it.
func (l *lock) early(at int64) bool { return l.freed == l.ranOut && at-l.ranOut <= lag }

const mostRivals = 16 // that are remembered

// refusedBefore corrects an early grant: its owner tries again, so Redis had refused the try before. The next try of
// another took the lock then, or this one.
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
	if room && l.waiters != nil { // it is nil if there was no room for the rival either
		l.waiters[t.owner] = &waiter{first: was.asked, last: was.at, until: was.until, from: was.from, tries: 1}
	}
	l.asks(t, room)
}
