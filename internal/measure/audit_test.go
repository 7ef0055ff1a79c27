package measure

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// lease reports the end of its validity and a fencing token, the two things that the audit asks a lease for.
type lease struct {
	until time.Time
	token int64
}

func (lease) Release(context.Context) error { return nil }
func (l lease) ValidUntil() time.Time       { return l.until }
func (l lease) FencingToken() int64         { return l.token }

// wrapper hides the interfaces of the lease inside it. The audit must find them with strategies.As.
type wrapper struct {
	plain
	inside strategies.Lease
}

func (w wrapper) Unwrap() strategies.Lease { return w.inside }

type plain struct{}

func (plain) Release(context.Context) error { return nil }

func newWaiters() []*Waiter {
	var waiters []*Waiter
	for client := range 5 {
		waiters = append(waiters, NewWaiter(client))
	}
	return waiters
}

// ttl is how long, in nanoseconds, a lease is valid that does not report its validity.
const ttl = 1000

// step is one action of a client on a key.
type step = func(k *Key, w []*Waiter)

// enters returns a step in which a client arrives and gets a lease at the same instant. who is the client's number, and
// at is the instant. Without leases, the lease is plain.
func enters(who int, at int64, leases ...strategies.Lease) step {
	return func(k *Key, w []*Waiter) { enter(k, w[who], at, append(leases, plain{})[0]) }
}

// asks returns a step in which a client calls Acquire. returns is for the step in which this call returns with a lease.
// who is the client's number.
func asks(who int, at int64) step { return func(k *Key, w []*Waiter) { k.Arrive(w[who], at, at) } }

func returns(who int, at int64, leases ...strategies.Lease) step {
	return func(k *Key, w []*Waiter) { k.Enter(w[who], at, append(leases, plain{})[0]) }
}

func exits(who int, at int64) step { return func(k *Key, w []*Waiter) { k.Exit(w[who], at) } }

