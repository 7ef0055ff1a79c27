package selfcheck

import (
	"context"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// lateness runs a lock that returns at once, in an open loop with enough clients. Clients only wait for the
// generator's own timers, which must count as lateness and not as a wait.
func (s *session) lateness(ctx context.Context, c *Check) error {
	w := workload(100, 10, s.Effort.Window)
	w.Rate, w.Hold = 1000, workloads.Dist{}
	v := strategies.Unlisted(strategies.Info{Name: "at-once", Summary: "lets everybody in at once"},
		func(strategies.Config) (strategies.Locker, error) { return atOnce{}, nil })
	s.say("lateness: a lock that returns at once")
	run, err := s.do(ctx, s.job(v, w))
	if err != nil {
		return err
	}
	wait, service, late := run.Waiting.PerAcquisition, run.Waiting.Service, run.Waiting.Lateness
	c.want(bound(wait.P50) <= 2*bound(service.P50), "p50 of the waits", bound(wait.P50), results.Nanoseconds, "that of Acquire itself")
	c.want(late.Count > 0, "starts with a client to spare", float64(late.Count), results.Number, "some")
	c.inform("they were late by, p50", bound(late.P50), results.Nanoseconds)
	c.inform("p99", bound(late.P99), results.Nanoseconds)
	return nil
}

// atOnce is a Locker that admits every client at once.
type atOnce struct{}

func (atOnce) Acquire(context.Context, string) (strategies.Lease, error) { return given{}, nil }

func (atOnce) Close() error { return nil }
