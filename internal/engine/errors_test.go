package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// failing returns a lock. Each release frees it, but one release in `every` also returns an error.
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

// A run must be invalid if it has more than one error per hundred acquisitions.
func TestErrorsInvalidateRun(t *testing.T) {
	for _, test := range []struct {
		every int64
		valid bool
	}{{50, false}, {90, false}, {150, true}, {1000, true}} {
		run := do(t, failing(t, test.every),
			workload(func(w *workloads.Spec) { w.Duration = workloads.Duration(3 * time.Second) }))
		if run.Valid() != test.valid || run.Speed.Acquisitions < 1000 {
			t.Errorf("an error each %d acquisitions: invalid %q, errors %v, %d acquisitions", test.every, run.Invalid,
				run.Errors, run.Speed.Acquisitions)
		}
		if !test.valid && !strings.Contains(run.Invalid.String(), "NOPERM planted") {
			t.Errorf("the reason %q does not name the error", run.Invalid)
		}
	}
}

// No slot of the lock is ever free, so no client acquires it and no error occurs. The run must be invalid.
func TestRunWithoutAcquisitionIsInvalid(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 0, wait) // a lock that is never released
	run := do(t, v, workload(nil))
	if run.Valid() || run.Speed.Acquisitions > 0 || len(run.Errors) > 0 {
		t.Errorf("invalid %q, %d acquisitions, errors %v", run.Invalid, run.Speed.Acquisitions, run.Errors)
	}
}

// If several generators share a run, one of them may acquire no lock because the others hold it. Its run stays valid.
func TestGeneratorWithoutAcquisitionIsValid(t *testing.T) {
	r := newRun(Job{
		Strategy: lock(t, strategies.Info{Capacity: 1}, 0, wait), Workload: workload(nil), Session: "test",
		Generator: "one",
	})
	if why := r.failed(&results.Run{}); why != nil {
		t.Errorf("invalid: %s", why)
	}
}

// Errors must count as explained from the start of a fault until 5 s after its end. One of the faults in this test has
// not ended.
func TestFaultsExplainErrors(t *testing.T) {
	second := int64(time.Second)
	l := &faultLog{records: []*faultRecord{{injections: []*injection{
		{at: 10 * second, Injection: results.Injection{LastedNS: 2 * second}},
		{at: 30 * second, lasting: true},
	}}}}
	for at, explained := range map[int64]bool{
		9_999: false, 10_000: true, 12_000: true, 16_999: true, 17_001: false, 29_999: false, 30_000: true,
		90_000: true,
	} {
		if got := l.explains(at * int64(time.Millisecond)); got != explained {
			t.Errorf("an error at %d ms is explained: %v", at, got)
		}
	}
	if (&faultLog{}).explains(0) {
		t.Error("without faults an error is explained")
	}
}

// A count that a strategy does not report is unknown, not 0.
func TestUnreportedEffortIsUnknown(t *testing.T) {
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
		{
			from: strategies.ProbeCounts{Attempts: 20, Useful: 5}, to: strategies.ProbeCounts{Attempts: 20, Useful: 5},
			waited: true, want: "0 0 0",
		},
	} {
		var run results.Run
		probed(&run.Record, test.from, test.to, 10, test.waited)
		run.Compute()
		e := run.Effort
		if got := text(e.Attempts) + " " + text(e.WakeUps) + " " + text(e.Futile); got != test.want {
			t.Errorf("%+v: %s, want %s", test, got, test.want)
		}
	}
	if run := do(t, lock(t, strategies.Info{Capacity: 1}, 1, wait), workload(nil)); run.Effort.Attempts != nil ||
		run.Effort.WakeUps != nil {
		t.Errorf("a lock that never calls its probe: %+v", run.Effort)
	}
}

func TestForeignCPULabels(t *testing.T) {
	for _, test := range []struct {
		foreign, steal *float64
		want           []string
	}{
		{nil, nil, nil},
		{new(10.0), new(2.0), nil},
		{new(10.6), new(0.0), []string{"other CPU 11%"}},
		{new(0.0), new(2.25), []string{"steal 2.2%"}},
		{new(54.4), new(12.0), []string{"other CPU 54%", "steal 12.0%"}},
	} {
		got := othersLabels(results.Generator{OtherCPU: test.foreign, Steal: test.steal})
		if !slices.Equal(got.Texts(), test.want) {
			t.Errorf("foreign %v, steal %v: %q, want %q", test.foreign, test.steal, got, test.want)
		}
		if hurried := (results.Run{Labels: got}).MachineBound(); hurried != (len(test.want) > 0) {
			t.Errorf("%q: hurried %v", got, hurried)
		}
	}
}

