package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// failing is a lock of which each so-many-th release fails, although it releases.
func failing(t *testing.T, every int64) strategies.Variant {
	t.Helper()
	var releases atomic.Int64
	info := strategies.Info{Capacity: 1, Claims: strategies.Claims{Exclusion: true}}
	return lock(t, info, 1, func(ctx context.Context, slots chan struct{}) (strategies.Lease, error) {
		lease, err := wait(ctx, slots)
		if err != nil {
			return nil, err
		}
		return release(func(ctx context.Context) error {
			_ = lease.Release(ctx)
			if releases.Add(1)%every == 0 {
				return errors.New("NOPERM planted")
			}
			return nil
		}), nil
	})
}

type release func(context.Context) error

func (r release) Release(ctx context.Context) error { return r(ctx) }

// A run is believed up to one error in a hundred acquisitions.
func TestErrorsMakeARunInvalid(t *testing.T) {
	for _, test := range []struct {
		every int64
		valid bool
	}{{50, false}, {90, false}, {150, true}, {1000, true}} {
		run := do(t, failing(t, test.every), workload(func(w *workloads.Spec) { w.Duration = workloads.Duration(3 * time.Second) }))
		if run.Valid() != test.valid || run.Speed.Acquisitions < 1000 {
			t.Errorf("an error each %d acquisitions: invalid %q, errors %v, %d acquisitions", test.every, run.Invalid, run.Errors, run.Speed.Acquisitions)
		}
		if !test.valid && !strings.Contains(strings.Join(run.Invalid, ""), "NOPERM planted") {
			t.Errorf("the reason %q does not name the error", run.Invalid)
		}
	}
}

// A run that got nothing says nothing of its lock, even without an error.
func TestNoAcquisitionMakesARunInvalid(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 0, wait) // a lock that nobody releases
	run := do(t, v, workload(nil))
	if run.Valid() || run.Speed.Acquisitions > 0 || len(run.Errors) > 0 {
		t.Errorf("invalid %q, %d acquisitions, errors %v", run.Invalid, run.Speed.Acquisitions, run.Errors)
	}
}

// Of several generators one may get nothing while the others hold the lock.
func TestOfASessionOneGeneratorMayGetNothing(t *testing.T) {
	r := newRun(Job{Strategy: lock(t, strategies.Info{Capacity: 1}, 0, wait), Workload: workload(nil), Session: "test", Generator: "one"})
	if why := r.failed(&results.Run{}); why != "" {
		t.Errorf("invalid: %s", why)
	}
}

// Errors are put down to a fault from its start until 5 s after its end.
func TestFaultsExplainErrors(t *testing.T) {
	second := int64(time.Second)
	d := &disturbance{run: &run{}, faults: []*fault{{injections: []*injection{
		{at: 10 * second, Injection: results.Injection{LastedNS: 2 * second}},
		{at: 30 * second, lasting: true},
	}}}}
	for at, explained := range map[int64]bool{
		9_999: false, 10_000: true, 12_000: true, 16_999: true, 17_001: false, 29_999: false, 30_000: true, 90_000: true,
	} {
		if got := d.explains(at * int64(time.Millisecond)); got != explained {
			t.Errorf("an error at %d ms is explained: %v", at, got)
		}
	}
	if (&disturbance{}).explains(0) {
		t.Error("without faults an error is explained")
	}
}

// What nobody reported is not 0.
func TestEffortThatIsNotReportedIsUnknown(t *testing.T) {
	text := func(x *float64) string {
		if x == nil {
			return "–"
		}
		return fmt.Sprint(*x)
	}
	for _, test := range []struct {
		from, to strategies.ProbeCounts
		waited   bool
		want     string // attempts, wake-ups, futile ones
	}{
		{waited: true, want: "– – –"},
		{want: "– – –"},
		{to: strategies.ProbeCounts{Attempts: 20}, want: "2 0 0"},
		{to: strategies.ProbeCounts{Attempts: 20}, waited: true, want: "2 – –"},
		{to: strategies.ProbeCounts{Useful: 10, Futile: 10}, waited: true, want: "– 2 1"},
		{from: strategies.ProbeCounts{Attempts: 20, Useful: 5}, to: strategies.ProbeCounts{Attempts: 20, Useful: 5}, waited: true, want: "0 0 0"},
	} {
		e := effort(test.from, test.to, 10, test.waited)
		if got := text(e.Attempts) + " " + text(e.WakeUps) + " " + text(e.Futile); got != test.want {
			t.Errorf("%+v: %s, want %s", test, got, test.want)
		}
	}
	if run := do(t, lock(t, strategies.Info{Capacity: 1}, 1, wait), workload(nil)); run.Effort.Attempts != nil || run.Effort.WakeUps != nil {
		t.Errorf("a lock that never calls its probe: %+v", run.Effort)
	}
}
