package measure

import (
	"math"
	"sync"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// Key watches one key from the clients' side: who waits, who holds. It sees a
// lease from the return of Acquire to the call of Release, a part of the time
// for which the lock was really held, so that what it calls an overlap is one.
type Key struct {
	window   *Window
	capacity int           // 0 is unlimited
	ttl      time.Duration // for leases that do not know how long they are valid
	session  bool          // leases are their holders' sessions

	mu         sync.Mutex
	arrivals   arrivals
	owners     ownerSequence
	releasedAt int64 // start of the last release if somebody was waiting then and nobody has got the key since; else none
	freedAt    int64 // end of that release, once Freed has been called; else none
	holders    []holder
	gone       holder // the holder that released last
	grants     int64
	newest     holder // whose token is the largest
	token      int64

	unsettled []unsettled // what releases have not told yet

	state  overlap // now
	since  int64   // of the state
	safety results.Safety
}

// holder is a lease in a client's hands.
type holder struct {
	waiter   *Waiter
	granted  int64
	released int64            // forever while it is held
	until    int64            // valid, unless timed knows better
	timed    strategies.Timed // nil if the lease is not
	told     told             // by its release
}

// end is when it ended: it was given up, or it was valid no longer.
func (h holder) end(clock Clock) int64 {
	until := h.until
	if h.timed != nil {
		until = clock.At(h.timed.ValidUntil())
	}
	return min(until, h.released)
}

// overlap is what can be said of the number of holders.
type overlap int

const (
	exclusive   overlap = iota // no more than the capacity
	expired                    // more, but then some had outstayed their leases
	overlapping                // more, all with valid leases
)

const (
	none    = -1
	forever = math.MaxInt64
)

// NewKey watches a key that so many may hold at a time. Who of the clients
// comes back when is followed too, unless clients is 0.
func NewKey(window *Window, capacity int, ttl time.Duration, clients int) *Key {
	return &Key{window: window, capacity: capacity, ttl: ttl, owners: newOwnerSequence(clients), releasedAt: none, freedAt: none, gone: holder{released: none}}
}

// Arrive notes a client that has been waiting since an instant.
func (k *Key) Arrive(w *Waiter, since int64) {
	k.mu.Lock()
	k.arrivals.arrive(w, since, k.grants)
	k.mu.Unlock()
}

// Leave notes a client that waits no longer and holds nothing. It returns how
// many later arrivals got the lock while it waited.
func (k *Key) Leave(w *Waiter) (bypassed int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	bypassed = k.arrivals.bypassed(w, k.arrivals.before(w), k.grants)
	w.inVain(k.grants)
	k.arrivals.withdraw(w)
	if k.arrivals.waiting == 0 {
		k.releasedAt, k.freedAt = none, none // whoever comes next has not been kept waiting
	}
	return bypassed
}

// Grant is what one lease tells of the order of things.
type Grant struct {
	// Handoff is the time since the start of the last release, negative if nobody
	// was waiting then or too many hold the lock still.
	Handoff           int64
	Overtaken         bool  // an earlier arrival was still waiting
	Bypassed          int64 // later arrivals that got the lock while this one waited
	ReacquireDistance int64 // grants since this client's last one, itself included; 0 if there was none
	// Idle is the time since Freed was called, negative where Handoff is or it was not.
	Idle int64
}

// Enter notes a waiting client's lease, in hand since the instant now.
//
// Clients come here in any order: one may have been kept from running since its
// Acquire returned, while others got the lock and gave it up. What counts is the
// leases' own instants.
func (k *Key) Enter(w *Waiter, now int64, lease strategies.Lease) Grant {
	timed, fenced := capabilities(lease)
	h := holder{waiter: w, granted: now, released: forever, until: now + int64(k.ttl), timed: timed}
	if k.session {
		h.until = forever
	}

	k.mu.Lock()
	defer k.mu.Unlock()
	before := k.arrivals.before(w)
	grant := Grant{Handoff: none, Idle: none, Overtaken: before > 0, Bypassed: k.arrivals.bypassed(w, before, k.grants)}
	k.arrivals.remove(w)
	w.vain = 0
	if now >= k.window.End() { // too late to be an acquisition in the window
		w.inVain(k.grants)
	}
	k.grants++
	grant.ReacquireDistance = k.owners.take(w.client, k.grants, k.window.Contains(now))
	if k.releasedAt != none && now >= k.releasedAt && (k.capacity == 0 || len(k.holders) < k.capacity) {
		grant.Handoff = now - k.releasedAt
		if k.freedAt != none {
			grant.Idle = now - k.freedAt
		}
	}
	k.releasedAt, k.freedAt = none, none
	k.admit(h)
	if fenced != nil {
		k.fence(h, fenced.FencingToken())
	}
	return grant
}

// capabilities are what the audit looks for in each lease. Few are wrappers, and an assertion
// costs less than strategies.As.
func capabilities(lease strategies.Lease) (strategies.Timed, strategies.Fenced) {
	timed, _ := lease.(strategies.Timed)
	fenced, _ := lease.(strategies.Fenced)
	if _, wraps := lease.(interface{ Unwrap() strategies.Lease }); wraps {
		timed, _ = strategies.As[strategies.Timed](lease)
		fenced, _ = strategies.As[strategies.Fenced](lease)
	}
	return timed, fenced
}

// admit takes a holder in and notes whether there is one too many with it.
func (k *Key) admit(h holder) {
	h.waiter.place = len(k.holders)
	k.holders = append(k.holders, h)
	k.safety.MaxHolders = max(k.safety.MaxHolders, len(k.holders))
	if k.session {
		k.admitSession(h)
		return
	}
	if k.capacity == 0 {
		return
	}
	switch missed := k.gone.released - h.granted; {
	case len(k.holders) > k.capacity:
		if k.crowded(h) {
			k.safety.Overlaps++
			k.become(overlapping, h.granted)
		} else {
			k.safety.ExpiredOverlaps++
			k.become(max(expired, k.state), h.granted)
		}
	case len(k.holders) == k.capacity && missed > 0:
		// Somebody came and went between this lease's grant and now.
		if k.crowded(h, k.gone) {
			k.safety.Overlaps++
			k.safety.OverlapNS += missed
		} else {
			k.safety.ExpiredOverlaps++
			k.safety.ExpiredOverlapNS += missed
		}
	}
}

// crowded says whether at some instant more leases than there may be were valid,
// the newcomer's among them. Besides the holders it looks at others that have
// gone.
func (k *Key) crowded(newcomer holder, others ...holder) bool {
	clock := k.window.Clock
	end := newcomer.end(clock)
	valid := 1
	for _, held := range [][]holder{k.holders[:len(k.holders)-1], others} {
		for _, h := range held {
			// With more than one permit leases that touch the newcomer's need not touch
			// each other; but then its own instant, when it was let in, decides.
			from := max(newcomer.granted, h.granted)
			if k.capacity > 1 {
				from = newcomer.granted
			}
			if h.granted <= from && from < min(end, h.end(clock)) {
				valid++
			}
			if valid > k.capacity {
				return true
			}
		}
	}
	return false
}

// fence notes a holder's token. One that is not larger than an earlier lease's is
// a regression, unless this lease had run out before the other was granted: then
// it is only late in coming here.
func (k *Key) fence(h holder, token int64) {
	k.safety.FencedLeases++
	switch {
	case k.safety.FencedLeases == 1 || token > k.token:
		k.token, k.newest = token, h
	case token != k.token && h.end(k.window.Clock) <= k.newest.granted:
	case k.session && token != k.token:
		k.unsettled = append(k.unsettled, unsettled{newcomer: h.waiter, held: true, token: true})
	default:
		k.safety.FencingRegression++
	}
}

// become changes the state and accounts for the time spent in the last one.
func (k *Key) become(state overlap, now int64) {
	switch spent := max(0, now-k.since); k.state {
	case expired:
		k.safety.ExpiredOverlapNS += spent
	case overlapping:
		k.safety.OverlapNS += spent
	}
	k.state, k.since = state, now
}

// Exit notes that a client is about to release its lease, at the instant now.
func (k *Key) Exit(w *Waiter, now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(w, now)
	if k.arrivals.waiting > 0 {
		k.releasedAt = now
	}
}

// Freed notes that a client's release has succeeded, at the instant now.
func (k *Key) Freed(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.releasedAt != none && len(k.holders) < max(k.capacity, 1) {
		k.freedAt = max(now, k.releasedAt)
	}
}

// Idle is for how long the key has been free although somebody waits for it who
// did so when it was released; negative if that is not so.
func (k *Key) Idle(now int64) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.freedAt == none || k.arrivals.waiting == 0 {
		return none
	}
	return now - k.freedAt
}

