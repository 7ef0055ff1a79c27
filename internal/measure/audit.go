package measure

import (
	"math"
	"sync"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// Key audits one key from the clients' side. It records the waiters, the holders and the overlaps of holders. It counts
// a lease from the return of Acquire to the call of Release. The lock is held for at least that long, so every overlap
// that Key reports is real.
type Key struct {
	window   *Window
	capacity int           // 0 is unlimited
	ttl      time.Duration // validity of leases that do not report it
	session  bool          // a lease lasts as long as its holder's session
	leases   *Leases       // nil if they are not recorded
	number   int           // the key's number in leases

	mu       sync.Mutex
	arrivals arrivals
	owners   ownerSequence
	// releasedAt is the start of the last release if a client was waiting then and no client has acquired the key since;
	// else none.
	releasedAt   int64
	freedAt      int64 // end of that release, once Freed has been called; else none
	holders      []holder
	lastReleased holder // the holder that released last
	taken        span   // the time that released leases occupied for certain
	grants       int64
	opened       bool  // the window has opened: bypasses are counted from then on
	closed       bool  // the window has closed: bypasses are no longer counted
	wanted       int64 // the instant since which the key is free although a client waits; else none
	ungranted    int64 // total of earlier such times in the window since the last grant
	stall        int64 // the longest time in the window without a grant although the key was free and a client waited
	passes       passes
	newest       holder // the holder with the largest token
	token        int64

	unsettled []unsettled // overlaps and tokens that can be judged only after the releases

	state  overlap // the current kind of overlap
	since  int64   // start of the state
	safety results.Safety
}

// holder is a lease that a client holds.
type holder struct {
	waiter   *Waiter
	granted  int64
	released int64             // forever while the lease is held
	until    int64             // until when the lease is certainly valid, if timed is nil
	timed    strategies.Timed  // nil if the lease is not Timed
	fenced   strategies.Fenced // nil if the lease has no fencing token
	release  releaseVerdict    // whether its release found the lease
}

// end returns the instant until which the lease certainly lasted: its release or the end of its validity, whichever is
// earlier.
func (h holder) end(clock Clock) int64 {
	until := h.until
	if h.timed != nil {
		until = clock.At(h.timed.ValidUntil())
	}
	return min(until, h.released)
}

// overlap states whether the current holders of a key exceed its capacity.
type overlap int

const (
	exclusive   overlap = iota // at most as many holders as the capacity
	expired                    // more holders, but some of their leases had expired
	overlapping                // more holders with valid leases
)

const (
	none    = -1
	forever = math.MaxInt64
)

// NewKey returns the audit of a key that at most capacity clients may hold at the same time. A capacity of 0 means no
// limit. Unless clients is 0, the audit records how soon each client reacquires the key.
func NewKey(window *Window, capacity int, ttl time.Duration, clients int) *Key {
	return &Key{
		window: window, capacity: capacity, ttl: ttl, owners: newOwnerSequence(clients),
		releasedAt: none, freedAt: none, wanted: none, lastReleased: holder{released: none}, taken: span{none, none},
	}
}

// Arrive records that a client calls Acquire at the instant now. Its wait began at the instant since, which is earlier
// than now in an open loop if no client was free.
func (k *Key) Arrive(w *Waiter, since, now int64) {
	k.mu.Lock()
	k.arrivals.arrive(w, since, k.grants)
	w.asked = now
	if k.wanted == none {
		k.addIdleTime(now)
	}
	k.mu.Unlock()
}

// addIdleTime adds up the time in which the key was free although clients waited. It must be called whenever the
// holders or the waiters change.
func (k *Key) addIdleTime(now int64) {
	if k.wanted != none {
		k.ungranted += k.window.clip(k.wanted, now, k.window.End())
		k.stall = max(k.stall, k.ungranted)
	}
	k.wanted = none
	if k.arrivals.waiting > 0 && (k.capacity == 0 || len(k.holders) < k.capacity) {
		k.wanted = now
	}
}

// Stall returns, in nanoseconds, the longest time in the window for which one of the keys was free and clients waited
// for it, but none acquired it. Call Stall when all waits have ended.
func Stall(keys []*Key) int64 {
	var longest int64
	for _, k := range keys {
		k.mu.Lock()
		longest = max(longest, k.stall)
		k.mu.Unlock()
	}
	return longest
}

// bypasses restarts the count of bypasses when the window opens and stops it when the window closes, because some waits
// and the clients of a driver continue beyond the window.
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

// Leave records that a client stops waiting without a lease at the instant now. It returns how many later arrivals
// acquired the lock during the wait. Once the window has opened, only acquisitions in the window count.
func (k *Key) Leave(w *Waiter, now int64) (bypassed int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.bypasses(now)
	bypassed = k.arrivals.bypassed(w, k.arrivals.before(w), k.grants)
	k.arrivals.withdraw(w)
	if k.arrivals.waiting == 0 {
		k.addIdleTime(now)
		k.releasedAt, k.freedAt = none, none // a client that arrives later did not wait for this release
	}
	return bypassed
}

// Grant describes the position of one lease in the order of grants.
type Grant struct {
	// Handoff is the time in ns since the start of the last release. It is negative if no client was waiting at that
	// start, or if the remaining holders use up the capacity.
	Handoff           int64
	Overtaken         bool  // an earlier arrival was still waiting
	Bypassed          int64 // later arrivals that acquired the lock during this wait, as for Leave
	ReacquireDistance int64 // grants since this client's last one, this one included; 0 for its first
	// Idle is the time in ns since the call of Freed for the last release. It is negative if Freed was not called for that
	// release, or if Handoff is negative.
	Idle int64
}

// Enter records that a waiting client has a lease, which Acquire returned at the instant now.
//
// Calls of Enter may come out of order: a client's goroutine may be delayed after its Acquire returned while others
// acquire and release the lock. Therefore Enter compares the instants of the leases, not the order of calls.
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
	k.addIdleTime(now)
	k.ungranted = 0
	if fenced != nil {
		k.fence(h, fenced.FencingToken())
	}
	return grant
}