func TestOverlaps(t *testing.T) {
	window := NewWindow(NewClock(), 0)
	until := func(at, token int64) lease { return lease{until: window.Clock.Time(at), token: token} }
	const long = 1 << 40
	for name, test := range map[string]struct {
		capacity int
		steps    []step
		want     results.Safety
	}{
		"one after the other": {
			1, []step{enters(1, 10), exits(1, 20), enters(2, 20), exits(2, 30)}, results.Safety{MaxHolders: 1},
		},
		"two at once": {
			1,
			[]step{enters(1, 10), enters(2, 15), exits(1, 40), exits(2, 50)},
			results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 25},
		},
		"the first had outstayed its lease": {
			1,
			[]step{enters(1, 10), enters(2, 10+ttl), exits(1, 10+ttl+5), exits(2, 10+ttl+9)},
			results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 5},
		},
		"a lease that says how long it is valid": {
			1,
			[]step{enters(1, 10, until(20, 0)), enters(2, 25), exits(2, 30), exits(1, 90)},
			results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 5, FencedLeases: 1},
		},
		"late first, then in earnest": {
			1,
			[]step{
				enters(1, 0), enters(2, ttl), enters(3, ttl+10), exits(1, ttl+30), exits(2, ttl+40), exits(3, ttl+50),
			},
			results.Safety{MaxHolders: 3, Overlaps: 1, OverlapNS: 30, ExpiredOverlaps: 1, ExpiredOverlapNS: 10},
		},
		"three permits": {3, []step{enters(0, 0), enters(1, 1), enters(2, 2)}, results.Safety{MaxHolders: 3}},
		"four on three permits": {
			3,
			[]step{enters(0, 0), enters(1, 1), enters(2, 2), enters(3, 3), exits(0, 13)},
			results.Safety{MaxHolders: 4, Overlaps: 1, OverlapNS: 10},
		},
		"no limit": {0, []step{enters(1, 0), enters(2, 0), exits(1, 5)}, results.Safety{MaxHolders: 2}},
		"tokens that go back, repeat and grow": {
			1, []step{
				enters(0, 0, until(long, 0)), exits(0, 0), enters(1, 1, until(long, 5)), exits(1, 1),
				enters(2, 2, until(long, 5)), exits(2, 2), enters(3, 3, until(long, 3)), exits(3, 3),
				enters(4, 4, until(long, 6)), exits(4, 4),
			}, results.Safety{MaxHolders: 1, FencedLeases: 5, FencingRegression: 2},
		},
		"leases in wrappers: a token goes back after a lease has run out": {
			1, []step{
				enters(1, 100, wrapper{inside: wrapper{inside: until(110, 2)}}),
				enters(2, 200, wrapper{inside: until(long, 1)}), exits(1, 210), exits(2, 220),
			}, results.Safety{
				MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10, FencedLeases: 2, FencingRegression: 1,
			},
		},
		"a newcomer whose lease has run out on its way": {
			1,
			[]step{enters(1, 100), enters(2, 200, until(90, 0)), exits(1, 210), exits(2, 220)},
			results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10, FencedLeases: 1},
		},
		"one that came and went while another was on its way": {
			1,
			[]step{enters(2, 20), exits(2, 120), enters(1, 10), exits(1, 130)},
			results.Safety{MaxHolders: 1, Overlaps: 1, OverlapNS: 110},
		},
		"the same, but that one's lease had run out before": {
			1,
			[]step{enters(2, 20), exits(2, 120), enters(1, 10, until(15, 0)), exits(1, 130)},
			results.Safety{MaxHolders: 1, ExpiredOverlaps: 1, ExpiredOverlapNS: 110, FencedLeases: 1},
		},
		"two of three permits one after the other during a long one": {
			2, []step{enters(1, 10), enters(2, 20), exits(2, 30), enters(3, 30)}, results.Safety{MaxHolders: 2},
		},
		"a small token that had run out before the large one was granted": {
			1,
			[]step{enters(2, 50, until(90, 2)), exits(2, 60), enters(1, 40, until(45, 1))},
			results.Safety{MaxHolders: 1, ExpiredOverlaps: 1, ExpiredOverlapNS: 20, FencedLeases: 2},
		},
		// The lease does not report its validity, so it began at an unknown instant between the call of Acquire and its
		// return.
		"a lease granted long before Acquire returned": {
			1,
			[]step{asks(1, 100), returns(1, 700), asks(2, 800), returns(2, 1200), exits(1, 1300), exits(2, 1400)},
			results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 100},
		},
		"the same, before it can have run out": {
			1,
			[]step{asks(1, 100), returns(1, 700), asks(2, 800), returns(2, 1099), exits(1, 1300), exits(2, 1400)},
			results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 201},
		},
		"a lease that was waited for until the holder before it released": {
			1, []step{
				asks(1, 0), returns(1, 10), asks(2, 20), exits(1, 900), returns(2, 1500),
				asks(3, 1600), returns(3, 1890), exits(2, 1895), exits(3, 1899),
			}, results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 5},
		},
		"the same, when it may have run out": {
			1, []step{
				asks(1, 0), returns(1, 10), asks(2, 20), exits(1, 900), returns(2, 1500),
				asks(3, 1600), returns(3, 1910), exits(2, 1950), exits(3, 1960),
			}, results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 40},
		},
		"one that was waited for while the holder before it held longer than its lease": {
			1, []step{
				asks(1, 0), returns(1, 10), asks(2, 20), returns(2, 1500), exits(1, 1510), exits(2, 1900),
				asks(3, 1910), returns(3, 1999), asks(4, 1999), returns(4, 2950), exits(3, 2960), exits(4, 2970),
			}, results.Safety{MaxHolders: 2, ExpiredOverlaps: 2, ExpiredOverlapNS: 20},
		},
		"one that was waited for over several TTLs of others": {
			1, []step{
				asks(4, 0), asks(1, 0), returns(1, 10), exits(1, 800), asks(2, 810), returns(2, 820), exits(2, 1700),
				asks(3, 1710), returns(3, 1720), exits(3, 2600), returns(4, 2650), asks(1, 2700), returns(1, 3550),
				exits(1, 3560), exits(4, 3570),
			}, results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 10},
		},
		"the same, when the lock was free for a TTL between the others": {
			1, []step{
				asks(4, 0), asks(1, 0), returns(1, 10), exits(1, 100), asks(2, 1200), returns(2, 1210), exits(2, 1220),
				returns(4, 1300), asks(1, 1310), returns(1, 1400), exits(1, 1410), exits(4, 1420),
			}, results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10},
		},
		"a small token that came late, of a lease that had run out": {
			1, []step{
				asks(1, 0), asks(2, 1040), returns(2, 1100, fenced{token: 2}), exits(2, 1200),
				returns(1, 1300, fenced{token: 1}),
			}, results.Safety{MaxHolders: 1, FencedLeases: 2},
		},
		"a permit that was waited for beyond its TTL": {
			2, []step{
				asks(1, 0), asks(2, 0), returns(1, 900), returns(2, 1100), asks(3, 1200), returns(3, 1300),
				exits(1, 1400), exits(2, 1400), exits(3, 1500),
			}, results.Safety{MaxHolders: 3, ExpiredOverlaps: 1, ExpiredOverlapNS: 100},
		},
		"a small token of a lease that may have run out before the large one was granted": {
			1, []step{
				asks(1, 0), asks(2, 0), returns(2, 1100, fenced{token: 2}), exits(2, 1200),
				returns(1, 1300, fenced{token: 1}),
			}, results.Safety{MaxHolders: 1, FencedLeases: 2},
		},
		"a small token of a lease that was valid when the large one was granted": {
			1, []step{
				asks(1, 200), asks(2, 0), returns(2, 1100, fenced{token: 2}), exits(2, 1150),
				returns(1, 1150, fenced{token: 1}),
			}, results.Safety{MaxHolders: 1, FencedLeases: 2, FencingRegression: 1},
		},
		"lost": {
			1,
			[]step{enters(1, 0), exits(1, 5), func(k *Key, _ []*Waiter) { k.Lost() }},
			results.Safety{MaxHolders: 1, LostLeases: 1},
		},
		"a holder that is no more": {
			1,
			[]step{enters(1, 10), func(k *Key, w []*Waiter) { k.Vanish(w[1], 20) }, enters(2, 900)},
			results.Safety{MaxHolders: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, w := NewKey(window, test.capacity, ttl, 0), newWaiters()
			for _, do := range test.steps {
				do(k, w)
			}
			if diff := cmp.Diff(test.want, Audit([]*Key{k})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// enter makes a waiter arrive and get a lease at the same instant.
func enter(k *Key, w *Waiter, now int64, l strategies.Lease) {
	k.Arrive(w, 0, 0)
	k.Enter(w, now, l)
}

func TestHandoff(t *testing.T) {
	window := NewWindow(NewClock(), 0)
	window.Plan(0, 0)
	k := NewKey(window, 1, time.Second, 0)
	w := newWaiters()
	k.Arrive(w[1], 0, 0)
	if g := k.Enter(w[1], 10, plain{}); g.Handoff >= 0 {
		t.Errorf("the first lease was handed over in %d", g.Handoff)
	}
	k.Exit(w[1], 20) // no client waits
	k.Arrive(w[2], 0, 0)
	if g := k.Enter(w[2], 35, plain{}); g.Handoff >= 0 {
		t.Errorf("no client was waiting, yet handed over in %d", g.Handoff)
	}
	k.Arrive(w[0], 0, 0)
	k.Exit(w[2], 50)     // a client waits
	k.Arrive(w[3], 0, 0) // a newcomer, which acquires the lock
	if g := k.Enter(w[3], 57, plain{}); g.Handoff != 7 || !g.Overtaken || g.Bypassed != 0 {
		t.Errorf("%+v, want a handoff in 7 to one that overtook", g)
	}
	k.Exit(w[3], 60)
	if bypassed := k.Leave(w[0], 65); bypassed != 1 { // the waiter gives up
		t.Errorf("bypassed by %d, want 1", bypassed)
	}
	k.Arrive(w[4], 0, 0)
	if g := k.Enter(w[4], 70, plain{}); g.Handoff >= 0 || g.Overtaken {
		t.Errorf("%+v: no client had been waiting since", g)
	}
	if k.Grants() != 4 {
		t.Errorf("%d grants, want 4", k.Grants())
	}
}

func TestHandoffOfOnePermitOfTwo(t *testing.T) {
	k, w := NewKey(NewWindow(NewClock(), 0), 2, time.Second, 0), newWaiters()
	enter(k, w[1], 10, plain{})
	enter(k, w[2], 20, plain{})
	k.Arrive(w[3], 0, 0)
	k.Exit(w[1], 30)
	if g := k.Enter(w[3], 38, plain{}); g.Handoff != 8 {
		t.Errorf("%+v, want a handoff in 8", g)
	}
}
