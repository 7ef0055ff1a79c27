package selfcheck

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

const (
	localOff    = 2.0 // permitted error of waits against their prediction, in percent
	redisOff    = 5.0
	anchorOff   = 2.0 // permitted error of holds against the server's clock, in percent
	reportedOff = 0.1 // permitted error of the report against the single records, in percent
	loadOff     = 10  // permitted error of a utilisation, in percentage points
)

// queueing lets customers arrive at a lock at random. It compares their waits with Lindley's recursion, their
// holds with the server's clock, and the report with both.
func (s *session) queueing(ctx context.Context, c *Check) error {
	nodes, err := s.server.Clients(ctx, engine.Prefix+s.id+":clock", 4, nil)
	if err != nil {
		return fmt.Errorf("connect to ask for the time: %w", err)
	}
	clock := nodes[0].Client
	defer func() { _ = clock.Close() }()

	remote := 0
	for _, v := range registered(s.Effort.Queues...) {
		off := localOff
		if v.Info().Nodes > 0 {
			off = redisOff
			remote++
		}
		if err := s.queue(ctx, c, v, off, clock); err != nil {
			return err
		}
	}
	if remote == 0 {
		c.unsure("this program has no FIFO lock on Redis")
	}
	return nil
}

// queue checks one strategy at every load.
func (s *session) queue(ctx context.Context, c *Check, v strategies.Variant, off float64, clock redis.UniversalClient) error {
	name := v.Name()
	s.say("queueing: how fast is %s", name)
	service, err := s.serviceTime(ctx, v, clock)
	if err != nil {
		return err
	}
	var brackets []bracket
	worst := 0.0 // of the reports
	for _, load := range s.Effort.Loads {
		var p prediction
		// Repeat once if the service time has changed meanwhile.
		for try := 0; try == 0 || try == 1 && math.Abs(p.load()-load*100) > loadOff; try++ {
			s.say("queueing: %s at a utilisation of %v", name, load)
			w := queueWorkload(load/service, time.Hour)
			w.Iterations = int64(s.Effort.Customers)
			seen := newAnchor(ctx, clock, w.Clients)
			run, err := s.watched(ctx, v, w, seen)
			if err != nil {
				return err
			}
			p = lindley(seen.counted())
			service = p.service()
			brackets = append(brackets, seen.brackets...)
			worst = max(worst, reported(run, seen))
			if !run.TimeAccounting.Balanced {
				c.unsure("%s at %v: the time accounts do not balance", name, load)
			}
		}
		if p.customers < s.Effort.Customers-1 { // the last may be after the window's end
			c.unsure("%s at %v: only %d customers came", name, load, p.customers)
		}
		if math.Abs(p.load()-load*100) > loadOff {
			c.unsure("%s at %v: the utilisation came to %.0f %%, twice", name, load, p.load())
		}
		c.inform(fmt.Sprintf("%s at %v: utilisation, handoffs included", name, load), p.load(), results.Percent)
		c.want(p.off() <= off, fmt.Sprintf("%s at %v: %d waits off their prediction", name, load, p.customers), p.off(), results.Percent, "at most %v %%", off)
	}
	against := compare(brackets)
	c.want(math.Abs(against.percent) <= anchorOff, fmt.Sprintf("%s: %d holds longer than by the server's TIME", name, against.compared),
		against.percent, results.Percent, "within %v %%", anchorOff)
	c.want(worst <= reportedOff, fmt.Sprintf("%s: report off the single records", name), worst, results.Percent, "at most %v %%", reportedOff)
	return nil
}

// queueWorkload lets customers arrive at random, at this rate per second, and hold for an exponential time. A
// timer takes about a millisecond too long, so the actual holds count.
func queueWorkload(rate float64, window time.Duration) workloads.Spec {
	w := workload(200, 4, window)
	_ = w.Hold.UnmarshalText([]byte("exp:500us")) // a constant
	w.Rate = workloads.Rate(rate)
	return w
}

// few customers per second hardly queue, and are enough to measure the service time.
const few = 250

// serviceTime returns how long a customer occupies the lock, in seconds: its hold and the handoff.
func (s *session) serviceTime(ctx context.Context, v strategies.Variant, clock redis.UniversalClient) (float64, error) {
	w := queueWorkload(few, s.Effort.Window)
	seen := newAnchor(ctx, clock, w.Clients)
	if _, err := s.watched(ctx, v, w, seen); err != nil {
		return 0, err
	}
	p := lindley(seen.counted())
	if p.customers == 0 {
		return 0, fmt.Errorf("nobody got %s", v.Name())
	}
	return p.service(), nil
}

// watched runs a strategy with an Observer.
func (s *session) watched(ctx context.Context, v strategies.Variant, w workloads.Spec, seen engine.Observer) (*results.Run, error) {
	job := s.job(v, w)
	job.Observer = seen
	return s.do(ctx, job)
}

// reported returns the largest difference, in percent, between the waits and holds in the report and in the
// single records. A hold belongs to the window if it ended in it; the window ended with the last grant.
func reported(run *results.Run, seen *anchor) float64 {
	var waits, holds, ended float64
	counted := seen.counted()
	var last int64
	for _, a := range counted {
		waits += float64(a.Granted - a.Asked)
		last = max(last, a.Granted)
	}
	for _, a := range counted {
		if a.Released <= last {
			holds += float64(a.Released - a.Granted)
			ended++
		}
	}
	if len(counted) == 0 || ended == 0 || run.Waiting.Service.MeanNS == nil || run.Speed.Hold.MeanNS == nil {
		return math.NaN()
	}
	off := func(report, records float64) float64 { return math.Abs(report/records-1) * 100 }
	return max(off(*run.Waiting.Service.MeanNS*float64(run.Waiting.Service.Count), waits), off(*run.Speed.Hold.MeanNS*float64(run.Speed.Hold.Count), holds))
}
