package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// Two generators contend for the same key, one for longer than the other. The generator that ends first must not delete
// keys that the other still uses. The generator that ends last must look for leftovers and clean up.
func TestSessionOfTwoGenerators(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]string{
		"the first by name leaves first": "b",
		"the last by name leaves first":  "a",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			var runs map[string]*results.Run
			for _, soon := range []time.Duration{time.Second, 4 * time.Second, 15 * time.Second} {
				if runs = generate(t, server, long, soon); t.Failed() {
					return
				}
				if !begunLate(runs["a"]) && !begunLate(runs["b"]) {
					break
				}
				t.Logf("the machine is so busy that %v were too short to get ready", soon)
			}
			looked := 0
			for generator, run := range runs {
				if n := run.Safety.LeftoverCount; n != nil {
					looked++
					if *n != 0 {
						t.Errorf("%s found %v left", generator, run.Safety.Leftovers)
					}
				}
				if run.Safety.LostLeases > 0 || run.Safety.Overlaps > 0 || len(run.Errors) > 0 ||
					run.Speed.Acquisitions == 0 {
					t.Errorf("%s: %d leases lost, %d overlaps, errors %v, %d acquisitions", generator,
						run.Safety.LostLeases, run.Safety.Overlaps, run.Errors, run.Speed.Acquisitions)
				}
				if run.Speed.Handoff.Count > 0 {
					t.Errorf("%s cannot know of %d handoffs", generator, run.Speed.Handoff.Count)
				}
				// The generators contend for the lock, so neither of them holds it all the time while both run.
				if run.Speed.Utilisation > 0.95 && generator != long {
					t.Errorf("%s held the lock for %.0f %% of the time with another generator", generator,
						run.Speed.Utilisation*100)
				}
			}
			if looked != 1 {
				t.Errorf("%d generators looked for what was left, not the last one alone", looked)
			}
			if keys := server.Client(t).DBSize(t.Context()).Val(); keys > 0 {
				t.Errorf("%d keys left on the server", keys)
			}
		})
	}
}

// generate runs the generators "a" and "b" and returns their runs by these names. soon is the delay before both start,
// and long is the name of the generator that runs twice as long.
func generate(t *testing.T, server *redistest.Server, long string, soon time.Duration) map[string]*results.Run {
	t.Helper()
	runs := map[string]*results.Run{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := time.Now().Add(soon)
	for _, generator := range []string{"a", "b"} {
		j := job(t, server, "fair", func(w *workloads.Spec) {
			w.Clients, w.Instances, w.Hold, w.Duration = 4, 2, workloads.Fixed(5*time.Millisecond),
				workloads.Duration(time.Second)
			if generator == long {
				w.Duration *= 2
			}
		})
		j.Generator, j.Begin = generator, at(start)
		wg.Go(func() {
			run, err := j.Run(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			runs[generator] = run
		})
	}
	wg.Wait()
	return runs
}

func at(start time.Time) func(context.Context) (time.Time, error) {
	return func(context.Context) (time.Time, error) { return start, nil }
}

func begunLate(run *results.Run) bool {
	return run.Labels.Has(results.BegunLate)
}

// preparing is a server whose CPU time grows by 1,000 s with each reading until the run begins, as if another generator
// were still preparing.
type preparing struct {
	store.Target
	begun atomic.Bool
	spent atomic.Int64 // seconds of CPU time
}

func (p *preparing) Read(ctx context.Context) (results.Reading, error) {
	r, err := p.Target.Read(ctx)
	if err == nil && !p.begun.Load() {
		p.spent.Add(1000)
	}
	if r.CPU != nil {
		r.CPU = new(*r.CPU + float64(p.spent.Load()))
	}
	return r, err
}

// TestIdleCPUWithGenerators checks that the server's idle CPU is measured after all generators have prepared, and that
// it includes the cost of the generator's own readings.
func TestIdleCPUWithGenerators(t *testing.T) {
	t.Parallel()
	j := job(t, redistest.Start(t), "spin", func(w *workloads.Spec) {
		w.Hold, w.Duration = workloads.Fixed(5*time.Millisecond), workloads.Duration(2*time.Second)
	})
	server := &preparing{Target: j.Target}
	j.Target, j.Generator = server, "a"
	j.Begin = func(context.Context) (time.Time, error) {
		server.begun.Store(true)
		return time.Now().Add(3 * time.Second), nil
	}
	run, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	window := run.Server.Window
	if window == nil || window.IdleCPU == nil || *window.IdleCPU > 1000 {
		t.Fatalf("with idle CPU time of before the start: %+v", window)
	}
	if window.Own == nil || window.Own.Commands["info"] == 0 || window.Own.BytesOut == 0 {
		t.Errorf("its own readings are %+v", window.Own)
	}
	if n := window.Commands["client|list"]; n > 0 {
		t.Errorf("%d of its own CLIENT LIST count as its clients'", n)
	}
}

// TestStart checks that runs begin at the agreed instant, and that a run that begins too late gets a label.
func TestStart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	short := func(w *workloads.Spec) { w.Warmup, w.Duration = 0, workloads.Duration(100*time.Millisecond) }
	j := job(t, server, "spin", short)
	start := time.Now().Add(1500 * time.Millisecond)
	j.Begin = at(start)
	run, err := j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if run.Started.Before(start) {
		t.Errorf("the window opened %v early", start.Sub(run.Started))
	}
	j.Begin = at(time.Now().Add(-time.Minute))
	run, err = j.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(run.Labels.String(), "began 1m") {
		t.Errorf("it began a minute late and is labelled %v", run.Labels)
	}
	missing := errors.New("a generator is missing")
	j.Begin = func(context.Context) (time.Time, error) { return time.Time{}, missing }
	if run, err = j.Run(t.Context()); run != nil || !errors.Is(err, missing) {
		t.Errorf("without a start: %v, %v", run, err)
	}
}
