package selfcheck

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// shown is the part of a stall that the waits must show. A tenth of the arrivals fall into the stall, so the
// longest hundredth of all waits are those of its first tenth. The rest of a fifth allows for chance.
const shown = 0.8

// omission stalls the server for a tenth of an open-loop run. The arrivals of the stall wait, and the
// percentiles must show it.
func (s *session) omission(ctx context.Context, c *Check) error {
	if s.server.Describe().Source == "address" {
		c.unsure("only a server that lockbench started itself is stalled")
		return nil
	}
	v, err := contender()
	if err != nil {
		return err
	}
	stall := s.Effort.Stalled / 10
	pause, err := workloads.ParseFault(fmt.Sprintf("pause:at=%v,for=%v", s.Effort.Stalled/4, stall))
	if err != nil {
		return fmt.Errorf("stall the server: %w", err)
	}
	w := workload(500, 5, s.Effort.Stalled)
	w.Rate, w.Arrivals, w.Hold = 200, workloads.ArrivalsConstant, workloads.Fixed(time.Millisecond)
	w.Faults = []workloads.Fault{pause}
	injector := s.server.Faults(w.Faults)
	defer injector.Close()
	job := s.job(v, w)
	job.Faults = injector
	s.say("omission: %s in an open loop, the server stalls for %v", v.Name(), stall)
	run, err := s.do(ctx, job)
	if err != nil {
		return err
	}
	if len(run.Faults) == 0 || len(run.Faults[0].Injections) == 0 {
		c.unsure("the server was not stalled: %s", strings.Join(run.Invalid, "; "))
		return nil
	}
	stalled, wait := float64(run.Faults[0].Injections[0].LastedNS), run.Waiting.PerAcquisition
	c.inform("server stalled for", stalled, results.Nanoseconds)
	c.want(bound(wait.P99) >= shown*stalled, fmt.Sprintf("%d waits: p99", wait.Count), bound(wait.P99),
		results.Nanoseconds, "at least %v of the stall", shown)
	c.want(bound(wait.P50) <= shown*stalled/2, "p50, not stalled", bound(wait.P50),
		results.Nanoseconds, "at most %v of it", shown/2)
	return nil
}

// meanWait is the mean of the exponential waits in the percentiles check.
const meanWait = 40 * time.Millisecond

// percentiles runs a lock with known waits that are independent of each other and of the client, after a
// warm-up. The percentiles per acquisition and per client must both be those of the waits.
func (s *session) percentiles(ctx context.Context, c *Check) error {
	w := workload(1000, 10, s.Effort.Window)
	w.Warmup, w.Hold = workloads.Duration(meanWait), workloads.Dist{}
	lock := newDrawn(meanWait)
	s.say("percentiles: waits that are known")
	run, err := s.do(ctx, s.job(lock.strategy(), w))
	if err != nil {
		return err
	}
	late := time.Duration(lock.late.Load() / max(1, lock.waits.Load()))
	c.inform("waits longer than drawn by, on average", float64(late), results.Nanoseconds)
	want := c.want
	if late > meanWait/20 { // because of the machine, and not the same for all
		want = c.hope
	}
	perAcquisition, perClient := run.Waiting.PerAcquisition, run.Waiting.PerClient
	for _, p := range []struct {
		name  string
		got   *results.Bound
		share float64
	}{
		{"per acquisition: p50", perAcquisition.P50, 0.5},
		{"per acquisition: p90", perAcquisition.P90, 0.9},
		{"per client: p50", perClient.P50, 0.5},
		{"per client: p90", perClient.P90, 0.9},
	} {
		truth := float64(late) - math.Log(1-p.share)*float64(meanWait)
		ok := near(bound(p.got)/truth, 1, 0.05) || p.got != nil && p.got.AtLeast && bound(p.got) < truth
		want(ok, p.name, bound(p.got), results.Nanoseconds, "%v within 5 %%", time.Duration(truth))
	}
	return nil
}

// holds asks for short holds, and compares the recorded holds with the requested ones and with the lock's own
// clock. A busy machine may make a hold too long; none may be too short.
func (s *session) holds(ctx context.Context, c *Check) error {
	for _, asked := range []time.Duration{200 * time.Microsecond, time.Millisecond} {
		w := workload(100, 10, s.Effort.Window)
		w.Hold = workloads.Fixed(asked)
		lock := &queue{}
		s.say("holds: %v", asked)
		run, err := s.do(ctx, s.job(lock.strategy(), w))
		if err != nil {
			return err
		}
		hold := run.Speed.Hold
		mean, own := value(hold.MeanNS), float64(lock.held)/float64(max(1, lock.leases))
		figure := func(name string) string { return fmt.Sprintf("%v: %s", asked, name) }
		clock := figure("mean hold by the lock's own clock")
		// The lock's time encloses each recorded hold.
		if recorded := mean * float64(hold.Count); float64(lock.held) < recorded {
			c.want(false, clock, own, results.Nanoseconds,
				"all together no less than the recorded %v", time.Duration(recorded))
		} else {
			c.hope(near(mean/own, 1, 0.02), clock, own, results.Nanoseconds,
				"as recorded, %v, within 2 %%", time.Duration(mean))
		}
		c.want(bound(hold.P50) >= 0.98*float64(asked), figure("hold p50"), bound(hold.P50),
			results.Nanoseconds, "no less than asked for")
		c.hope(mean <= 1.02*float64(asked), figure("mean hold"), mean,
			results.Nanoseconds, "at most 2 %% more than asked for")
		c.inform(figure("CPU of the generator, of one core"), run.Generator.CPUPercent, results.Percent)
	}
	return nil
}