// The CPU time between two readings must be unknown, not 0, if a reading is missing or the server has restarted.
func TestCPUTimeSpent(t *testing.T) {
	at := func(seconds float64) *results.Reading { return &results.Reading{CPU: &seconds} }
	for _, test := range []struct {
		name     string
		from, to *results.Reading
		want     float64
		known    bool
	}{
		{"two readings", at(1.5), at(4), 2.5, true},
		{"restarted", at(4), at(0.5), 0, false},
		{"no reading before", nil, at(1), 0, false},
		{"no reading after", at(1), nil, 0, false},
		{"without CPU time", &results.Reading{}, at(1), 0, false},
	} {
		if got, known := spent(test.from, test.to); got != test.want || known != test.known {
			t.Errorf("%s: %v, %v", test.name, got, known)
		}
	}
}

// The gap between two holds is a handoff only if some client always waits for the key. If keys are chosen unevenly,
// some often have no waiter, so contended must return false.
func TestGapOfUnevenKeysIsUnknown(t *testing.T) {
	for dist, known := range map[string]bool{"uniform": true, "zipf:1.1": false} {
		r := &run{info: strategies.Info{Capacity: 1}, keys: []string{"a", "b"}}
		if err := r.Workload.KeyDist.UnmarshalText([]byte(dist)); err != nil {
			t.Fatal(err)
		}
		s := results.Speed{Acquisitions: 1000}
		s.Handoff.Count = 1000
		if got := r.contended(s); got != known {
			t.Errorf("%s: always waited for is %v", dist, got)
		}
	}
	if (workloads.KeyDist{}).String() != "uniform" {
		t.Error("keys are not chosen evenly by default")
	}
}

// Each hold takes 1 s. The first handoff and the drain count from a release, so each must take less than half a hold.
func TestHandoffExcludesHold(t *testing.T) {
	t.Parallel()
	const hold = time.Second
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	run := do(t, v, workload(func(w *workloads.Spec) {
		w.Clients, w.Burst, w.Hold, w.Iterations = 3, workloads.Duration(time.Millisecond), workloads.Fixed(hold), 6
	}))
	if h := run.Herd; h == nil || h.Bursts == 0 || h.FirstHandoff.P50.NS > int64(hold)/2 ||
		h.Drain.P50.NS > int64(hold)/2 {
		t.Errorf("holds of %v, and the next of them after each release: %+v", hold, h)
	}
}

// grantOnClose is a connection whose Close calls handOn, as if the store granted the lock as soon as the connection
// ends.
type grantOnClose struct {
	net.Conn
	handOn func()
}

func (c *grantOnClose) Close() error {
	c.handOn()
	return nil
}

// A target crashes, and the store grants the lock to the next client as soon as the target's connection closes. The two
// holds must not count as an overlap.
func TestGrantAfterCrashDoesNotOverlap(t *testing.T) {
	clock := measure.NewClock()
	window := measure.NewWindow(clock, 0)
	window.Plan(0, math.MaxInt64)
	key := measure.NewKey(window, 1, time.Hour, 2)
	r := &run{clock: clock, window: window, audit: []*measure.Key{key}}
	v := &faultTarget{run: r, cancel: func() {}, wire: newWire(nil), waiter: measure.NewWaiter(0)}
	key.Arrive(v.waiter, clock.Now(), clock.Now())
	v.lease = release(nil)
	key.Enter(v.waiter, clock.Now(), v.lease)
	next := measure.NewWaiter(1)
	key.Arrive(next, clock.Now(), clock.Now())
	handsOn := &grantOnClose{handOn: func() { key.Enter(next, clock.Now(), nil) }}
	if _, err := v.wire.open.Add(handsOn, netfault.Hooks{}); err != nil {
		t.Fatal(err)
	}
	v.kill()
	if safety := measure.Audit(r.audit); safety.Overlaps != 0 || safety.MaxHolders != 1 {
		t.Errorf("%+v", safety)
	}
}

