package trial

import (
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
)

// HoldsNotShortened checks that nothing that an owner does with a second hold ends its first
// one, which it has extended, sooner.
func HoldsNotShortened(t *testing.T, variant string) {
	t.Parallel()
	server := redistest.Start(t)
	p, a := hooked(t, server, variant)
	as := func() strategies.Lease {
		lease, err := p.Locker.(strategies.Reentrant).AcquireAs(t.Context(), "key", "me")
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	outer := as()
	if err := outer.(strategies.Extender).Extend(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	after := func(what string) {
		for _, key := range server.Client(t).Keys(t.Context(), "*trial:key*").Val() {
			if left := server.Client(t).PTTL(t.Context(), key).Val(); left > 0 && left < 30*time.Second {
				t.Errorf("after %s %s has %v left", what, key, left)
			}
		}
		if left := time.Until(outer.(strategies.Timed).ValidUntil()); left < 30*time.Second {
			t.Errorf("after %s the outer lease says it has %v left", what, left)
		}
	}
	after("Extend")
	inner := as()
	after("a second hold")
	if err := inner.(strategies.Extender).Extend(t.Context(), 10*time.Second); err != nil {
		t.Error(err)
	}
	after("the second hold's Extend")
	a.mode.Store(unheard)
	if err := outer.(strategies.Extender).Extend(t.Context(), time.Second); err == nil {
		t.Error("an Extend without an answer returned nil")
	}
	a.mode.Store(asTheyCome)
	after("an Extend by a second without an answer")
	Release(t, inner)
	after("the second hold's release")
	Release(t, outer)
}

// HoldsSentTwice checks that an owner that holds a lock twice still has it after one release, also if
// the client sends commands again whose answers were lost, and no longer after the second.
func HoldsSentTwice(t *testing.T, variant string) {
	t.Parallel()
	for what, at := range map[string]int{"the acquire": 1, "the release": 2} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p, a := hooked(t, server, variant)
			other := Start(t, server, variant, time.Minute)
			as := func() strategies.Lease {
				lease, err := p.Locker.(strategies.Reentrant).AcquireAs(t.Context(), "key", "me")
				if err != nil {
					t.Fatal(err)
				}
				return lease
			}
			again := func(step int) {
				a.mode.Store(asTheyCome)
				if step == at {
					a.mode.Store(twice)
				}
			}
			outer := as()
			again(1)
			inner := as()
			again(2)
			Release(t, inner)
			again(3)
			if err := inner.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("released a second time, the inner lease returned %v, want ErrNotHeld", err)
			}
			if lease, err := other.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
				t.Errorf("after one of two releases another process gets %v, %v", lease, err)
			}
			Release(t, outer)
			if _, err := other.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); err != nil {
				t.Errorf("after both releases another process gets %v", err)
			}
		})
	}
}

// ReleasedLate checks that a release which comes late does not free what its owner has acquired since.
func ReleasedLate(t *testing.T, variant string) {
	t.Parallel()
	server := redistest.Start(t)
	p, a := hooked(t, server, variant)
	other := Start(t, server, variant, time.Minute)
	acquire := func() (strategies.Lease, error) {
		return p.Locker.(strategies.Reentrant).AcquireAs(t.Context(), "key", "me")
	}
	first, err := acquire()
	if err != nil {
		t.Fatal(err)
	}
	a.mode.Store(heldBack)
	if err := first.Release(t.Context()); err == nil || errors.Is(err, strategies.ErrNotHeld) {
		t.Fatalf("the release without an answer returned %v", err)
	}
	a.mode.Store(asTheyCome)
	tried, got := p.Counts().Attempts, make(chan strategies.Lease, 1)
	go func() {
		lease, err := acquire()
		if err != nil {
			t.Error(err)
		}
		got <- lease
	}()
	poll.Until(t, "the owner tries again", func() bool { return p.Counts().Attempts > tried })
	(<-a.late)()
	second := <-got
	if second == nil {
		return
	}
	if lease, err := other.Locker.(strategies.Trier).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("after the late release another process gets %v, %v", lease, err)
	}
	Release(t, second)
}
