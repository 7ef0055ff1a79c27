// Package limits finds the highest arrival rate that a lock sustains. limits.go implements the search, document.go the
// result.
//
// A lock sustains a rate if the 99th percentile of the waits stays below a limit. As in k6 and wrk2, the load is an
// open loop: a wait begins at the intended arrival, so a lock that falls behind does not slow down the arrivals. The
// search bisects an interval of rates. Its first guess is the rate of a closed loop with many clients.
package limits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Question names the locks and the load of the search. A rate counts as sustained if the 99th percentile of the waits
// stays below Limit.
type Question struct {
	Strategies []strategies.Variant
	// Workload defines the holds, keys, clients and the window of each run. Its number of clients applies to the closed
	// loop; in an open loop, it is the maximum number of arrivals in flight. Its rate is the arrival rate of the service,
	// from which the headroom is computed. 0 means that this rate is not known.
	Workload workloads.Spec
	Limit    time.Duration // for the 99th percentile of the waits
	Redis    lockbench.StoreOptions
	Found    func(lock string, p Point) // called after each run of an open loop; may be nil
}

const (
	mostRuns = 8 // maximum number of valid runs per lock, including the closed loop
	// attempts is the number of invalid runs at one rate after which the search gives up. It is larger than 1, because a
	// single invalid run may be due to a busy machine.
	attempts = 3
	// closeEnough is the ratio of the interval's ends below which the search ends. Further runs would only measure noise.
	closeEnough = 1.04
	// windows is the smallest allowed ratio of a window to Limit. If a lock serves 1/windows fewer clients than arrive,
	// its waits exceed Limit at the end of the window.
	windows = 20
	// spare is the largest allowed ratio of the second guess to the rate of the closed loop. An open loop can exceed that
	// rate, because its clients do not always wait for one another.
	spare = 1.25
)

// Validate returns all errors in the question, joined. The errors name the options of lockbench limits.
func (q Question) Validate() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	w := q.Workload
	if q.Limit <= 0 {
		wrong("--p99 must be above 0, not %v", q.Limit)
	} else if least := windows * q.Limit; time.Duration(w.Duration) < least {
		wrong("--duration must be at least %d times --p99, %v, not %v: a shorter window does not show that a lock falls "+
			"behind", windows, least, time.Duration(w.Duration))
	}
	for _, v := range q.Strategies {
		if v.Info().Driver {
			wrong("--strategy: %s is a driver, and drivers support no open loop", v.Name())
		}
	}
	return errors.Join(append(problems, w.Validate())...)
}

// Measure is a function that runs a workload once with a lock. Tests replace Question.Measure by a function that
// measures in virtual time.
type Measure func(context.Context, strategies.Variant, workloads.Spec) (*results.Report, error)

// Measure runs a workload once with a lock, by lockbench.Run.
func (q Question) Measure(ctx context.Context, v strategies.Variant, w workloads.Spec) (*results.Report, error) {
	return lockbench.Run(ctx, lockbench.Plan{
		Strategies: []strategies.Variant{v}, Workload: w, Rounds: 1, Redis: q.Redis,
	})
}

// Expected returns the approximate duration of the search on the assumption that each lock needs mostRuns runs.
func (q Question) Expected() time.Duration {
	each := time.Duration(q.Workload.Warmup+q.Workload.Duration) + time.Second
	return time.Duration(mostRuns*len(q.Strategies)) * each
}

// Answer searches for the limit of each lock. When ctx ends, the document is Interrupted and leaves out the current
// lock. If a measurement fails, Answer returns its error, and the document contains only the locks whose search is
// complete.
func (q Question) Answer(ctx context.Context, measure Measure) (*Document, error) {
	d := &Document{Head: document.Begin(schema), Question: Asked{q.Workload, q.Limit.Nanoseconds()}}
	var problem error
	for _, v := range q.Strategies {
		found := Lock{Name: v.Name()}
		s := search{q: q, variant: v, measure: measure, document: d, lock: &found}
		if problem = s.run(ctx); problem != nil || ctx.Err() != nil {
			break
		}
		if rate := float64(q.Workload.Rate); found.Low != nil && rate > 0 {
			found.Headroom = new(*found.Low / rate)
		}
		d.Locks = append(d.Locks, found)
	}
	d.Finished, d.Interrupted = time.Now(), ctx.Err() != nil
	return d, problem
}