// earliest returns the earliest instant at which the server can have granted the lease that Acquire returned at the
// instant now. Usually this is the call of Acquire. A lease that does not report its validity counts as valid for one
// TTL from that instant, so that no lease that may have expired counts as valid.
//
// If clients wait for longer than a TTL, the call of Acquire is a weak bound. A correct lock with one permit grants no
// lease while another one is certainly valid. Therefore earliest returns the end of the certainly valid leases if that
// is later. If the lock granted the lease earlier, the overlap with those leases is a breach anyway.
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

// span is an interval in which no lease of one TTL can begin without overlapping a certainly valid lease.
type span struct{ from, until int64 }

// with extends the span by a lease that was certainly valid between two instants. A lease whose until is not after its
// from changes nothing. with drops a span that ended one TTL or more before the lease.
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

// admit adds a holder and records an overlap if there are more holders than the capacity.
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
	switch missed := k.lastReleased.released - h.granted; {
	case len(k.holders) > k.capacity:
		if k.crowded(h) {
			k.safety.Overlaps++
			k.become(overlapping, h.granted)
		} else {
			k.safety.ExpiredOverlaps++
			k.become(max(expired, k.state), h.granted)
		}
	case len(k.holders) == k.capacity && missed > 0:
		// Another client acquired and released the lock between the grant of this lease and the call of Enter.
		if k.crowded(h, k.lastReleased) {
			k.safety.Overlaps++
			k.safety.OverlapNS += missed
		} else {
			k.safety.ExpiredOverlaps++
			k.safety.ExpiredOverlapNS += missed
		}
	}
}

// crowded reports whether at some instant more leases than the capacity were certainly valid, including the newcomer's
// lease. It checks the current holders, and those in others, which have already released.
func (k *Key) crowded(newcomer holder, others ...holder) bool {
	clock := k.window.Clock
	end := newcomer.end(clock)
	valid := 1
	for _, held := range [][]holder{k.holders[:len(k.holders)-1], others} {
		for _, h := range held {
			// With several permits, two leases may both overlap the newcomer's lease but not each other. Therefore only the
			// leases that are valid when the newcomer's lease is granted count.
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

// fence records a holder's token. A token that is not larger than the token of an earlier lease is a regression. A
// smaller token is no regression if the holder's lease may have expired before the lease with the larger token was
// granted, because then only the call of Enter was late.
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

// become changes the state of the key. It adds the time since the last change to the total of the previous state.
func (k *Key) become(state overlap, now int64) {
	switch spent := max(0, now-k.since); k.state {
	case expired:
		k.safety.ExpiredOverlapNS += spent
	case overlapping:
		k.safety.OverlapNS += spent
	}
	k.state, k.since = state, now
}

// Exit records that a client calls Release at the instant now.
func (k *Key) Exit(w *Waiter, now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(w, now)
	k.follow(k.lastReleased)
	if k.arrivals.waiting > 0 {
		k.releasedAt = now
	}
	k.addIdleTime(now)
}

// Freed records that a client's release succeeded at the instant now.
func (k *Key) Freed(now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.releasedAt != none && len(k.holders) < max(k.capacity, 1) {
		k.freedAt = max(now, k.releasedAt)
	}
}

// Idle returns how long the key has been free, in nanoseconds. The result is negative if the key is not free, or if no
// client has been waiting since before the last release.
func (k *Key) Idle(now int64) int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.freedAt == none || k.arrivals.waiting == 0 {
		return none
	}
	return now - k.freedAt
}

// Vanish records that a holder died at the instant now. A dead holder never releases.
func (k *Key) Vanish(w *Waiter, now int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.remove(w, now)
	k.addIdleTime(now)
	k.settle(w, true) // its lease counts as held, because no release can show otherwise
}

func (k *Key) remove(w *Waiter, now int64) {
	k.left(w, now)
	last := len(k.holders) - 1
	k.lastReleased = k.holders[w.place]
	k.lastReleased.released = now
	k.taken = k.taken.with(k.lastReleased.granted, k.lastReleased.end(k.window.Clock), k.ttl)
	k.holders[w.place] = k.holders[last]
	k.holders[w.place].waiter.place = w.place
	k.holders[last] = holder{}
	k.holders = k.holders[:last]
	if k.state != exclusive && len(k.holders) <= k.capacity {
		k.become(exclusive, now)
	}
	k.releasedAt, k.freedAt = none, none
}

// Lost counts a release that found its lease already lost.
func (k *Key) Lost() {
	k.mu.Lock()
	k.safety.LostLeases++
	k.mu.Unlock()
}

// Grants returns the number of leases granted so far.
func (k *Key) Grants() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.grants
}

// Seen returns the sum of the certain breaches on all keys so far. Cases that depend on the outcome of a release are
// not counted yet.
func Seen(keys []*Key) results.Safety {
	var seen results.Safety
	for _, k := range keys {
		k.mu.Lock()
		seen = seen.Plus(k.safety)
		k.mu.Unlock()
	}
	return seen
}

// Audit returns the sum of the breaches on all keys after the last release. An unsettled case that no release has
// proved harmless counts as a breach.
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
