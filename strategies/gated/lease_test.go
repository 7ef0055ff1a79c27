package gated

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// plain is a lease that can only be released. able has all capabilities of leases.
type (
	plain struct{}
	able  struct{ plain }
)

func (plain) Release(context.Context) error              { return strategies.ErrNotHeld }
func (able) Extend(context.Context, time.Duration) error { return nil }
func (able) FencingToken() int64                         { return 7 }
func (able) ValidUntil() time.Time                       { return time.Unix(7, 0) }
func (able) Lost() <-chan struct{}                       { return nil }

// stub grants the same lease to every caller, and counts the calls of each method.
type stub struct {
	lease strategies.Lease
	err   error
	calls map[string]int
}

func (s *stub) grant(method string) (strategies.Lease, error) {
	s.calls[method]++
	return s.lease, s.err
}

func (s *stub) Close() error { return nil }

func (s *stub) Acquire(context.Context, string) (strategies.Lease, error) { return s.grant("Acquire") }

func (s *stub) TryAcquire(context.Context, string) (strategies.Lease, error) {
	return s.grant("TryAcquire")
}

// A lease behind a gate must have exactly the capabilities of the strategy's lease. Its release must open the gate,
// even if the strategy's release fails.
func TestLeaseCapabilitiesAreKept(t *testing.T) {
	for _, inner := range []strategies.Lease{plain{}, able{}} {
		l := New(&stub{lease: inner, calls: map[string]int{}})
		held, err := l.Acquire(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := abilities(held), abilities(inner); got != want {
			t.Errorf("a lease that can [extend, fence, time, watch] %v can %v behind a gate", want, got)
		}
		if fenced, ok := strategies.As[strategies.Fenced](held); ok && fenced.FencingToken() != 7 {
			t.Error("the token is another's")
		}
		for range 2 { // the second finds the gate another's
			if err := held.Release(t.Context()); !errors.Is(err, strategies.ErrNotHeld) {
				t.Errorf("the release says %v, want the strategy's ErrNotHeld", err)
			}
		}
		if l.(*Locker).gates.Users("key") != 0 {
			t.Error("a release left its gate closed")
		}
	}
}

func abilities(l strategies.Lease) [4]bool {
	_, e := strategies.As[strategies.Extender](l)
	_, f := strategies.As[strategies.Fenced](l)
	_, m := strategies.As[strategies.Timed](l)
	_, w := strategies.As[strategies.Watched](l)
	return [4]bool{e, f, m, w}
}

// Acquire and TryAcquire must not call the strategy while another caller of the process is inside the gate.
func TestEveryAcquireGoesThroughTheGate(t *testing.T) {
	const key = "key"
	s := &stub{lease: plain{}, calls: map[string]int{}}
	l := New(s)
	acquire := map[string]func(context.Context) (strategies.Lease, error){
		"Acquire":    func(ctx context.Context) (strategies.Lease, error) { return l.Acquire(ctx, key) },
		"TryAcquire": func(ctx context.Context) (strategies.Lease, error) { return l.(*Locker).TryAcquire(ctx, key) },
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for method, acquire := range acquire {
		held, err := acquire(t.Context())
		if err != nil || s.calls[method] != 1 {
			t.Fatalf("%s: %v, called %v", method, err, s.calls)
		}
		if _, err := acquire(over); !errors.Is(err, context.Canceled) && !errors.Is(err, strategies.ErrHeld) {
			t.Errorf("%s of what a client of the process holds: %v", method, err)
		}
		if s.calls[method] != 1 {
			t.Errorf("%s asked the strategy past the gate", method)
		}
		_ = held.Release(t.Context())
		if l.(*Locker).gates.Users("key") != 0 {
			t.Fatalf("the release of %s left its gate closed", method)
		}
		s.err = strategies.ErrNoQuorum
		if _, err := acquire(t.Context()); !errors.Is(err, s.err) {
			t.Errorf("%s: %v, want the strategy's %v", method, err, s.err)
		}
		s.err = nil
		if l.(*Locker).gates.Users("key") != 0 {
			t.Errorf("%s that failed left its gate closed", method)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for method, acquire := range acquire {
		if _, err := acquire(t.Context()); !errors.Is(err, strategies.ErrClosed) {
			t.Errorf("%s after Close: %v", method, err)
		}
	}
}

// A gate must hide that its strategy is re-entrant. An owner that acquired the lock again would wait at the gate for
// itself.
func TestGateHidesReentrance(t *testing.T) {
	l := New(reentrant{&stub{lease: plain{}, calls: map[string]int{}}})
	if _, ok := strategies.As[strategies.Reentrant](l); ok {
		t.Error("what is inside can be acquired without the gate")
	}
}

type reentrant struct{ *stub }

func (r reentrant) AcquireAs(context.Context, string, string) (strategies.Lease, error) {
	return r.grant("AcquireAs")
}
