package measure

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The test adds and removes waiters at random. arrivals must always return the same counts as a list of the waiters.
func TestArrivalTreeMatchesNaiveCount(t *testing.T) {
	type place struct {
		*Waiter
		bypassed int64
	}
	random := rand.New(rand.NewPCG(1, 2))
	var a arrivals
	var queue []*place // by arrival
	var grants int64
	for step := range 50_000 {
		switch n := random.IntN(10); {
		case len(queue) == 0 || n < 5 && len(queue) < 300:
			p := &place{Waiter: NewWaiter(step)}
			a.arrive(p.Waiter, 0, grants)
			queue = append(queue, p)
		default:
			i := random.IntN(len(queue))
			if random.IntN(3) > 0 {
				i = min(i, 3)
			}
			p := queue[i]
			if got := a.before(p.Waiter); got != int64(i) {
				t.Fatalf("step %d: %d before it, want %d", step, got, i)
			}
			if got := a.bypassed(p.Waiter, int64(i), grants); got != p.bypassed {
				t.Fatalf("step %d: bypassed by %d, want %d", step, got, p.bypassed)
			}
			if n == 9 {
				a.withdraw(p.Waiter)
			} else {
				a.remove(p.Waiter)
				grants++
				for _, earlier := range queue[:i] {
					earlier.bypassed++
				}
			}
			queue = slices.Delete(queue, i, i+1)
		}
		if a.waiting != len(queue) {
			t.Fatalf("step %d: %d waiting, want %d", step, a.waiting, len(queue))
		}
	}
	if len(a.places) > 2048 {
		t.Errorf("%d slots for at most 300 waiters", len(a.places))
	}
}

// One waiter starves while another arrives and leaves 10,000 times. arrivals must not need more than 64 slots.
func TestStarvedWaiterDoesNotGrowSlots(t *testing.T) {
	var a arrivals
	starved, other := NewWaiter(0), NewWaiter(1)
	a.arrive(starved, 0, 0)
	const rounds = 10_000
	for n := range int64(rounds) {
		a.arrive(other, 0, n)
		a.remove(other)
	}
	if got := a.bypassed(starved, 0, rounds); got != rounds {
		t.Errorf("bypassed by %d, want %d", got, rounds)
	}
	if len(a.places) > 64 {
		t.Errorf("%d slots", len(a.places))
	}
}

func TestShortTermFairness(t *testing.T) {
	const clients = 4
	window := NewWindow(NewClock(), 0)
	window.Plan(0, 1<<60)
	grant := func(k *Key, w *Waiter) Grant {
		k.Arrive(w, 0, 0)
		g := k.Enter(w, 1, plain{})
		k.Exit(w, 1)
		return g
	}
	waiters := []*Waiter{NewWaiter(0), NewWaiter(1), NewWaiter(2), NewWaiter(3)}

	round := NewKey(window, 1, 0, clients)
	for n := range 40 {
		g := grant(round, waiters[n%clients])
		if want := int64(clients); n >= clients && g.ReacquireDistance != want {
			t.Errorf("grant %d came back after %d, want %d", n, g.ReacquireDistance, want)
		}
	}
	barging := NewKey(window, 1, 0, clients)
	for n := range 40 {
		grant(barging, waiters[n/20])
	}
	if got := workingSet([]*Key{round}); got == nil || *got != clients {
		t.Errorf("round robin: a working set of %v, want %d", got, clients)
	}
	if got := workingSet([]*Key{barging}); got == nil || *got > 1.2 { // only one block of ten has both clients
		t.Errorf("barging: a working set of %v, want about 1", got)
	}
}
