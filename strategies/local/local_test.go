package local_test

import (
	"context"
	"testing"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
	"github.com/lockbench/lockbench/strategies/local"
)

func init() { strategies.RegisterStrategy(local.Strategy()) }

func TestConformance(t *testing.T) { trial.Conform(t, "local") }

func TestCountsOneAttemptAndOneWakeUp(t *testing.T) {
	probe := &strategies.Probe{}
	locker, err := local.Open(strategies.Config{Probe: probe}, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := locker.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := locker.Acquire(t.Context(), "key")
		done <- err
	}()
	poll.Until(t, "the waiter's attempt", func() bool { return probe.Counts().Attempts == 2 })
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got, want := probe.Counts(), (strategies.ProbeCounts{Attempts: 2, Useful: 1}); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func BenchmarkUncontended(b *testing.B) {
	locker, err := local.Open(strategies.Config{}, local.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		lease, err := locker.Acquire(context.Background(), "key")
		if err != nil {
			b.Fatal(err)
		}
		if err := lease.Release(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
