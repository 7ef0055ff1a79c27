package engine

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// summarise turns the records into the run's part of the report.
func (r *run) summarise(o observed, whole *results.ServerDelta, idle *idleCost, left []string) (*results.Run, error) {
	result := &results.Run{
		Strategy:       r.Strategy.Name(),
		Round:          r.Round,
		Order:          r.Order,
		Seed:           r.Workload.Seed,
		Started:        r.clock.Time(r.window.Open),
		WindowNS:       r.window.Length(),
		Partial:        o.partial,
		TimeAccounting: r.recorder.TimeAccounting(),
		Server:         results.Server{Whole: whole, Peak: o.peak},
		Safety:         r.safety(left),
		Errors:         r.errors.list(),
		Timeline:       r.timeline.slices,
	}
	var err error
	if result.Fairness, err = r.recorder.Fairness(r.audit, r.waiters()); err != nil {
		return result, err
	}
	result.Speed = r.recorder.Speed(len(r.keys))
	if result.Waiting, err = r.recorder.Waiting(); err != nil {
		return result, err
	}
	r.recorder.Distributions(result)
	result.Speed.Gap, result.Speed.Stall = r.gap(result.Speed), new(measure.Stall(r.audit))
	if r.shared() { // another process may have taken the next lease on a key
		result.Speed.Handoff, result.Speed.Gap, result.Speed.Stall = results.Distribution{}, nil, nil
		result.Fairness.PassesWithin = nil
	}
	result.Herd = r.herd.summary()
	if o.closed != nil {
		r.between(result, *o.opened, *o.closed, idle)
	}
	result.Faults = r.disturbance.report()
	result.Invalid = r.invalid(result, o)
	result.Labels = r.labels(result)
	return result, nil
}

// crowded is the least share of acquisitions with a waiter before them at which the lock
// counts as always contended.
const crowded = 0.99

// gap returns the Gap of a run; nil where there is none. Of several keys all must be waited for alike.
func (r *run) gap(s results.Speed) *float64 {
	hold := s.Hold.MeanNS
	skewed := len(r.keys) > 1 && !r.Workload.KeyDist.Equal(workloads.KeyDist{})
	if r.info.Capacity != 1 || skewed || hold == nil || s.Acquisitions == 0 || float64(s.Handoff.Count) < crowded*float64(s.Acquisitions) {
		return nil
	}
	return new(float64(len(r.keys))*float64(r.window.Length())/float64(s.Acquisitions) - *hold)
}

// between fills in the differences of two snapshots.
func (r *run) between(result *results.Run, from, to snapshot, idle *idleCost) {
	grants := to.grants - from.grants
	if r.missed(grants, result.Speed.Acquisitions) {
		grants = 0
	}
	if from.server != nil && to.server != nil && grants > 0 {
		d := to.server.ClientsSince(*from.server, grants)
		if idle != nil && d.IOThreads <= 1 {
			d.IdleCPU = new(idle.cores*d.Seconds + idle.reading*float64(to.readings-from.readings))
		}
		d.OtherTraffic = nil // requests under way at either end would count as other clients' traffic
		result.Server.Window = d
	}
	if !r.info.BlackBox && grants > 0 {
		result.Effort = effort(from.probes, to.probes, grants, result.Speed.Handoff.Count > 0)
	}
	spent := to.health.Since(from.health)
	result.Generator = results.Generator{
		CPUSeconds:    spent.CPU.Seconds(),
		CPUPercent:    spent.CPU.Seconds() / spent.Wall.Seconds() * 100,
		MachineIdle:   spent.MachineIdle,
		StoodStill:    r.stood,
		SchedulingP99: int64(spent.SchedulingP99),
		GCCount:       spent.GCCycles,
		GCPauseNS:     int64(spent.GCPause),
		GCCPUSeconds:  spent.GCCPU,
		PoolWaits:     to.pools.Waits - from.pools.Waits,
		PoolWaitNS:    to.pools.WaitedNS - from.pools.WaitedNS,
		PoolTimeouts:  to.pools.Timeouts - from.pools.Timeouts,
		PeakRSS:       measure.PeakRSS(),
	}
	r.others(result, from, to)
	result.Generator.TimerOvershoot = r.recorder.Overshoot()
	g := &result.Generator
	g.Starts, g.LateStarts, g.BehindStarts = r.recorder.Starts()
}

