package measure

import "testing"

// A holder dies, and another client gets the lock long afterwards. This grant must not count as a handoff.
func TestGrantAfterDeathIsNotAHandoff(t *testing.T) {
	window := NewWindow(NewClock(), 0)
	window.Plan(0, 0)
	k, w := NewKey(window, 1, 1000, 5), newWaiters()
	enter(k, w[1], 10, plain{})
	k.Arrive(w[2], 0, 0)
	k.Vanish(w[1], 20)
	grant := k.Enter(w[2], 900, plain{})
	if grant.Handoff != none || grant.Idle != none {
		t.Errorf("grant %+v", grant)
	}
}

func TestIdleTimeNeedsAWaiter(t *testing.T) {
	window := NewWindow(NewClock(), 0)
	window.Plan(0, 0)
	for _, test := range []struct {
		name        string
		do          func(k *Key, w []*Waiter)
		idle, grant int64
	}{
		{"waited for", func(k *Key, w []*Waiter) { k.Arrive(w[2], 0, 0); k.Exit(w[1], 20); k.Freed(25) }, 75, 175},
		{
			"not waited for", func(k *Key, w []*Waiter) { k.Exit(w[1], 20); k.Freed(25); k.Arrive(w[2], 0, 0) }, none,
			none,
		},
		{"the release failed", func(k *Key, w []*Waiter) { k.Arrive(w[2], 0, 0); k.Exit(w[1], 20) }, none, none},
		{"got by another before the release returned", func(k *Key, w []*Waiter) {
			k.Arrive(w[2], 0, 0)
			k.Exit(w[1], 20)
			enter(k, w[3], 22, plain{})
			k.Freed(25)
			k.Exit(w[3], 30)
		}, none, none},
		{"everybody has left", func(k *Key, w []*Waiter) {
			k.Arrive(w[2], 0, 0)
			k.Exit(w[1], 20)
			k.Freed(25)
			k.Leave(w[2], 30)
			k.Arrive(w[2], 0, 0)
		}, none, none},
	} {
		t.Run(test.name, func(t *testing.T) {
			k, w := NewKey(window, 1, 1000, 5), newWaiters()
			enter(k, w[1], 10, plain{})
			test.do(k, w)
			if got := k.Idle(100); got != test.idle {
				t.Errorf("idle for %d, want %d", got, test.idle)
			}
			if got := k.Enter(w[2], 200, plain{}).Idle; got != test.grant {
				t.Errorf("at the grant idle for %d, want %d", got, test.grant)
			}
		})
	}
}

// Client 7 acquires the lock only once, as a fault's target does. The blocks of grants must be those of the other two
// clients.
func TestSingleTurnDoesNotExtendBlock(t *testing.T) {
	turns := newOwnerSequence(2)
	for n, client := range []int{0, 1, 7, 1, 0, 1} {
		turns.take(client, int64(n+2), true) // the first grant was before the window
	}
	if turns.blocks != 3 || turns.sum != 2+1+2 {
		t.Errorf("%d blocks with %d clients", turns.blocks, turns.sum)
	}
}
