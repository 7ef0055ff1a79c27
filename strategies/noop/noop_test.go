package noop_test

import (
	"context"
	"testing"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/noop"
)

func init() { strategies.RegisterStrategy(noop.Strategy()) }

func TestConformance(t *testing.T) { trial.Conform(t, "noop") }

func TestClaimsNothingAndExcludesNobody(t *testing.T) {
	variant := trial.Variant(t, "noop")
	if claims := variant.Info().Claims; claims != (strategies.Claims{}) {
		t.Errorf("it claims %v", claims)
	}
	locker, err := variant.Open(strategies.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second while the first holds
		if _, err := locker.Acquire(t.Context(), "key"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAllocatesNothing(t *testing.T) {
	var locker strategies.Locker = noop.Locker{}
	allocations := testing.AllocsPerRun(1000, func() {
		lease, _ := locker.Acquire(context.Background(), "key")
		_ = lease.Release(context.Background())
	})
	if allocations != 0 {
		t.Errorf("%v allocations for each acquire and release", allocations)
	}
}

func BenchmarkNoop(b *testing.B) {
	var locker strategies.Locker = noop.Locker{}
	b.ReportAllocs()
	for b.Loop() {
		lease, _ := locker.Acquire(context.Background(), "key")
		_ = lease.Release(context.Background())
	}
}
