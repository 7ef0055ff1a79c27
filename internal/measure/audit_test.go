package measure

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
)

// lease is one that the audit can look at.
type lease struct {
	until time.Time
	token int64
}

func (lease) Release(context.Context) error { return nil }
func (l lease) ValidUntil() time.Time       { return l.until }
func (l lease) FencingToken() int64         { return l.token }

// wrapper is a lease that is all that the one inside is.
type wrapper struct {
	plain
	inside strategies.Lease
}

func (w wrapper) Unwrap() strategies.Lease { return w.inside }

type plain struct{}

func (plain) Release(context.Context) error { return nil }

// people are as many clients as the tests need.
func people() []*Waiter {
	var waiters []*Waiter
	for client := range 5 {
		waiters = append(waiters, NewWaiter(client))
	}
	return waiters
}

func TestOverlaps(t *testing.T) {
	const ttl = 1000
	window := NewWindow(NewClock(), 0)
	clock := window.Clock
	for _, test := range []struct {
		name     string
		capacity int
		do       func(k *Key, w []*Waiter)
		want     results.Safety
	}{
		{"one after the other", 1, func(k *Key, w []*Waiter) {
			enter(k, w[1], 10, plain{})
			k.Exit(w[1], 20)
			enter(k, w[2], 20, plain{})
			k.Exit(w[2], 30)
		}, results.Safety{MaxHolders: 1}},
		{"two at once", 1, func(k *Key, w []*Waiter) {
			enter(k, w[1], 10, plain{})
			enter(k, w[2], 15, plain{})
			k.Exit(w[1], 40)
			k.Exit(w[2], 50)
		}, results.Safety{MaxHolders: 2, Overlaps: 1, OverlapNS: 25}},
		{"the first had outstayed its lease", 1, func(k *Key, w []*Waiter) {
			enter(k, w[1], 10, plain{})
			enter(k, w[2], 10+ttl, plain{})
			k.Exit(w[1], 10+ttl+5)
			k.Exit(w[2], 10+ttl+9)
		}, results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 5}},
		{"a lease that says how long it is valid", 1, func(k *Key, w []*Waiter) {
			enter(k, w[1], 10, lease{until: clock.Time(20)})
			enter(k, w[2], 25, plain{})
			k.Exit(w[2], 30)
			k.Exit(w[1], 90)
		}, results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 5, FencedLeases: 1}},
		{"late first, then in earnest", 1, func(k *Key, w []*Waiter) {
			enter(k, w[1], 0, plain{})
			enter(k, w[2], ttl, plain{})
			enter(k, w[3], ttl+10, plain{})
			k.Exit(w[1], ttl+30)
			k.Exit(w[2], ttl+40)
			k.Exit(w[3], ttl+50)
		}, results.Safety{MaxHolders: 3, Overlaps: 1, OverlapNS: 30, ExpiredOverlaps: 1, ExpiredOverlapNS: 10}},
		{"three permits", 3, func(k *Key, w []*Waiter) {
			for client := range 3 {
				enter(k, w[client], int64(client), plain{})
			}
		}, results.Safety{MaxHolders: 3}},
		{"four on three permits", 3, func(k *Key, w []*Waiter) {
			for client := range 4 {
				enter(k, w[client], int64(client), plain{})
			}
			k.Exit(w[0], 13)
		}, results.Safety{MaxHolders: 4, Overlaps: 1, OverlapNS: 10}},
		{"no limit", 0, func(k *Key, w []*Waiter) {
			enter(k, w[1], 0, plain{})
			enter(k, w[2], 0, plain{})
			k.Exit(w[1], 5)
		}, results.Safety{MaxHolders: 2}},
		{"tokens that go back, repeat and grow", 1, func(k *Key, w []*Waiter) {
			for client, token := range []int64{0, 5, 5, 3, 6} {
				enter(k, w[client], int64(client), lease{until: clock.Time(1 << 40), token: token})
				k.Exit(w[client], int64(client))
			}
		}, results.Safety{MaxHolders: 1, FencedLeases: 5, FencingRegression: 2}},
		{"leases in wrappers: a token goes back after a lease has run out", 1, func(k *Key, w []*Waiter) {
			enter(k, w[1], 100, wrapper{inside: wrapper{inside: lease{until: clock.Time(110), token: 2}}})
			enter(k, w[2], 200, wrapper{inside: lease{until: clock.Time(1 << 40), token: 1}})
			k.Exit(w[1], 210)
			k.Exit(w[2], 220)
		}, results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10, FencedLeases: 2, FencingRegression: 1}},
		{"a newcomer whose lease has run out on its way", 1, func(k *Key, w []*Waiter) {
			enter(k, w[1], 100, plain{})
			enter(k, w[2], 200, lease{until: clock.Time(90)})
			k.Exit(w[1], 210)
			k.Exit(w[2], 220)
		}, results.Safety{MaxHolders: 2, ExpiredOverlaps: 1, ExpiredOverlapNS: 10, FencedLeases: 1}},
		{"one that came and went while another was on its way", 1, func(k *Key, w []*Waiter) {
			enter(k, w[2], 20, plain{})
			k.Exit(w[2], 120)
			enter(k, w[1], 10, plain{})
			k.Exit(w[1], 130)
		}, results.Safety{MaxHolders: 1, Overlaps: 1, OverlapNS: 110}},
		{"the same, but that one's lease had run out before", 1, func(k *Key, w []*Waiter) {
			enter(k, w[2], 20, plain{})
			k.Exit(w[2], 120)
			enter(k, w[1], 10, lease{until: clock.Time(15)})
			k.Exit(w[1], 130)
		}, results.Safety{MaxHolders: 1, ExpiredOverlaps: 1, ExpiredOverlapNS: 110, FencedLeases: 1}},
		{"two of three permits one after the other beside a long one", 2, func(k *Key, w []*Waiter) {
			enter(k, w[1], 10, plain{})
			enter(k, w[2], 20, plain{})
			k.Exit(w[2], 30)
			enter(k, w[3], 30, plain{})
		}, results.Safety{MaxHolders: 2}},
		{"a small token that had run out before the large one was granted", 1, func(k *Key, w []*Waiter) {
			enter(k, w[2], 50, lease{until: clock.Time(90), token: 2})
			k.Exit(w[2], 60)
			enter(k, w[1], 40, lease{until: clock.Time(45), token: 1})
		}, results.Safety{MaxHolders: 1, ExpiredOverlaps: 1, ExpiredOverlapNS: 20, FencedLeases: 2}},
		{"lost", 1, func(k *Key, w []*Waiter) {
			enter(k, w[1], 0, plain{})
			k.Exit(w[1], 5)
			k.Lost()
		}, results.Safety{MaxHolders: 1, LostLeases: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := NewKey(window, test.capacity, ttl, 0)
			test.do(k, people())
			if diff := cmp.Diff(test.want, Audit([]*Key{k})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// enter has a waiter arrive and get the lease at once.
func enter(k *Key, w *Waiter, now int64, l strategies.Lease) {
	k.Arrive(w, 0, 0)
	k.Enter(w, now, l)
}

func TestHandoff(t *testing.T) {
	k := NewKey(NewWindow(NewClock(), 0), 1, time.Second, 0)
	w := people()
	k.Arrive(w[1], 0, 0)
	if g := k.Enter(w[1], 10, plain{}); g.Handoff >= 0 {
		t.Errorf("the first lease was handed over in %d", g.Handoff)
	}
	k.Exit(w[1], 20) // nobody waits
	k.Arrive(w[2], 0, 0)
	if g := k.Enter(w[2], 35, plain{}); g.Handoff >= 0 {
		t.Errorf("nobody was waiting, yet handed over in %d", g.Handoff)
	}
	k.Arrive(w[0], 0, 0)
	k.Exit(w[2], 50)     // somebody waits
	k.Arrive(w[3], 0, 0) // a newcomer, and gets it
	if g := k.Enter(w[3], 57, plain{}); g.Handoff != 7 || !g.Overtaken || g.Bypassed != 0 {
		t.Errorf("%+v, want a handoff in 7 to one that overtook", g)
	}
	k.Exit(w[3], 60)
	if bypassed := k.Leave(w[0], 65); bypassed != 1 { // the one that waited gives up
		t.Errorf("bypassed by %d, want 1", bypassed)
	}
	k.Arrive(w[4], 0, 0)
	if g := k.Enter(w[4], 70, plain{}); g.Handoff >= 0 || g.Overtaken {
		t.Errorf("%+v: nobody had been waiting since", g)
	}
	if k.Grants() != 4 {
		t.Errorf("%d grants, want 4", k.Grants())
	}
}

func TestAHandoffOfOnePermitOfTwo(t *testing.T) {
	k, w := NewKey(NewWindow(NewClock(), 0), 2, time.Second, 0), people()
	enter(k, w[1], 10, plain{})
	enter(k, w[2], 20, plain{})
	k.Arrive(w[3], 0, 0)
	k.Exit(w[1], 30)
	if g := k.Enter(w[3], 38, plain{}); g.Handoff != 8 {
		t.Errorf("%+v, want a handoff in 8", g)
	}
}
