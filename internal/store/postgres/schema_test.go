package postgres

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/workloads"
)

// The schema of a service that locks with strategies/postgres is not a dead session's: its
// fencing tokens would begin again.
func TestAServicesSchemaStays(t *testing.T) {
	users := opened(t, "users", store.Options{})
	eye := connected(t, users.own.url())
	if _, err := eye.Exec(t.Context(), "CREATE SCHEMA lockbench_prod; CREATE SEQUENCE lockbench_prod.lockbench_fence"); err != nil {
		t.Fatal(err)
	}
	opened(t, "passing", store.Options{Address: users.own.url()})
	if !slices.Contains(contents(t, eye), "schema lockbench_prod") {
		t.Error("it was removed")
	}
}

// Sessions whose names differ in capitals alone share a schema: the first that ends leaves
// it to the other.
func TestTheSchemaOfTwoSpellings(t *testing.T) {
	users := opened(t, "users", store.Options{})
	lower := opened(t, "twins", store.Options{Address: users.own.url()})
	of, err := lower.Connect(t.Context(), "lockbench:twins:run1", 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	counter := of.Counter("number", workloads.FenceOff, 0)
	if err := counter.Write(t.Context(), 7); err != nil {
		t.Fatal(err)
	}
	upper, err := open(t.Context(), "Twins", store.Options{Address: users.own.url()})
	if err != nil {
		t.Fatal(err)
	}
	if err := upper.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if n, err := counter.Read(t.Context()); err != nil || n != 7 {
		t.Errorf("the counter is %d, %v", n, err)
	}
}

// Two generators of a session that close at the same time leave nothing: the connections of
// the other, which have just been closed, may still be listed.
func TestTwoGeneratorsCloseAtOnce(t *testing.T) {
	users := opened(t, "hosts", store.Options{Address: "process"})
	eye := connected(t, users.own.url())
	for range 10 {
		var both [2]*server
		for i := range both {
			var err error
			if both[i], err = open(t.Context(), "pair", store.Options{Address: users.own.url()}); err != nil {
				t.Fatal(err)
			}
			of, err := both[i].Connect(t.Context(), "lockbench:pair:run1", 1, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := of.Counter("number", workloads.FenceOff, 0).Write(t.Context(), 1); err != nil {
				t.Error(err)
			}
			if err := of.Close(); err != nil {
				t.Error(err)
			}
		}
		var closing sync.WaitGroup
		for _, s := range both {
			closing.Go(func() {
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		closing.Wait()
		if slices.Contains(contents(t, eye), "schema "+both[0].schema()) {
			t.Fatal("the schema stayed")
		}
	}
}