// effort returns what the strategy counted between two snapshots, divided by the grants. A
// lock that never reported an attempt still made some: then the figure is unknown. The
// same holds for wake-ups if some client waited.
func effort(from, to strategies.ProbeCounts, grants int64, waited bool) results.Effort {
	per := func(n int64) *float64 { return new(float64(n) / float64(grants)) }
	useful, futile := to.Useful-from.Useful, to.Futile-from.Futile
	var e results.Effort
	if to.Attempts > 0 {
		e.Attempts = per(to.Attempts - from.Attempts)
	}
	if to.Useful+to.Futile > 0 || to.Attempts > 0 && !waited {
		e.WakeUps, e.Futile = per(useful+futile), per(futile)
	}
	return e
}

// missed says whether the grants between the two snapshots differ too much from those in
// the window. In a short window the snapshots come late, and the counters describe another
// interval.
func (r *run) missed(seen, granted int64) bool {
	return math.Abs(float64(seen-granted)) > observedLimit*float64(granted)
}

// mostLeftovers are named; the others are only counted.
const mostLeftovers = 20

func (r *run) safety(left []string) results.Safety {
	s := measure.Audit(r.audit)
	s.Hung = len(r.hung)
	s.LostUpdates = r.lost
	if s.FencedLeases > 0 && r.lost != nil && r.Workload.Fence != workloads.FenceOff {
		s.Refused = new(r.refused.Load())
	}
	if !r.unseen {
		s.LeftoverCount = new(int64(len(left)))
	}
	s.Leftovers = left[:min(len(left), mostLeftovers)]
	s.Broken = broken(r, s)
	return s
}

// invalid says why the figures cannot be trusted.
func (r *run) invalid(result *results.Run, o observed) []string {
	if o.closed == nil || result.WindowNS == 0 {
		return []string{errNoWindow.Error()}
	}
	var why []string
	if seen := o.closed.health.Since(o.opened.health).Wall; !r.dead.Load() && time.Duration(result.WindowNS) > longEnough &&
		math.Abs(float64(int64(seen)-result.WindowNS)) > observedLimit*float64(result.WindowNS) {
		why = append(why, fmt.Sprintf("it was observed for %v of a window of %v: the generator was too busy to look in time",
			seen.Round(time.Millisecond), time.Duration(result.WindowNS).Round(time.Millisecond)))
	}
	if result.StoodStill() {
		why = append(why, fmt.Sprintf("lockbench itself did not run for %v of %v: it was stopped, or its machine was",
			time.Duration(*result.Generator.StoodStill).Round(time.Millisecond), time.Duration(result.WindowNS).Round(time.Millisecond)))
	}
	if !result.TimeAccounting.Balanced {
		why = append(why, fmt.Sprintf("its time accounts do not balance: a client's phases differ from the window by %.2f %%", result.TimeAccounting.WorstPercent))
	}
	if n := result.Generator.PoolTimeouts; n > 0 {
		why = append(why, fmt.Sprintf("%d commands timed out waiting for a connection (see --pool)", n))
	}
	if reason := r.saturated(result); reason != "" {
		why = append(why, reason)
	}
	if reason := r.failed(result); reason != "" {
		why = append(why, reason)
	}
	if !o.partial {
		why = append(why, r.disturbance.absent()...)
	}
	if n := result.Safety.Hung; n > 0 {
		why = append(why, fmt.Sprintf("%d clients did not come back when told to stop", n))
	}
	return why
}

const (
	longEnough    = 500 * time.Millisecond // then the time for the snapshots does not matter
	observedLimit = 0.1                    // of the window

	lateLimit  = 0.01                  // of the starts
	hardlyRuns = 10 * time.Millisecond // p99 until a runnable goroutine runs
)

