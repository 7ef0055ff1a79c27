package measure

import (
	"errors"
	"slices"

	"github.com/lockbench/lockbench/strategies"
)

// unsettled is an overlap, or a token that went back, of leases that last as long as their
// holders' sessions. Only a holder's release shows whether its session had ended. If it had,
// the client held for longer than its lease, and the lock broke no promise.
type unsettled struct {
	newcomer *Waiter   // nil once its release has found the lease
	others   []*Waiter // holders whose releases have no outcome yet
	held     bool      // the release of one of the others has found its lease
	token    bool      // it is about a token, not an overlap
	inside   int       // others that still hold
	from     int64
	end      int64 // of the overlap; forever while it continues
}

// told is the outcome of a lease's release.
type told int

const (
	nothing told = iota
	held
	ended
)

// BySession says that a lease lasts as long as its holder's session, which may be shorter or
// longer than the TTL: see Settle. Call it before any Enter.
func (k *Key) BySession() { k.session = k.capacity == 1 }

// admitSession adds a holder whose lease is a session's.
func (k *Key) admitSession(h holder) {
	clock := k.window.Clock
	if last := len(k.holders) - 1; last > 0 {
		u := unsettled{newcomer: h.waiter, from: h.granted, end: forever}
		for _, other := range k.holders[:last] {
			if other.granted <= h.granted && h.granted < other.end(clock) || h.granted < other.granted &&
				other.granted < h.end(clock) {
				u.others = append(u.others, other.waiter)
			}
		}
		u.inside = len(u.others)
		if u.inside == 0 { // the leases themselves say that they had ended
			k.safety.ExpiredOverlaps++
			k.become(expired, h.granted)
			return
		}
		k.unsettled = append(k.unsettled, u)
		return
	}
	missed := k.gone.released - h.granted
	if missed <= 0 {
		return
	}
	// Another client got and released the lock between this lease's grant and now.
	u := unsettled{newcomer: h.waiter, from: h.granted, end: k.gone.released, held: k.gone.told == held}
	if k.gone.told == nothing {
		u.others = []*Waiter{k.gone.waiter}
	}
	if k.gone.told == ended || min(h.end(clock), k.gone.end(clock)) <= max(h.granted, k.gone.granted) {
		k.safety.ExpiredOverlaps++
		k.safety.ExpiredOverlapNS += missed
		return
	}
	k.unsettled = append(k.unsettled, u)
}

// left notes that a client no longer holds.
func (k *Key) left(w *Waiter, now int64) {
	for i := range k.unsettled {
		u := &k.unsettled[i]
		if u.end != forever {
			continue
		}
		if slices.Contains(u.others, w) {
			u.inside--
		}
		if u.newcomer == w || u.inside == 0 {
			u.end = now
		}
	}
}

// Settle notes the outcome of the release of a client's last lease: whether the client held
// the lock until then, as far as can be known.
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
		k.gone.told = ended
		if was {
			k.gone.told = held
		}
	}
	open := k.unsettled[:0]
	for _, u := range k.unsettled {
		if u.newcomer == w && !was {
			k.conclude(u, false)
			continue
		}
		if u.newcomer == w {
			u.newcomer = nil
		}
		if at := slices.Index(u.others, w); at >= 0 {
			u.others = slices.Delete(u.others, at, at+1)
			u.held = u.held || was
		}
		switch {
		case u.newcomer == nil && u.held:
			k.conclude(u, true)
		case len(u.others) == 0 && !u.held:
			k.conclude(u, false)
		default:
			open = append(open, u)
		}
	}
	k.unsettled = open
}

// conclude counts an unsettled case whose outcome is known.
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

// stillHeld says whether a lease was held until its release. If the release failed, the lease
// itself may know.
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
