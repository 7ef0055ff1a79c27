package gated

import (
	"context"
	"testing"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

// plain is a lease that can do nothing else; the others are what may be added.
type plain struct{}

func (plain) Release(context.Context) error { return nil }

type (
	extendable struct{}
	fenced     struct{}
	timed      struct{}
	watched    struct{}
)

func (extendable) Extend(context.Context, time.Duration) error { return nil }
func (fenced) FencingToken() int64                             { return 7 }
func (timed) ValidUntil() time.Time                            { return time.Time{} }
func (watched) Lost() <-chan struct{}                          { return nil }

// A lease behind a gate can do what it can without.
func TestCapabilitiesAreKept(t *testing.T) {
	type (
		e struct{ extendable }
		f struct{ fenced }
		m struct{ timed }
		w struct{ watched }
	)
	for _, inner := range []strategies.Lease{
		plain{},
		struct {
			plain
			e
		}{},
		struct {
			plain
			f
		}{},
		struct {
			plain
			e
			f
		}{},
		struct {
			plain
			m
		}{},
		struct {
			plain
			e
			m
		}{},
		struct {
			plain
			f
			m
		}{},
		struct {
			plain
			e
			f
			m
		}{},
		struct {
			plain
			w
		}{},
		struct {
			plain
			e
			w
		}{},
		struct {
			plain
			f
			w
		}{},
		struct {
			plain
			e
			f
			w
		}{},
		struct {
			plain
			m
			w
		}{},
		struct {
			plain
			e
			m
			w
		}{},
		struct {
			plain
			f
			m
			w
		}{},
		struct {
			plain
			e
			f
			m
			w
		}{},
	} {
		g := &gates{}
		if err := g.enter(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
		held := wrap(&lease{inner: inner, gates: g, key: "key"})
		if got, want := abilities(held), abilities(inner); got != want {
			t.Errorf("a lease that can [extend, fence, time, watch] %v can %v behind a gate", want, got)
		}
		for range 2 { // the second finds the gate another's
			if err := held.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if len(g.byKey) != 0 {
			t.Error("a release left its gate closed")
		}
	}
}

func abilities(l strategies.Lease) [4]bool {
	_, e := l.(strategies.Extender)
	_, f := l.(strategies.Fenced)
	_, m := l.(strategies.Timed)
	_, w := l.(strategies.Watched)
	return [4]bool{e, f, m, w}
}
