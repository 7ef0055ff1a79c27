package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

func TestMain(m *testing.M) {
	poll.ManyAtATime()
	// After a server has died, go-redis dials it once a second. The goroutine that dials notices only at its next try that
	// the pool has been closed, so it may outlive the tests.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// mutex is an in-process lock with a channel of free slots. Its Acquire calls the function acquire.
type mutex struct {
	slots   chan struct{}
	acquire func(ctx context.Context, slots chan struct{}) (strategies.Lease, error)
}

func (m *mutex) Acquire(ctx context.Context, _ string) (strategies.Lease, error) {
	return m.acquire(ctx, m.slots)
}
func (m *mutex) Close() error { return nil }

type slot struct{ slots chan struct{} }

func (s slot) Release(context.Context) error { s.slots <- struct{}{}; return nil }

func wait(ctx context.Context, slots chan struct{}) (strategies.Lease, error) {
	select {
	case <-slots:
		return slot{slots}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var registered atomic.Int64

// lock returns a strategy whose instances share one mutex with this number of slots and this function acquire. The run
// creates the mutex, so that its channel belongs to the run's synctest bubble.
func lock(t *testing.T, info strategies.Info, slots int, acquire func(context.Context, chan struct{}) (strategies.Lease,
	error),
) strategies.Variant {
	t.Helper()
	info.Name = "test" + string(rune('a'+registered.Add(1)))
	made := sync.OnceValue(func() chan struct{} {
		channel := make(chan struct{}, slots)
		for range slots {
			channel <- struct{}{}
		}
		return channel
	})
	strategies.Register(info, struct{}{}, func(strategies.Config, struct{}) (strategies.Locker, error) {
		return &mutex{slots: made(), acquire: acquire}, nil
	})
	v, err := strategies.NewVariant(info.Name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func workload(change func(*workloads.Spec)) workloads.Spec {
	w := workloads.Default()
	w.Clients, w.Instances = 8, 2
	w.Warmup, w.Duration = workloads.Duration(20*time.Millisecond), workloads.Duration(300*time.Millisecond)
	w.Hold = workloads.Fixed(time.Millisecond)
	if change != nil {
		change(&w)
	}
	return w
}

// do runs the engine in virtual time, which a stall of the machine does not affect.
func do(t *testing.T, v strategies.Variant, w workloads.Spec, change ...func(*Job)) (run results.Run) {
	t.Helper()
	change = append(change, func(j *Job) { j.VirtualTime = true })
	synctest.Test(t, func(t *testing.T) { run = runInRealTime(t, v, w, change...) })
	return run
}

// runInRealTime runs the engine by the machine's clock, for tests that depend on the scheduling of goroutines or on
// real delays.
func runInRealTime(t *testing.T, v strategies.Variant, w workloads.Spec, change ...func(*Job)) results.Run {
	t.Helper()
	j := Job{Strategy: v, Workload: w, Session: "test", Number: 1, Round: 1, Order: 1}
	for _, do := range change {
		do(&j)
	}
	run, err := j.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return *run
}

func TestCorrectLockIsMeasured(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1, Claims: strategies.Claims{Exclusion: true}}, 1, wait)
	run := do(t, v, workload(nil))
	if !run.Valid() || len(run.Safety.Broken) > 0 || run.Safety.Overlaps > 0 {
		t.Errorf("invalid %v, safety %+v", run.Invalid, run.Safety)
	}
	if run.Safety.MaxHolders != 1 {
		t.Errorf("%d holders at most, want 1", run.Safety.MaxHolders)
	}
	if run.Speed.Acquisitions == 0 || run.Speed.Utilisation <= 0 || run.Speed.Utilisation > 1 {
		t.Errorf("speed %+v", run.Speed)
	}
	// One of the eight clients holds the lock when the window closes, and the other seven wait.
	if run.Waiting.Open < 6 {
		t.Errorf("%d unfinished waits, want about 7", run.Waiting.Open)
	}
	if run.Speed.Hold.P50.NS < int64(time.Millisecond) {
		t.Errorf("a hold of 1 ms was recorded as %d ns", run.Speed.Hold.P50.NS)
	}
	if run.Speed.Handoff.Count == 0 || run.Speed.Handoff.Count > run.Speed.Acquisitions {
		t.Errorf("%d handoffs for %d acquisitions", run.Speed.Handoff.Count, run.Speed.Acquisitions)
	}
	if got := run.Waiting.PerAcquisition.Count; got != run.Speed.Acquisitions {
		t.Errorf("%d waits for %d acquisitions", got, run.Speed.Acquisitions)
	}
}

// The engine loses the record of one wait of 3 ms. The time accounts then do not balance, so the run must be invalid.
func TestLostWaitInvalidatesRun(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	r := newRun(Job{Strategy: v, Workload: workload(nil), Session: "test", Round: 1, VirtualTime: true})
	var run *results.Run
	var lost atomic.Bool
	r.cycle = func(c *client, since int64) (int64, bool) {
		done, going := c.cycle(since)
		if r.window.Contains(done) && r.window.Contains(done+int64(5*time.Millisecond)) &&
			lost.CompareAndSwap(false, true) {
			time.Sleep(3 * time.Millisecond) // the client loses the record of this wait
			done = r.clock.Now()
		}
		return done, going
	}
	synctest.Test(t, func(t *testing.T) {
		var err error
		if run, err = r.carryOut(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if !lost.Load() {
		t.Fatal("nothing was lost")
	}
	if run.Valid() || !strings.Contains(run.Invalid[0].Text, "the phases of a client add up to") {
		t.Errorf("invalid: %q, books %+v", run.Invalid, run.TimeAccounting)
	}
}

func TestConcurrentHoldersBreakClaim(t *testing.T) {
	for _, session := range []bool{false, true} { // leases that last as long as a session, and others
		v := lock(t, strategies.Info{Capacity: 1, Session: session, Claims: strategies.Claims{Exclusion: true}}, 2,
			wait)
		run := do(t, v, workload(nil))
		if run.Safety.Overlaps == 0 || run.Safety.OverlapNS == 0 || run.Safety.MaxHolders != 2 {
			t.Errorf("session %v: safety %+v", session, run.Safety)
		}
		if len(run.Safety.Broken) != 1 || !strings.Contains(run.Safety.Broken[0].Text, "exclusion") {
			t.Errorf("session %v: broken %q", session, run.Safety.Broken)
		}
	}
	if run := do(t, lock(t, strategies.Info{Capacity: 2, Claims: strategies.Claims{Exclusion: true}}, 2, wait),
		workload(nil)); run.Safety.Overlaps > 0 {
		t.Errorf("two permits of two overlap: %+v", run.Safety)
	}
}

func TestIterationsAreExact(t *testing.T) {
	for _, hold := range []time.Duration{0, time.Millisecond} {
		v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
		run := runInRealTime(t, v, workload(func(w *workloads.Spec) {
			w.Iterations, w.Hold, w.Warmup = 200, workloads.Fixed(hold), 0
		}))
		if run.Speed.Acquisitions != 200 {
			t.Errorf("hold %v: %d acquisitions, want 200", hold, run.Speed.Acquisitions)
		}
		if !run.TimeAccounting.Balanced {
			t.Errorf("hold %v: books %+v", hold, run.TimeAccounting)
		}
	}
}

func TestTimeoutsAreResults(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	timeout := workloads.Duration(2 * time.Millisecond)
	run := do(t, v, workload(func(w *workloads.Spec) {
		w.Timeout, w.Hold = &timeout, workloads.Fixed(20*time.Millisecond)
	}))
	if run.Waiting.TimedOut == 0 || len(run.Errors) > 0 {
		t.Errorf("gave up %d times, errors %v", run.Waiting.TimedOut, run.Errors)
	}
	if waits := run.Waiting.PerAcquisition; waits.Censored < run.Waiting.TimedOut {
		t.Errorf("%d waits timed out, %d are censored", run.Waiting.TimedOut, waits.Censored)
	}
}

func TestZeroTimeoutNeedsTryLock(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	zero := workloads.Duration(0)
	_, err := Job{
		Strategy: v, Workload: workload(func(w *workloads.Spec) { w.Timeout = &zero }),
		Round: 1,
	}.Run(context.Background())
	if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "--timeout 0") {
		t.Errorf("error %v", err)
	}
}

func TestInterruptionKeepsResults(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	w := workload(func(w *workloads.Spec) { w.Duration = workloads.Duration(time.Minute) })
	var run *results.Run
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		var err error
		if run, err = (Job{Strategy: v, Workload: w, Round: 1, VirtualTime: true}).Run(ctx); err != nil {
			t.Fatal(err)
		}
	})
	if !run.Partial || !run.Valid() || run.Speed.Acquisitions == 0 || !run.TimeAccounting.Balanced {
		t.Errorf("partial %v, invalid %v, %d acquisitions, books %+v", run.Partial, run.Invalid, run.Speed.Acquisitions,
			run.TimeAccounting)
	}
	if run.WindowNS >= int64(time.Minute) {
		t.Errorf("window of %d ns", run.WindowNS)
	}
}

func TestRunContinuesAfterErrors(t *testing.T) {
	broken := errors.New("cable cut")
	var n atomic.Int64
	info := strategies.Info{Capacity: 1}
	v := lock(t, info, 1, func(ctx context.Context, slots chan struct{}) (strategies.Lease, error) {
		if n.Add(1)%10 == 0 {
			return nil, broken
		}
		return wait(ctx, slots)
	})
	run := do(t, v, workload(nil))
	if len(run.Errors) != 1 || run.Errors[0].Error != "cable cut" || run.Errors[0].Count == 0 {
		t.Errorf("errors %v", run.Errors)
	}
	if run.Speed.Acquisitions == 0 || run.Failure != "" || !run.TimeAccounting.Balanced {
		t.Errorf("%d acquisitions, failure %q, books %+v", run.Speed.Acquisitions, run.Failure, run.TimeAccounting)
	}
}

func TestStarvedClientIsDetected(t *testing.T) {
	var once sync.Once
	info := strategies.Info{Capacity: 1}
	v := lock(t, info, 1, func(ctx context.Context, slots chan struct{}) (strategies.Lease, error) {
		starve := false
		once.Do(func() { starve = true })
		if starve {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return wait(ctx, slots)
	})
	run := do(t, v, workload(func(w *workloads.Spec) { w.Hold = workloads.Fixed(100 * time.Microsecond) }))
	if run.Fairness.Starved == nil || *run.Fairness.Starved != 1 || run.Fairness.AcquisitionsMin != 0 {
		t.Errorf("fairness %+v", run.Fairness)
	}
	longest := run.Fairness.LongestWait
	if longest == nil || !longest.AtLeast || longest.NS < run.WindowNS {
		t.Errorf("longest wait %+v in a window of %d ns", longest, run.WindowNS)
	}
	// One client in eight starves. The percentiles of the waits per acquisition hide this, but the 90th percentile of the
	// waits per client exceeds the window.
	if p := run.Waiting.PerClient.P90; p == nil || !p.AtLeast {
		t.Errorf("per-client p90 %+v", p)
	}
	if p := run.Waiting.PerAcquisition.P99; p == nil || p.AtLeast {
		t.Errorf("per-acquisition p99 %+v", p)
	}
}

func TestCoalescedClientsShareAnAcquisition(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1, Claims: strategies.Claims{Exclusion: true}}, 1, wait)
	run := do(t, v, workload(func(w *workloads.Spec) { w.Coalesce = true }))
	// There are two instances of four clients each, and in each instance at most one client contends for the lock.
	if run.Waiting.Open == 0 || run.Speed.Served <= run.Speed.Acquisitions {
		t.Errorf("%d served by %d acquisitions", run.Speed.Served, run.Speed.Acquisitions)
	}
	if run.Fairness.Starved == nil || *run.Fairness.Starved > 0 || !run.Valid() || run.Safety.Overlaps > 0 {
		t.Errorf("fairness %+v, invalid %v, safety %+v", run.Fairness, run.Invalid, run.Safety)
	}
	if got := run.Waiting.PerAcquisition.Count; got != run.Speed.Served {
		t.Errorf("%d waits for %d served", got, run.Speed.Served)
	}
}

// Every acquisition fails. The clients that share it must get its error instead of waiting for ever, and must not count
// as served.
func TestCoalescedClientsShareAFailure(t *testing.T) {
	broken := errors.New("the loader has failed")
	v := lock(t, strategies.Info{Capacity: 1}, 1, func(context.Context, chan struct{}) (strategies.Lease, error) {
		time.Sleep(time.Millisecond) // in this virtual time the other clients join the acquisition
		return nil, broken
	})
	run := do(t, v, workload(func(w *workloads.Spec) { w.Coalesce = true }))
	if run.Safety.Hung > 0 || !run.TimeAccounting.Balanced {
		t.Errorf("%d clients hung, books %+v", run.Safety.Hung, run.TimeAccounting)
	}
	if run.Speed.Served > 0 || run.Waiting.PerAcquisition.Count > 0 {
		t.Errorf("%d served by acquisitions that all failed", run.Speed.Served)
	}
	if len(run.Errors) != 1 || run.Errors[0].Error != broken.Error() {
		t.Errorf("errors %v", run.Errors)
	}
}

func TestTimelineCoversWindow(t *testing.T) {
	v := lock(t, strategies.Info{Capacity: 1}, 1, wait)
	run := do(t, v, workload(func(w *workloads.Spec) { w.Duration = workloads.Duration(1300 * time.Millisecond) }))
	if len(run.Timeline) != 2 {
		t.Fatalf("%d slices of 1.3 s, want 2: %+v", len(run.Timeline), run.Timeline)
	}
	var acquisitions int64
	var seconds float64
	for _, s := range run.Timeline {
		acquisitions += s.Acquisitions
		seconds += s.Seconds
		if s.WaitP50 == nil || s.WaitP50.NS > s.WaitP99.NS || s.WaitP99.NS > s.WaitMax.NS || s.Waiting == 0 {
			t.Errorf("slice %+v", s)
		}
	}
	if off := acquisitions - run.Speed.Acquisitions; off < -20 || off > 20 || seconds < 1.29 {
		t.Errorf("%d acquisitions in %.2f s of slices, %d in the window", acquisitions, seconds, run.Speed.Acquisitions)
	}
}
