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
