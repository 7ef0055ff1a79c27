package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/local"
	"github.com/lockbench/lockbench/strategies/noop"
	"github.com/lockbench/lockbench/workloads"
)

// measureFloors finds out what this machine can do at best.
func (s *session) measureFloors(ctx context.Context) error {
	s.progress("", 0, "floors", 0)
	floors := &results.Floors{}
	for _, f := range []struct {
		of   strategies.Strategy
		into *float64
	}{{noop.Strategy(), &floors.NoopPerSecond}, {local.Strategy(), &floors.LocalPerSecond}} {
		perSecond, err := s.throughputOf(ctx, f.of)
		if err != nil {
			return fmt.Errorf("measure the floor %s: %w", f.of.Info.Name, err)
		}
		*f.into = perSecond
	}
	if err := s.measureRoundTrips(ctx, floors); err != nil {
		return err
	}
	if ctx.Err() == nil {
		s.report.Floors = floors
	}
	return nil
}

// throughputOf is the rate of an in-process strategy with the plan's clients and
// nothing else to do.
func (s *session) throughputOf(ctx context.Context, strategy strategies.Strategy) (float64, error) {
	v, err := strategy.Variant(nil)
	if err != nil {
		return 0, err
	}
	w, plan := workloads.Default(), s.report.Workload
	w.Clients, w.Instances, w.Seed, w.Hold = plan.Clients, plan.Instances, plan.Seed, workloads.Dist{}
	w.Warmup, w.Duration = workloads.Duration(50*time.Millisecond), workloads.Duration(250*time.Millisecond)
	run, err := engine.Job{Strategy: v, Workload: w, Session: s.id}.Run(ctx)
	if err != nil {
		return 0, err
	}
	return run.Speed.PerSecond, nil
}

// measureRoundTrips times requests to each store, one after the other on one connection.
func (s *session) measureRoundTrips(ctx context.Context, floors *results.Floors) error {
	for _, p := range s.servers {
		times, err := p.server.RoundTrips(ctx, engine.Prefix+s.id+":floors")
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		if p.name == store.Redis {
			floors.PingP50, floors.PingP99, floors.EvalP50, floors.EvalP99 = times.PingP50, times.PingP99, times.ScriptP50, times.ScriptP99
			continue
		}
		of := s.other(p.name)
		of.RequestP50, of.RequestP99 = times.PingP50, times.PingP99
	}
	return nil
}