func TestRecoveryAndStallOfStrike(t *testing.T) {
	type got struct{ key, at int64 }
	for _, test := range []struct {
		name     string
		key      int
		over     int64 // 0: at once
		until    int64
		grants   []got
		recovery int64 // -1: never
		stall    results.Bound
	}{
		{"a client gets it", every, 0, 0, []got{{0, 150}, {0, 160}}, 50, results.Bound{NS: 340, AtLeast: true}},
		{"the gap in the middle", every, 0, 0, []got{{0, 110}, {0, 480}, {0, 490}}, 10, results.Bound{NS: 370}},
		{"no client gets it", every, 0, 0, nil, -1, results.Bound{NS: 400, AtLeast: true}},
		{"before it", every, 0, 0, []got{{0, 90}}, -1, results.Bound{NS: 400, AtLeast: true}},
		{"another key", 1, 0, 0, []got{{0, 150}, {1, 300}}, 200, results.Bound{NS: 200}},
		{
			"in flight when everything halts", every, 250, 0,
			[]got{{0, 101}, {0, 260}, {0, 450}},
			160,
			results.Bound{NS: 190},
		},
		{"after the next strike", every, 0, 200, []got{{0, 300}}, 200, results.Bound{NS: 100, AtLeast: true}},
		{"reported late", every, 0, 0, []got{{0, 300}, {0, 290}, {0, 480}}, 200, results.Bound{NS: 200}},
	} {
		s := &injection{
			at: 100, key: test.key, over: max(test.over, 100), lastSeen: 100,
			until: math.MaxInt64,
		}
		if test.until > 0 {
			s.until = test.until
		}
		for _, g := range test.grants {
			s.seen(int(g.key), g.at)
		}
		s.stalled(min(s.until, 500), true)
		if took := s.RecoveryNS; (took == nil) != (test.recovery < 0) || took != nil && *took != test.recovery {
			t.Errorf("%s: recovery %v, want %d", test.name, took, test.recovery)
		}
		if s.Stall == nil || *s.Stall != test.stall {
			t.Errorf("%s: stall %+v, want %+v", test.name, s.Stall, test.stall)
		}
	}
}

type at struct {
	store.Target
	local bool
}

func (a at) Local() bool { return a.local }

// The CPU time of a server counts as load of this machine only if the server runs on this machine.
func TestRemoteServerIsNotLocalLoad(t *testing.T) {
	t.Parallel()
	seen := &results.Run{Server: results.Server{Window: &results.ServerDelta{Seconds: 1, CPU: new(8.0)}}}
	for local, busy := range map[bool]bool{true: true, false: false} {
		r := &run{Job: Job{Target: at{local: local}}, info: strategies.Info{Nodes: 1}}
		if ours := r.ours(seen); (ours > 0) != busy {
			t.Errorf("local %v: %.0f %% of this machine's cores", local, ours)
		}
	}
}

// Each error of Acquire must lead to the same outcome of the wait, whether a lock in this process returns the error or
// a driver reports it.
func TestOutcomesOfWaits(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, test := range []struct {
		err           error
		limited, over bool
		want          measure.Outcome
		reported      CycleError // by a client whose own context has not ended
	}{
		{strategies.ErrHeld, false, false, measure.TimedOut, CycleTimedOut},
		{context.DeadlineExceeded, true, false, measure.TimedOut, CycleTimedOut},
		{context.DeadlineExceeded, false, true, measure.Failed, CycleError(context.DeadlineExceeded.Error())},
		{context.Canceled, true, true, measure.Stopped, CycleStopped},
		{context.Canceled, false, false, measure.Failed, CycleStopped},
		{strategies.ErrNotHeld, true, true, measure.Failed, CycleNotHeld},
		{errors.New("broken pipe"), true, true, measure.Failed, "broken pipe"},
	} {
		if got := outcomeOf(test.err, test.limited, test.over); got != test.want {
			t.Errorf("%v, limited %v, over %v: outcome %d, want %d", test.err, test.limited, test.over, got, test.want)
		}
		reported := ErrorOf(t.Context(), test.err, test.limited)
		if reported != test.reported {
			t.Errorf("%v is reported as %q, want %q", test.err, reported, test.reported)
		}
		limited := test.limited || errors.Is(test.err, strategies.ErrHeld)
		if got := outcomeOf(reported, limited, test.over); got != test.want {
			t.Errorf("reported as %q: outcome %d, want %d", reported, got, test.want)
		}
		if reported := ErrorOf(ended, test.err, test.limited); reported != CycleStopped {
			t.Errorf("%v at the end of the run is reported as %q", test.err, reported)
		}
	}
}
