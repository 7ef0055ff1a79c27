package lockbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
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
	if s.server != nil {
		if err := s.measureRoundTrips(ctx, floors); err != nil {
			return err
		}
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

// roundTrips is enough for a median, and few enough not to show beside a run.
const roundTrips = 300

// measureRoundTrips times commands one after the other on one connection.
func (s *session) measureRoundTrips(ctx context.Context, floors *results.Floors) error {
	nodes, err := s.server.Clients(ctx, engine.Prefix+s.id+":floors", 1, nil)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("connect for the floors: %w", err)
	}
	client := nodes[0].Client
	defer func() {
		for _, n := range nodes {
			_ = n.Client.Close()
		}
	}()
	key := fmt.Sprintf("%s{%s:floor}", engine.Prefix, s.id)
	script := redis.NewScript(`return redis.call('GET', KEYS[1])`)
	scripts := script.Load(ctx, client).Err()
	if scripts != nil && servers.Refused(scripts) == "" {
		return fmt.Errorf("load the floor's script: %w", scripts)
	}
	for _, f := range []struct {
		do       func() error
		p50, p99 **int64
	}{
		{func() error { return client.Ping(ctx).Err() }, &floors.PingP50, &floors.PingP99},
		{func() error {
			if err := script.EvalSha(ctx, client, []string{key}).Err(); !errors.Is(err, redis.Nil) {
				return err
			}
			return nil
		}, &floors.EvalP50, &floors.EvalP99},
	} {
		if scripts != nil && f.p50 == &floors.EvalP50 { // no right to it: the figure is not known
			continue
		}
		times := make([]int64, 0, roundTrips)
		for range roundTrips {
			start := time.Now()
			if err := f.do(); err != nil {
				if ctx.Err() != nil || servers.Refused(err) != "" {
					return nil
				}
				return fmt.Errorf("measure the round trip: %w", err)
			}
			times = append(times, int64(time.Since(start)))
		}
		slices.Sort(times)
		*f.p50, *f.p99 = &times[len(times)/2], &times[len(times)*99/100]
	}
	return nil
}
