package measure

import (
	"errors"
	"slices"

	"github.com/lockbench/lockbench/strategies"
)

// unsettled is an overlap, or a token that went back, of leases that last as long as their
// holders' sessions. Whether a session had ended nobody can tell before its holder's release
// does: what is held longer than that is no breach of the lock's.
type unsettled struct {
	newcomer *Waiter   // nil once its release has found its lease
	others   []*Waiter // whose releases have not told yet
	held     bool      // one of the others has found its lease
	token    bool      // it is of a token
	inside   int       // of the others
	from     int64
	end      int64 // of the overlap; forever while it goes on
}

// told is what a release, which may be under way, has said of a lease.
type told int

const (
	nothing told = iota
	held
	ended
)

// BySession says that a lease lasts as long as its holder's session, be it longer or
// shorter than the TTL after it was granted: see Settle. It comes before any Enter.
func (k *Key) BySession() { k.session = k.capacity == 1 }

// admitSession takes a holder in whose lease is a session's.
func (k *Key) admitSession(h holder) {
	clock := k.window.Clock
	if last := len(k.holders) - 1; last > 0 {
		u := unsettled{newcomer: h.waiter, from: h.granted, end: forever}
		for _, other := range k.holders[:last] {
			if other.granted <= h.granted && h.granted < other.end(clock) || h.granted < other.granted && other.granted < h.end(clock) {
				u.others = append(u.others, other.waiter)
			}
		}
		u.inside = len(u.others)
		if u.inside == 0 { // they knew that they were over
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
	// Somebody came and went between this lease's grant and now.
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

// left notes that a holder is no longer one.
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

// Settle notes what the release of a client's last lease has told: whether that was held
// until then, as far as anybody can tell.
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

// conclude counts what is known now.
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

// stillHeld reads a release. One that failed tells nothing; then the lease may know.
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
