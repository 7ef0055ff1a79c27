package limits

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/testkit/virtual"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/workloads"
)

// newQuestion returns a question about the strategy local, whose operations take no time in virtual time.
func newQuestion(t *testing.T, hold string, limit, window time.Duration) Question {
	t.Helper()
	local, err := baselines.Local().Variant(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := workloads.Default()
	w.Clients, w.Instances, w.Warmup, w.Seed = 1000, 1, 0, 7
	w.Duration, w.Hold = workloads.Duration(window), virtual.Dist(t, hold)
	return Question{Strategies: []strategies.Variant{local}, Workload: w, Limit: limit}
}

// measured returns a Measure that runs the engine in virtual time, so that the result depends only on the seed.
func measured(t *testing.T) Measure {
	t.Helper()
	return func(_ context.Context, _ strategies.Variant, w workloads.Spec) (*results.Report, error) {
		run := virtual.Run(t, nil, func(to *workloads.Spec) { *to = w })
		return &results.Report{Runs: []results.Run{*run}}, nil
	}
}

// In an M/M/1 queue a wait is longer than t with the probability ρ·exp(−(1−ρ)·t/s), where s is the mean hold and ρ the
// utilisation (Kleinrock, Queueing Systems 1, 1975). So p99 is s·ln(100ρ)/(1−ρ). The test solves this for the arrival
// rate at which p99 equals the limit. The measured limit must be close to that rate.
func TestLimitMatchesQueueingTheory(t *testing.T) {
	const hold, limit = 2 * time.Millisecond, 40 * time.Millisecond
	low, high := 0.01, 1.0
	for range 60 {
		rho := (low + high) / 2
		if hold.Seconds()*math.Log(100*rho)/(1-rho) < limit.Seconds() {
			low = rho
		} else {
			high = rho
		}
	}
	want := low / hold.Seconds() // arrivals per second
	synctest.Test(t, func(t *testing.T) {
		q := newQuestion(t, "exp:2ms", limit, 2*time.Minute)
		q.Workload.Rate = 100
		if err := q.Validate(); err != nil {
			t.Fatal(err)
		}
		d, err := q.Answer(t.Context(), measured(t))
		if err != nil || len(d.Locks) != 1 {
			t.Fatalf("found %+v: %v", d.Locks, err)
		}
		l := d.Locks[0]
		t.Logf("want %.0f: %+v", want, l)
		if l.Low == nil || l.High == nil || l.Headroom == nil {
			t.Fatal("a figure is missing")
		}
		const off = 0.08 // of p99 in a window of two minutes
		if *l.Low > want*(1+off) || *l.High < want*(1-off) || *l.High / *l.Low > 1.1 {
			t.Errorf("the limit is between %v and %v, want about %v", *l.Low, *l.High, want)
		}
		if math.Abs(l.Closed-500) > 15 || math.Abs(*l.Headroom-*l.Low/100) > 1e-9 {
			t.Errorf("a closed loop has %v, want 500; headroom %v of %v", l.Closed, *l.Headroom, *l.Low)
		}
	})
}

// If the generator cannot offer a rate, the limit must be unknown. A single invalid run must not make the limit
// unknown. In both cases the page must have a chart of the valid runs.
func TestGeneratorBoundLimitIsUnknown(t *testing.T) {
	q := newQuestion(t, "2ms", 100*time.Millisecond, 2*time.Second)
	for _, test := range []struct {
		name    string
		fails   func(rate float64, run int) bool
		unknown bool
	}{
		{"a rate that cannot be offered", func(rate float64, _ int) bool { return rate > 420 }, true},
		{"one run on a busy machine", func(_ float64, run int) bool { return run == 2 }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			runs := 0
			d, err := q.Answer(t.Context(), func(
				_ context.Context, _ strategies.Variant, w workloads.Spec,
			) (*results.Report, error) {
				runs++
				run := results.Run{Speed: results.Speed{PerSecond: min(500, float64(w.Rate))}}
				run.Waiting.PerAcquisition.P99 = &results.Bound{NS: int64(time.Millisecond), AtLeast: w.Rate > 470}
				if w.Rate == 0 {
					run.Speed.PerSecond = 500
				} else if test.fails(float64(w.Rate), runs) {
					run.Invalid = results.Remarks{results.LateStarts.Remark(11, 500)}
				}
				return &results.Report{Runs: []results.Run{run}}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			l := d.Locks[0]
			if (l.Unknown != "") != test.unknown || l.Low == nil || test.unknown == (l.High != nil) || runs > mostRuns+attempts {
				t.Errorf("after %d runs: %+v", runs, l)
			}
			var page bytes.Buffer
			if err := document.WriteHTML(&page, d); err != nil ||
				!strings.Contains(page.String(), "<figcaption>Wait p99 against the rate</figcaption>") {
				t.Errorf("the page has no chart: %v", err)
			}
		})
	}
}

// If a run fails, Answer must return the error of the run, and a document without the lock whose search has not ended.
func TestErrorEndsSearch(t *testing.T) {
	q := newQuestion(t, "2ms", 100*time.Millisecond, 2*time.Second)
	gone := errors.New("gone")
	d, err := q.Answer(t.Context(), func(
		context.Context, strategies.Variant, workloads.Spec,
	) (*results.Report, error) {
		return nil, gone
	})
	if !errors.Is(err, gone) || len(d.Locks) != 0 {
		t.Errorf("found %+v: %v", d.Locks, err)
	}
}
