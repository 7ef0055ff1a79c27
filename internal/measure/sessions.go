package measure

import (
	"errors"

	"github.com/lockbench/lockbench/strategies"
)

// unsettled is an overlap of two leases, or a token smaller than an earlier one, of a lock whose leases last as long as
// their holders' sessions. Only the release of a lease shows whether the holder's session had ended before. If one of
// the two sessions had ended, that client held the lock for longer than its lease, and the lock kept its claim.
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

// BySession declares that a lease lasts as long as its holder's session, which may be shorter or longer than the TTL;
// see Settle. Call it before any Enter.
func (k *Key) BySession() { k.session = k.capacity == 1 }

// admitSession adds a holder whose lease lasts as long as a session. The other holders overlap it, as does a client
// that acquired and released the lock between the grant of this lease and the call of Enter. They do not if the
// reported validity of the leases rules the overlap out.
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
	missed := k.gone.released - h.granted
	if len(others) > 0 || missed <= 0 {
		return
	}
	u := unsettled{k.gone.waiter, h.waiter, false, h.granted, k.gone.released}
	if k.gone.release == held {
		u.first = nil
	}
	if k.gone.release == ended || !meet(k.gone) {
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
// client held the lock until then.
func (k *Key) Settle(w *Waiter, lease strategies.Lease, release error) {
	if !k.session {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settle(w, stillHeld(lease, release))
}

func (k *Key) settle(w *Waiter, was bool) {
	if k.gone.waiter == w {
		k.gone.release = ended
		if was {
			k.gone.release = held
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

// conclude counts an unsettled case once its outcome is known: as a breach or as an expired lease.
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

// stillHeld reports whether a lease was held until its release. If the release failed, a Watched lease may report that
// it was lost; otherwise it counts as held.
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