// Vanish notes that a holder is no more, at the instant now, and has not released.
func (k *Key) Vanish(w *Waiter, now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(w, now)
	k.settle(w, true) // it held its lease, or who could tell
}

// remove takes a holder out.
func (k *Key) remove(w *Waiter, now int64) {
	k.left(w, now)
	last := len(k.holders) - 1
	k.gone = k.holders[w.place]
	k.gone.released = now
	k.holders[w.place] = k.holders[last]
	k.holders[w.place].waiter.place = w.place
	k.holders[last] = holder{}
	k.holders = k.holders[:last]
	if k.state != exclusive && len(k.holders) <= k.capacity {
		k.become(exclusive, now)
	}
	k.releasedAt, k.freedAt = none, none
}

// Lost notes a release that found its lease gone.
func (k *Key) Lost() {
	k.mu.Lock()
	k.safety.LostLeases++
	k.mu.Unlock()
}

// Grants is the number of leases so far.
func (k *Key) Grants() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.grants
}

// Audit sums up what was seen on all keys.
func Audit(keys []*Key) results.Safety {
	seen := make([]results.Safety, len(keys))
	for i, k := range keys {
		k.mu.Lock()
		for _, u := range k.unsettled { // nobody released what shows that it was none
			k.conclude(u, true)
		}
		k.unsettled = nil
		seen[i] = k.safety
		k.mu.Unlock()
	}
	return results.SumSafety(seen)
}
