package measure

import (
	"math"
	"sync"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// Key watches the waiters and holders of one key from the clients' side. It sees a lease from the return of Acquire to
// the call of Release. The lock is held for at least that long, so every overlap that Key sees is real.
type Key struct {
	window   *Window
	capacity int           // 0 is unlimited
	ttl      time.Duration // for leases that do not say how long they are valid
	session  bool          // leases are their holders' sessions
	leases   *Leases       // nil if they are not recorded
	number   int           // of the key, in leases

	mu       sync.Mutex
	arrivals arrivals
	owners   ownerSequence
	// start of the last release, if a client was waiting then and no client has got the key since; else none
	releasedAt int64
	freedAt    int64 // end of that release, once Freed has been called; else none
	holders    []holder
	gone       holder // the holder that released last
	taken      span   // by the leases that were released
	grants     int64
	opened     bool  // the waiters' bypasses count from the opening of the window
	closed     bool  // and to its end
	wanted     int64 // since when the key is free and a client waits for it; else none
	ungranted  int64 // how long in the window it was so before, since its last grant
	stall      int64 // the longest such time in the window
	passes     passes
	newest     holder // the holder with the largest token
	token      int64

	unsettled []unsettled // overlaps and tokens that wait for the outcome of releases

	state  overlap // the current state
	since  int64   // start of the state
	safety results.Safety
}

// holder is a lease that a client holds.
type holder struct {
	waiter   *Waiter
	granted  int64
	released int64             // forever while it is held
	until    int64             // until when it is valid for certain, unless timed says otherwise
	timed    strategies.Timed  // nil if the lease is not Timed
	fenced   strategies.Fenced // nil if it has no token
	release  releaseVerdict    // what its release showed
}

// end is the instant until which the lease lasted for certain: it was released, or its validity may have ended.
func (h holder) end(clock Clock) int64 {
	until := h.until
	if h.timed != nil {
		until = clock.At(h.timed.ValidUntil())
	}
	return min(until, h.released)
}

// overlap describes the number of holders.
type overlap int

const (
	exclusive   overlap = iota // no more holders than the capacity
	expired                    // more, but the leases of some had run out
	overlapping                // more, and all leases are valid
)

const (
	none    = -1
	forever = math.MaxInt64
)

// NewKey watches a key that at most capacity clients may hold at a time; 0 means any
// number. It follows which of the clients reacquire it, unless clients is 0.
func NewKey(window *Window, capacity int, ttl time.Duration, clients int) *Key {
	return &Key{
		window: window, capacity: capacity, ttl: ttl, owners: newOwnerSequence(clients),
		releasedAt: none, freedAt: none, wanted: none, gone: holder{released: none}, taken: span{none, none},
	}
}

// Arrive notes a client that asks at the instant now and has been waiting since the instant
// since, which is earlier in an open loop without a free client.
func (k *Key) Arrive(w *Waiter, since, now int64) {
	k.mu.Lock()
	k.arrivals.arrive(w, since, k.grants)
	w.asked = now
	if k.wanted == none {
		k.stand(now)
	}
	k.mu.Unlock()
}

// stand adds up the time in which the key was free and clients waited. Call it whenever one of the two may change.
func (k *Key) stand(now int64) {
	if k.wanted != none {
		k.ungranted += k.window.clip(k.wanted, now, k.window.End())
		k.stall = max(k.stall, k.ungranted)
	}
	k.wanted = none
	if k.arrivals.waiting > 0 && (k.capacity == 0 || len(k.holders) < k.capacity) {
		k.wanted = now
	}
}

// Stall returns the longest time in the window in which one of the keys was free, clients
// waited for it, and none got it. Call it when all waits have ended.
func Stall(keys []*Key) int64 {
	var longest int64
	for _, k := range keys {
		k.mu.Lock()
		longest = max(longest, k.stall)
		k.mu.Unlock()
	}
	return longest
}

// bypasses restarts the count of bypasses when the window opens, and stops it when the window closes: waits may end
// later, and the clients of a driver go on for a while.
func (k *Key) bypasses(now int64) {
	if !k.opened && now >= k.window.Open {
		k.opened = true
		k.arrivals.rebase(k.grants)
	}
	if !k.closed && now >= k.window.End() {
		k.closed = true
		k.arrivals.settle(k.grants)
	}
}

// Leave notes a client that stops waiting without a lease, at the instant now. It returns how
// many later arrivals got the lock while it waited, in the window if that is open.
func (k *Key) Leave(w *Waiter, now int64) (bypassed int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bypasses(now)
	bypassed = k.arrivals.bypassed(w, k.arrivals.before(w), k.grants)
	k.arrivals.withdraw(w)
	if k.arrivals.waiting == 0 {
		k.stand(now)
		k.releasedAt, k.freedAt = none, none // a client that comes later is not waiting for this release
	}
	return bypassed
}

// Grant is what one lease shows about the order of the grants.
type Grant struct {
	// Handoff is the time since the start of the last release; negative if no client was
	// waiting then, or too many still hold the lock.
	Handoff           int64
	Overtaken         bool  // an earlier arrival was still waiting
	Bypassed          int64 // later arrivals that got the lock while this one waited, in the window if that is open
	ReacquireDistance int64 // grants since this client's last one, itself included; 0 if there was none
	// Idle is the time since Freed was called; negative if it was not, or if Handoff is.
	Idle int64
}

// Enter notes a waiting client's lease, which the client has held since the instant now.
//
// Clients call Enter in any order: one may not have run since its Acquire returned, while
// others got the lock and released it. So Enter uses the instants of the leases.
func (k *Key) Enter(w *Waiter, now int64, lease strategies.Lease) Grant {
	timed, fenced := capabilities(lease)
	h := holder{waiter: w, granted: now, released: forever, until: forever, timed: timed, fenced: fenced}

	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.session && timed == nil {
		h.until = k.earliest(w, now) + int64(k.ttl)
	}
	k.bypasses(now)
	before := k.arrivals.before(w)
	grant := Grant{Handoff: none, Idle: none, Overtaken: before > 0, Bypassed: k.arrivals.bypassed(w, before, k.grants)}
	k.arrivals.remove(w)
	k.grants++
	grant.ReacquireDistance = k.owners.take(w.client, k.grants, k.window.Contains(now))
	k.passes.take(w.client, k.window.Contains(now))
	if k.releasedAt != none && now >= k.releasedAt && (k.capacity == 0 || len(k.holders) < k.capacity) {
		grant.Handoff = now - k.releasedAt
		if k.freedAt != none {
			grant.Idle = now - k.freedAt
		}
	}
	k.releasedAt, k.freedAt = none, none
	k.admit(h)
	k.stand(now)
	k.ungranted = 0
	if fenced != nil {
		k.fence(h, fenced.FencingToken())
	}
	return grant
}

// earliest returns the earliest instant at which the server can have granted the lease that Acquire returned at the
// instant now: usually the call of Acquire. A lease that does not report its validity counts for its TTL from then on,
// so that no lease that may have expired counts as valid.
//
// If clients wait for longer than a TTL, this bound proves little. But a correct lock with one permit grants no lease
// that overlaps a lease that is valid for certain. So earliest takes the end of the certain leases: if the lock did
// grant the lease earlier, the overlap with those leases is the breach.
func (k *Key) earliest(w *Waiter, now int64) int64 {
	if k.capacity != 1 {
		return w.asked
	}
	taken := k.taken
	for _, h := range k.holders {
		taken = taken.with(h.granted, min(now, h.end(k.window.Clock)), k.ttl)
	}
	if w.asked <= taken.from {
		return w.asked
	}
	return max(w.asked, min(now, taken.until))
}

// span is a time in which no lease of a TTL can begin without overlapping another.
type span struct{ from, until int64 }

// with adds a lease that was valid for certain between two instants; until may be before from. A span that ended before
// is dropped.
func (s span) with(from, until int64, ttl time.Duration) span {
	switch begins := from - int64(ttl); {
	case until <= from:
		return s
	case begins >= s.until:
		return span{begins, until}
	}
	return span{s.from, max(s.until, until)}
}

// capabilities returns the interfaces of a lease that the audit needs. It avoids strategies.As for the leases that are
// not wrappers, because a type assertion is cheaper.
func capabilities(lease strategies.Lease) (strategies.Timed, strategies.Fenced) {
	timed, _ := lease.(strategies.Timed)
	fenced, _ := lease.(strategies.Fenced)
	if _, wraps := lease.(interface{ Unwrap() strategies.Lease }); wraps {
		timed, _ = strategies.As[strategies.Timed](lease)
		fenced, _ = strategies.As[strategies.Fenced](lease)
	}
	return timed, fenced
}

// admit adds a holder, and records an overlap if there are too many.
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
		// Another client got and released the lock between this lease's grant and now.
		if k.crowded(h, k.gone) {
			k.safety.Overlaps++
			k.safety.OverlapNS += missed
		} else {
			k.safety.ExpiredOverlaps++
			k.safety.ExpiredOverlapNS += missed
		}
	}
}

