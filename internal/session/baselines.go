package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/baselines"
	"github.com/lockbench/lockbench/workloads"
)

// measureBaselines measures bounds for the figures of any lock on this machine: the rates of two in-process strategies
// and the round-trip time to each store.
func (s *session) measureBaselines(ctx context.Context) error {
	s.progress("", 0, "baselines", 0, nil)
	measured := &results.Baselines{}
	for _, f := range []struct {
		of   strategies.Strategy
		into *float64
	}{{baselines.Noop(), &measured.NoopPerSecond}, {baselines.Local(), &measured.LocalPerSecond}} {
		perSecond, err := s.throughputOf(ctx, f.of)
		if err != nil {
			return fmt.Errorf("measure the baseline %s: %w", f.of.Info.Name, err)
		}
		*f.into = perSecond
	}
	if err := s.measureRoundTrips(ctx, measured); err != nil {
		return err
	}
	if ctx.Err() == nil {
		s.report.Baselines = measured
	}
	return nil
}

// throughputOf returns the acquisitions per second of an in-process strategy with the plan's clients and holds of
// length 0.
func (s *session) throughputOf(ctx context.Context, strategy strategies.Strategy) (float64, error) {
	v, err := strategy.Variant(nil)
	if err != nil {
		return 0, err
	}
	w, plan := workloads.Default(), s.report.Workload
	w.Clients, w.Instances, w.Seed, w.Hold = plan.Clients, plan.Instances, plan.Seed, workloads.Dist{}
	w.Warmup = workloads.Duration(50 * time.Millisecond)
	// If the machine stalls for a whole window, no client acquires the lock. The loop then tries a longer window.
	for window := shortestBaseline; ; window *= 4 {
		w.Duration = workloads.Duration(window)
		run, err := engine.Job{Strategy: v, Workload: w, Session: s.id}.Run(ctx)
		if err != nil {
			return 0, err
		}
		if run.Speed.Acquisitions > 0 || ctx.Err() != nil {
			return run.Speed.PerSecond, nil
		}
		if window > longestBaseline {
			return 0, fmt.Errorf("no client acquired a lock within %v", window)
		}
	}
}

// shortestBaseline is the length of the first window of a baseline run. Each further window is longer. The baseline
// fails when a window longer than longestBaseline has no acquisition.
const (
	shortestBaseline = 250 * time.Millisecond
	longestBaseline  = 10 * time.Second
)

// measureRoundTrips measures the latency of sequential requests on one connection to each store.
func (s *session) measureRoundTrips(ctx context.Context, baselines *results.Baselines) error {
	for _, p := range s.servers {
		times, err := p.server.RoundTrips(ctx, engine.Prefix+s.id+":baselines")
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if p.name == store.Redis {
			baselines.PingP50, baselines.PingP99, baselines.EvalP50, baselines.EvalP99 = times.PingP50, times.PingP99,
				times.ScriptP50, times.ScriptP99
			continue
		}
		of := slices.IndexFunc(s.report.Stores, func(other results.Store) bool { return other.Name == p.name })
		s.report.Stores[of].RequestP50, s.report.Stores[of].RequestP99 = times.PingP50, times.PingP99
	}
	return nil
}