// saturated says why the generator, not the lock, kept an open loop from its load.
func (r *run) saturated(result *results.Run) string {
	g := result.Generator
	switch {
	case r.arrivals == nil:
		return ""
	case float64(g.LateStarts) > lateLimit*float64(g.Starts):
		return fmt.Sprintf("the generator was late with %d starts of %d", g.LateStarts, g.Starts)
	case r.behind(result) && time.Duration(g.SchedulingP99) > hardlyRuns:
		return fmt.Sprintf("the generator could not offer %v: its goroutines waited %v to run (p99)", r.Workload.Rate, time.Duration(g.SchedulingP99))
	}
	return ""
}

// behind says whether too many arrivals of an open loop found all clients busy.
func (r *run) behind(result *results.Run) bool {
	waited := float64(result.Generator.BehindStarts + result.Waiting.Backlog)
	return r.arrivals != nil && waited > lateLimit*float64(result.Generator.Starts)
}

const (
	busy              = 90.0 // percent of the core that runs Redis commands
	barelyIdle        = 10.0 // percent of all cores
	otherTrafficLimit = 1.0  // percent of the bytes Redis received
	mostlyOurs        = 70.0 // percent of all cores
)

// ours returns the share of all cores that the generator and Redis used, in percent, as
// if both were on this machine.
func (r *run) ours(result *results.Run) float64 {
	used := result.Generator.CPUPercent
	if redis := result.Server.Window.CPUPercent(); redis != nil {
		used += *redis
	}
	return used / float64(runtime.NumCPU())
}

// labels tells a reader what limits the figures.
func (r *run) labels(result *results.Run) []string {
	var labels []string
	if result.Speed.Acquisitions > 0 && result.Server.Window == nil && r.remote() && result.Server.Whole != nil {
		labels = append(labels, "window too short for the server's counters")
	}
	main := result.Server.Window.MainThreadPercent()
	redisBound := main != nil && *main >= busy
	disturbed := othersLabels(result.Generator)
	switch idle := result.Generator.MachineIdle; {
	case redisBound:
		labels = append(labels, "redis-bound")
	case idle != nil && *idle < barelyIdle && r.ours(result) >= mostlyOurs:
		labels = append(labels, results.GeneratorBound)
	case idle != nil && *idle < barelyIdle && len(disturbed) == 0: // else the labels of othersLabels say it with a figure
		labels = append(labels, results.BusyMachine)
	}
	labels = append(labels, disturbed...)
	if slices.ContainsFunc(r.Workload.Faults, func(f workloads.Fault) bool { return f.Kind().Place == workloads.OnNetwork }) {
		labels = append(labels, "through proxies")
	}
	if label := r.shortOfARound(result); label != "" {
		labels = append(labels, label)
	}
	if r.behind(result) {
		labels = append(labels, fmt.Sprintf(results.Overloaded+"%v found all %d clients waiting", r.Workload.Rate, r.Workload.Clients))
	}
	if label := r.outlived(result.Speed); label != "" {
		labels = append(labels, label)
	}
	if r.shared() {
		labels = append(labels, results.PartOfASession)
	}
	if whole := result.Server.Whole; !r.shared() && whole != nil && whole.OtherTraffic != nil && *whole.OtherTraffic > otherTrafficLimit {
		labels = append(labels, fmt.Sprintf("other clients' traffic %.1f%%", *whole.OtherTraffic))
	}
	if ran := time.Duration(result.WindowNS); result.Partial && ran > 0 {
		labels = append(labels, "partial: "+ran.Round(time.Millisecond).String())
	}
	return labels
}

// outlived returns a label if some client held its lock for longer than the TTL of a lease
// that nothing renews; else "". The lock claims exclusion only while the lease is valid, so
// the claim can be kept while several clients work on what the lock protects.
func (r *run) outlived(s results.Speed) string {
	longest := s.Hold.Max
	if r.info.Claims.Watchdog || r.info.Nodes == 0 || longest == nil || longest.NS <= int64(r.Workload.TTL) {
		return ""
	}
	return fmt.Sprintf("%s: %v for a TTL of %v", results.OutlivedLease, time.Duration(longest.NS).Round(time.Millisecond), r.Workload.TTL)
}
