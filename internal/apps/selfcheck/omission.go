package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/internal/store/redis/servers"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// shown is the part of a stall that the waits must show. A tenth of the arrivals fall into the stall, so the
// longest hundredth of all waits are those of its first tenth. The rest of a fifth allows for chance.
const shown = 0.8

// omission stalls the server for a tenth of an open-loop run and of a closed-loop run. In the open loop the
// arrivals of the stall wait, and the percentiles must show it. In the closed loop clients ask nothing
// while they wait, so only the longest wait can show it.
func (s *session) omission(ctx context.Context, c *Check) error {
	own := s.server.Owned()
	if len(own) == 0 {
		c.unsure("only a server that lockbench started itself is stalled")
		return nil
	}
	v, err := contender()
	if err != nil {
		return err
	}
	stall := s.Effort.Stalled / 10

	w := workload(500, 5, s.Effort.Stalled)
	w.Hold = workloads.Fixed(time.Millisecond)
	w.Rate, w.Arrivals = 200, workloads.ArrivalsConstant
	s.say("omission: %s in an open loop, the server stalls for %v", v.Name(), stall)
	open, stalled, err := s.stalled(ctx, own[0], v, w, stall)
	if err != nil {
		return err
	}
	least := shown * float64(stalled)
	c.inform("server stalled for", float64(stalled), results.Nanoseconds)
	wait := open.Waiting.PerAcquisition
	c.want(bound(wait.P99) >= least, fmt.Sprintf("open loop, %d waits: p99", wait.Count), bound(wait.P99), results.Nanoseconds, "at least %v of the stall", shown)
	c.want(bound(wait.P50) <= least/2, "open loop: p50, not stalled", bound(wait.P50), results.Nanoseconds, "at most %v of it", shown/2)

	w = workload(10, 5, s.Effort.Stalled)
	w.Hold = workloads.Fixed(time.Millisecond)
	s.say("omission: %s in a closed loop, the server stalls for %v", v.Name(), stall)
	closed, stalled, err := s.stalled(ctx, own[0], v, w, stall)
	if err != nil {
		return err
	}
	least = shown * float64(stalled)
	wait = closed.Waiting.PerAcquisition
	c.want(bound(closed.Fairness.LongestWait) >= least, "closed loop: longest wait", bound(closed.Fairness.LongestWait), results.Nanoseconds, "at least %v of the stall", shown)
	c.inform(fmt.Sprintf("closed loop, %d waits: p99, which misses it", wait.Count), bound(wait.P99), results.Nanoseconds)
	return nil
}

// stalled runs a strategy and stops the server in the middle of the window. It returns the length of the
// stop.
func (s *session) stalled(ctx context.Context, server servers.Own, v strategies.Variant, w workloads.Spec, stall time.Duration) (*results.Run, time.Duration, error) {
	job := s.job(v, w)
	var stalling sync.WaitGroup
	var lasted time.Duration
	var failed error
	job.Phase = func(phase string) {
		if phase == "measure" {
			stalling.Go(func() { lasted, failed = stop(ctx, server, time.Duration(w.Duration)/3, stall) })
		}
	}
	run, err := s.do(ctx, job)
	stalling.Wait()
	if err := errors.Join(err, failed); err != nil {
		return nil, 0, err
	}
	return run, lasted, nil
}

// stop pauses a server after a while, and always resumes it.
func stop(ctx context.Context, server servers.Own, after, stall time.Duration) (time.Duration, error) {
	if !pause.Plain(ctx.Done(), after) {
		return 0, ctx.Err()
	}
	always := context.WithoutCancel(ctx)
	began := time.Now()
	if err := server.Pause(always); err != nil {
		return 0, fmt.Errorf("stall the server: %w", err)
	}
	pause.Plain(ctx.Done(), stall)
	if err := server.Resume(always); err != nil {
		return 0, fmt.Errorf("end the server's stall: %w", err)
	}
	return time.Since(began), nil
}
