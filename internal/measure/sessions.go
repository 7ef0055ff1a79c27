package measure

import (
	"errors"

	"github.com/lockbench/lockbench/strategies"
)

// unsettled is a possible breach of a lock whose leases last as long as their holders' sessions: two leases that
// overlap, or a token smaller than an earlier one. Only the release of a lease shows whether the holder's session had
// ended before. If one of the two sessions had ended, its client used the lock for longer than the lease lasted, and
// the lock kept its claim.
type unsettled struct {
	first, second *Waiter // the holders whose releases are pending; nil after a release has found its lease
	token         bool    // the case is a token, not an overlap
	from          int64
	end           int64 // of the overlap; forever while it continues
}

// releaseVerdict records whether the release of a lease found that it was still held.
type releaseVerdict int

const (
	nothing releaseVerdict = iota
	held
	ended
)

// BySession declares that a lease lasts as long as its holder's session, which may be shorter or longer than the TTL.
// Overlaps are then settled by the outcomes of releases, which Settle records. Call BySession before any Enter. It has
// no effect unless the capacity is 1.
func (k *Key) BySession() { k.session = k.capacity == 1 }

// admitSession adds a holder whose lease lasts as long as a session. It records an overlap with each other holder.
// Without other holders, it records an overlap with a client that acquired and released the lock between the grant of
// this lease and the call of Enter. If the reported validity of the two leases rules the overlap out, the case counts
// as an expired lease.
func (k *Key) admitSession(h holder) {
	clock := k.window.Clock
	meet := func(other holder) bool { return max(h.granted, other.granted) < min(h.end(clock), other.end(clock)) }
	others := k.holders[:len(k.holders)-1]
	for _, other := range others {
		if meet(other) {
			k.unsettled = append(k.unsettled, unsettled{other.waiter, h.waiter, false, h.granted, forever})
			continue
		}
		k.safety.ExpiredOverlaps++
		k.become(expired, h.granted)
	}
	missed := k.lastReleased.released - h.granted
	if len(others) > 0 || missed <= 0 {
		return
	}
	u := unsettled{k.lastReleased.waiter, h.waiter, false, h.granted, k.lastReleased.released}
	if k.lastReleased.release == held {
		u.first = nil
	}
	if k.lastReleased.release == ended || !meet(k.lastReleased) {
		k.conclude(u, false)
		return
	}
	k.unsettled = append(k.unsettled, u)
}

// left records that a client has stopped holding the key.
func (k *Key) left(w *Waiter, now int64) {
	for i := range k.unsettled {
		if u := &k.unsettled[i]; u.end == forever && (u.first == w || u.second == w) {
			u.end = now
		}
	}
}

// Settle records the outcome of the release of a client's last lease. It determines, as far as possible, whether the
// client held the lock until that release.
func (k *Key) Settle(w *Waiter, lease strategies.Lease, release error) {
	if !k.session {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settle(w, stillHeld(lease, release))
}

func (k *Key) settle(w *Waiter, was bool) {
	if k.lastReleased.waiter == w {
		k.lastReleased.release = ended
		if was {
			k.lastReleased.release = held
		}
	}
	open := k.unsettled[:0]
	for _, u := range k.unsettled {
		switch w {
		case u.first:
			u.first = nil
		case u.second:
			u.second = nil
		default:
			open = append(open, u)
			continue
		}
		switch {
		case !was:
			k.conclude(u, false)
		case u.first == nil && u.second == nil:
			k.conclude(u, true)
		default:
			open = append(open, u)
		}
	}
	k.unsettled = open
}

// conclude counts an unsettled case as a breach or as an expired lease once its outcome is known.
func (k *Key) conclude(u unsettled, breach bool) {
	if u.end == forever {
		u.end = k.window.Clock.Now()
	}
	length := max(0, u.end-u.from)
	switch {
	case u.token && breach:
		k.safety.FencingRegression++
	case u.token:
	case breach:
		k.safety.Overlaps++
		k.safety.OverlapNS += length
	default:
		k.safety.ExpiredOverlaps++
		k.safety.ExpiredOverlapNS += length
	}
}

// stillHeld reports whether a lease was held until its release. A lease whose release failed with an error other than
// ErrNotHeld counts as held, unless it is Watched and reports its loss.
func stillHeld(lease strategies.Lease, release error) bool {
	switch {
	case release == nil:
		return true
	case errors.Is(release, strategies.ErrNotHeld):
		return false
	}
	watched, ok := strategies.As[strategies.Watched](lease)
	if !ok {
		return true
	}
	select {
	case <-watched.Lost():
		return false
	default:
		return true
	}
}