// search is the state of the search for the limit of one lock. It stores the result in lock, and the descriptions of
// the machine and of Redis in document.
type search struct {
	q        Question
	variant  strategies.Variant
	measure  Measure
	document *Document
	lock     *Lock
}

// run narrows the interval between a rate that is sustained and a rate that is not. It returns when the interval is
// narrow enough, after mostRuns runs, when ctx ends, or if no run at a rate can be trusted.
func (s *search) run(ctx context.Context) error {
	guess, err := s.closed(ctx)
	if err != nil || guess <= 0 {
		return err
	}
	low, high := 0.0, 0.0 // 0 means not known
	failed := 0           // invalid runs at this rate
	for rate, runs := 0.8*guess, 1; runs < mostRuns && ctx.Err() == nil; {
		point, err := s.open(ctx, rate)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		s.lock.Points = append(s.lock.Points, *point)
		if s.q.Found != nil {
			s.q.Found(s.lock.Name, *point)
		}
		switch {
		case point.Invalid != "":
			if failed++; failed < attempts {
				continue
			}
			s.lock.Unknown = fmt.Sprintf("at %s no run can be trusted: %s. This machine is busy, or it cannot generate this "+
				"rate", results.PerSecond.Format(rate), point.Invalid)
		case point.Sustained:
			low = rate
		default:
			high = rate
		}
		if s.lock.Unknown != "" || low > 0 && high > 0 && high/low < closeEnough {
			break
		}
		rate, failed, runs = next(low, high, guess), 0, runs+1
	}
	if low > 0 {
		s.lock.Low = &low
	}
	if high > 0 {
		s.lock.High = &high
	}
	slices.SortFunc(s.lock.Points, func(a, b Point) int { return cmp.Compare(a.Rate, b.Rate) })
	return nil
}

// next returns the next rate to measure. low and high are the ends of the interval of rates. An end that is not known
// yet is 0.
func next(low, high, guess float64) float64 {
	switch {
	case low == 0:
		return high / 2
	case high == 0 && low < guess:
		return min(spare*guess, 1.2*low)
	case high == 0:
		return 1.2 * low
	}
	return (low + high) / 2
}

// closed measures the rate of a closed loop, in acquisitions per second. It returns 0 if the run is not valid or ctx
// has ended.
func (s *search) closed(ctx context.Context) (float64, error) {
	w := s.q.Workload
	w.Rate, w.Arrivals = 0, workloads.Default().Arrivals
	run, err := s.once(ctx, w)
	if err != nil || run == nil {
		return 0, err
	}
	if !run.Valid() {
		s.lock.Unknown = fmt.Sprintf("the closed-loop run cannot be trusted: %s", run.Invalid[0])
		return 0, nil
	}
	s.lock.Closed = run.Speed.PerSecond
	return run.Speed.PerSecond, nil
}

// open measures an open loop with the given arrival rate, in arrivals per second. It returns nil if ctx has ended.
func (s *search) open(ctx context.Context, rate float64) (*Point, error) {
	w := s.q.Workload
	w.Rate = workloads.Rate(rate)
	run, err := s.once(ctx, w)
	if err != nil || run == nil {
		return nil, err
	}
	p := &Point{Rate: rate, P99: run.Waiting.PerAcquisition.P99, PerSecond: run.Speed.PerSecond}
	if len(run.Invalid) > 0 {
		p.Invalid = run.Invalid[0].String()
	}
	p.Sustained = p.Invalid == "" && p.P99 != nil && !p.P99.AtLeast && p.P99.NS < s.q.Limit.Nanoseconds()
	return p, nil
}

// once measures a workload with the lock. It returns nil if ctx has ended, and an error if the measurement left the
// lock out.
func (s *search) once(ctx context.Context, w workloads.Spec) (*results.Run, error) {
	report, err := s.measure(ctx, s.variant, w)
	if ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("measure %s: %w", s.variant.Name(), err)
	}
	s.document.Environment, s.document.Redis = report.Environment, report.Redis
	switch {
	case len(report.Runs) > 0:
		run := &report.Runs[len(report.Runs)-1]
		if broken := run.Safety.Broken; len(broken) > 0 {
			s.lock.Broken = broken.Texts()
		}
		return run, nil
	case len(report.LeftOut) > 0:
		return nil, fmt.Errorf("%s was not measured: %s", s.variant.Name(), report.LeftOut[0].Why)
	}
	return nil, fmt.Errorf("%s was not measured", s.variant.Name())
}