// crowded reports whether, at some instant, the newcomer's lease and as many other leases as the capacity were valid.
// It checks the holders, and others that have already released.
func (k *Key) crowded(newcomer holder, others ...holder) bool {
	clock := k.window.Clock
	end := newcomer.end(clock)
	valid := 1
	for _, held := range [][]holder{k.holders[:len(k.holders)-1], others} {
		for _, h := range held {
			// With more than one permit, two leases may both overlap the newcomer's and not each
			// other. Then the instant of the newcomer's own grant decides.
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

// fence notes a holder's token. A token that is not larger than an earlier lease's is a
// regression, unless this lease may have run out before the other was granted: then Enter was
// only called late.
func (k *Key) fence(h holder, token int64) {
	k.safety.FencedLeases++
	switch {
	case k.safety.FencedLeases == 1 || token > k.token:
		k.token, k.newest = token, h
	case token != k.token && h.end(k.window.Clock) <= k.newest.granted:
	case k.session && token != k.token:
		k.unsettled = append(k.unsettled, unsettled{second: h.waiter, token: true})
	default:
		k.safety.FencingRegression++
	}
}

// become changes the state and accounts for the time spent in the previous one.
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
	k.follow(k.gone)
	if k.arrivals.waiting > 0 {
		k.releasedAt = now
	}
	k.stand(now)
}

// Freed notes that a client's release has succeeded, at the instant now.
func (k *Key) Freed(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.releasedAt != none && len(k.holders) < max(k.capacity, 1) {
		k.freedAt = max(now, k.releasedAt)
	}
}

// Idle returns how long the key has been free while clients wait that were already waiting
// at its release; negative if there are none.
func (k *Key) Idle(now int64) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.freedAt == none || k.arrivals.waiting == 0 {
		return none
	}
	return now - k.freedAt
}

// Vanish notes that a holder died at the instant now, without a release.
func (k *Key) Vanish(w *Waiter, now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(w, now)
	k.stand(now)
	k.settle(w, true) // its lease counts as held: no release can disprove it
}

func (k *Key) remove(w *Waiter, now int64) {
	k.left(w, now)
	last := len(k.holders) - 1
	k.gone = k.holders[w.place]
	k.gone.released = now
	k.taken = k.taken.with(k.gone.granted, k.gone.end(k.window.Clock), k.ttl)
	k.holders[w.place] = k.holders[last]
	k.holders[w.place].waiter.place = w.place
	k.holders[last] = holder{}
	k.holders = k.holders[:last]
	if k.state != exclusive && len(k.holders) <= k.capacity {
		k.become(exclusive, now)
	}
	k.releasedAt, k.freedAt = none, none
}

// Lost notes a release that found that its lease had ended.
func (k *Key) Lost() {
	k.mu.Lock()
	k.safety.LostLeases++
	k.mu.Unlock()
}

// Grants returns the number of leases so far.
func (k *Key) Grants() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.grants
}

// Seen sums up the certain breaches so far on all keys. Cases that depend on the outcome of a release do not count yet.
func Seen(keys []*Key) results.Safety {
	var seen results.Safety
	for _, k := range keys {
		k.mu.Lock()
		seen = seen.Plus(k.safety)
		k.mu.Unlock()
	}
	return seen
}

// Audit sums up the breaches on all keys after the last release. An undecided case that no release has proved harmless
// counts as a breach.
func Audit(keys []*Key) results.Safety {
	for _, k := range keys {
		k.mu.Lock()
		for _, u := range k.unsettled {
			k.conclude(u, true)
		}
		k.unsettled = nil
		k.mu.Unlock()
	}
	return Seen(keys)
}
