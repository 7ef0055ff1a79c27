package measure

import "testing"

func TestLockStandstill(t *testing.T) {
	const ms = second / 1000
	for _, test := range []struct {
		name string
		do   func(k *Key, w []*Waiter) // in a window from 1 s to 3 s
		want int64
	}{
		{"free, and one client waited", func(k *Key, w []*Waiter) {
			enter(k, w[0], second, plain{})
			k.Arrive(w[1], second, second)
			k.Exit(w[0], 1200*ms)
			k.Enter(w[1], 1900*ms, plain{})
		}, 700 * ms},
		{"it was held", func(k *Key, w []*Waiter) {
			enter(k, w[0], second, plain{})
			k.Arrive(w[1], second, second)
			k.Exit(w[0], 2900*ms)
			k.Enter(w[1], 2901*ms, plain{})
		}, ms},
		{"no client wanted it", func(k *Key, w []*Waiter) {
			enter(k, w[0], second, plain{})
			k.Exit(w[0], 1001*ms)
			k.Arrive(w[1], 2500*ms, 2500*ms)
			k.Enter(w[1], 2510*ms, plain{})
		}, 10 * ms},
		{"one gave up after the other", func(k *Key, w []*Waiter) {
			for at := second; at < 2*second; at += 100 * ms {
				k.Arrive(w[0], at, at)
				k.Leave(w[0], at+90*ms)
			}
		}, 900 * ms},
		{"to the end, and a little before the window", func(k *Key, w []*Waiter) {
			k.Arrive(w[0], second/2, second/2)
			k.Leave(w[0], 4*second)
		}, 2 * second},
		{"before the window", func(k *Key, w []*Waiter) {
			k.Arrive(w[0], 0, 0)
			k.Enter(w[0], second, plain{})
		}, 0},
		{"an arrival that no client took in time", func(k *Key, w []*Waiter) {
			k.Arrive(w[0], second, 2*second)
			k.Enter(w[0], 2*second+ms, plain{})
		}, ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := NewKey(planned(0), 1, 0, 0)
			test.do(k, newWaiters())
			if got := Stall([]*Key{k}); got != test.want {
				t.Errorf("stood still for %d ms, want %d", got/ms, test.want/ms)
			}
		})
	}
}

// A waiter is bypassed ten times in the warm-up and more often in the window. A wait that ends in the window must count
// only the bypasses in the window.
func TestBypassesCountOnlyInWindow(t *testing.T) {
	k, w := NewKey(planned(0), 1, 0, 0), newWaiters()
	barge := func(from int64) {
		for i := range int64(10) {
			enter(k, w[0], from+i, plain{})
			k.Exit(w[0], from+i)
		}
	}
	k.Arrive(w[1], 0, 0)
	k.Arrive(w[2], 0, 0)
	k.Arrive(w[3], 0, 0)
	barge(second / 2)
	if got := k.Leave(w[3], second-1); got != 10 {
		t.Errorf("before the window it was bypassed %d times, want 10", got)
	}
	barge(second)
	if got := k.Enter(w[1], second+100, plain{}).Bypassed; got != 10 {
		t.Errorf("in the window it was bypassed %d times, want 10", got)
	}
	if got := k.Leave(w[2], second+200); got != 10 { // the other grant went to a waiter ahead of it
		t.Errorf("in the window the next was bypassed %d times, want 10", got)
	}
}

func TestPassesWithinAProcess(t *testing.T) {
	for _, test := range []struct {
		name                string
		instances, capacity int
		owners              []int
		want                float64 // -1: not known
	}{
		{"half of them", 2, 1, []int{0, 2, 3, 1, 0}, 50},
		{"the same client again is no pass", 2, 1, []int{0, 0, 0, 1}, 0},
		{"one process", 1, 1, []int{0, 1, 2}, 100},
		{"a fault target is a process of its own", 2, 1, []int{0, 4, 0}, 0},
		{"no client after the first", 2, 1, []int{0}, -1},
		{"several holders", 2, 2, []int{0, 2}, -1},
	} {
		t.Run(test.name, func(t *testing.T) {
			k, w := NewKey(planned(0), test.capacity, 0, 0), newWaiters()
			k.Across(test.instances, 4)
			enter(k, w[1], 0, plain{}) // in the warm-up
			k.Exit(w[1], 1)
			enter(k, w[test.owners[0]], 2, plain{})
			k.Exit(w[test.owners[0]], 3)
			for _, owner := range test.owners[1:] {
				enter(k, w[owner], second, plain{})
				k.Exit(w[owner], second)
			}
			got := -1.0
			if share := passesWithin([]*Key{k}); share != nil {
				got = *share
			}
			if got != test.want {
				t.Errorf("%v %%, want %v", got, test.want)
			}
		})
	}
}
