package engine

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// invalid returns the reasons why the run's figures cannot be trusted; none for a valid run.
func (r *run) invalid(result *results.Run, o observed) results.Remarks {
	if o.closed == nil || result.WindowNS == 0 {
		return results.Remarks{results.NoWindow.Remark(errNoWindow)}
	}
	why := r.late(result, o)
	if result.StoodStill() {
		why = append(why,
			results.StoodStill.Remark(time.Duration(*result.Generator.StoodStill), time.Duration(result.WindowNS)))
	}
	if !result.TimeAccounting.Balanced {
		why = append(why, results.Unbalanced.Remark(results.Measured(result.TimeAccounting.WorstPercent, "%.2f %%")))
	}
	if n := result.Generator.PoolTimeouts; n > 0 {
		why = append(why, results.PoolTimeouts.Remark(n))
	}
	why = append(why, r.saturated(result)...)
	why = append(why, r.failed(result)...)
	if !o.partial {
		why = append(why, r.faults.absent()...)
	}
	if n := r.driven.silent(r); n > 0 && !o.partial {
		why = append(why, results.DriverSilent.Remark(n))
	}
	if n := result.Safety.Hung; n > 0 {
		why = append(why, results.ClientsHung.Remark(n))
	}
	return why
}

// errNoWindow explains why a run without any measured time has no figures.
var errNoWindow = errors.New("the run was stopped before its measurement window opened")

const (
	longEnough    = 500 * time.Millisecond // in shorter windows the time for the snapshots is too large a share to judge
	observedLimit = 0.1                    // share of the window

	lateLimit  = 0.01                  // share of the starts
	hardlyRuns = 10 * time.Millisecond // p99 until a runnable goroutine runs
)

// late returns a reason if the snapshots at the ends of the window were taken too late. A server is the cause if its
// reply took most of the delay although the generator's goroutines ran in time. Otherwise the generator is the cause.
func (r *run) late(result *results.Run, o observed) results.Remarks {
	seen, window := o.closed.health.Since(o.opened.health).Wall, time.Duration(result.WindowNS)
	off := (seen - window).Abs()
	if r.dead.Load() || window <= longEnough || float64(off) <= observedLimit*float64(window) {
		return nil
	}
	cause := "the generator was too busy to take its snapshots in time"
	silent := max(o.opened.answered, o.closed.answered)
	if silent > off/2 && time.Duration(result.Generator.SchedulingP99) < silent/10 {
		cause = fmt.Sprintf("the server took %v to reply when the window closed", silent.Round(time.Millisecond))
		if silent == o.opened.answered {
			cause = fmt.Sprintf("the server took %v to reply when the window opened", silent.Round(time.Millisecond))
		}
	}
	return results.Remarks{results.SeenLate.Remark(seen, window, cause)}
}

// saturated returns a reason if an open loop did not reach its rate because of the generator, not because of the lock.
func (r *run) saturated(result *results.Run) results.Remarks {
	g := result.Generator
	switch {
	case r.arrivals == nil:
		return nil
	case float64(g.LateStarts) > lateLimit*float64(g.Starts):
		return results.Remarks{results.LateStarts.Remark(g.LateStarts, g.Starts)}
	case r.behind(result) && time.Duration(g.SchedulingP99) > hardlyRuns:
		return results.Remarks{results.RateNotOffered.Remark(r.Workload.Rate, time.Duration(g.SchedulingP99))}
	}
	return nil
}

// behind reports whether the share of an open loop's arrivals that found all clients busy exceeds lateLimit.
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

// ours returns the share of all cores' time, in percent, that was used by the generator, its drivers, and the servers
// on this machine.
func (r *run) ours(result *results.Run) float64 {
	used := result.Generator.CPUPercent
	if drivers := result.Generator.DriverCPUSeconds; drivers != nil && result.WindowNS > 0 {
		used += *drivers / time.Duration(result.WindowNS).Seconds() * 100
	}
	if redis := result.Server.Window.CPUPercent(); redis != nil && r.remote() && r.Target.Local() {
		used += *redis
	}
	if result.WindowNS > 0 {
		used += r.rowsCPU / time.Duration(result.WindowNS).Seconds() * 100
	}
	return used / float64(runtime.NumCPU())
}

// labels returns cautions about the interpretation of the figures.
func (r *run) labels(result *results.Run) results.Remarks {
	var labels results.Remarks
	if result.Speed.Acquisitions > 0 && result.Server.Window == nil && r.remote() && result.Server.Whole != nil {
		labels = append(labels, results.NoServerCounts.Remark())
	}
	main := result.Server.Window.MainThreadPercent()
	redisBound := main != nil && *main >= busy
	disturbed := othersLabels(result.Generator)
	switch idle := result.Generator.MachineIdle; {
	case redisBound:
		labels = append(labels, results.RedisBound.Remark())
	case idle != nil && *idle < barelyIdle && r.ours(result) >= mostlyOurs:
		labels = append(labels, results.GeneratorBound.Remark())
	case idle != nil && *idle < barelyIdle && len(disturbed) == 0:
		// If disturbed is not empty, its labels already report the load.
		labels = append(labels, results.BusyMachine.Remark())
	}
	labels = append(labels, disturbed...)
	if slices.ContainsFunc(r.Workload.Faults,
		func(f workloads.Fault) bool { return f.Kind().Place == workloads.OnNetwork }) {
		labels = append(labels, results.ThroughProxies.Remark())
	}
	labels = append(labels, result.ShortOfARound()...)
	if len(r.Strategy.Parts) > 0 && r.asked != r.Workload.Instances {
		labels = append(labels, results.EqualParts.Remark(r.Workload.Instances))
	}
	if r.behind(result) {
		labels = append(labels, results.Overloaded.Remark(r.Workload.Rate, r.Workload.Clients))
	}
	labels = append(labels, r.driven.ownTime(result)...)
	labels = append(labels, r.outlived(result.Speed)...)
	labels = append(labels, r.beyondTimeout(result)...)
	if r.unended > 0 {
		labels = append(labels, results.WaitsNotEnded.Remark(results.CountOf(r.unended, "key")))
	}
	if r.shared() {
		labels = append(labels, results.PartOfASession.Remark())
	}
	if whole := result.Server.Whole; !r.shared() && whole != nil && whole.OtherTraffic != nil &&
		*whole.OtherTraffic > otherTrafficLimit {
		labels = append(labels, results.OtherTraffic.Remark(results.Measured(*whole.OtherTraffic, "%.1f%%")))
	}
	if ran := time.Duration(result.WindowNS); result.Partial && ran > 0 {
		labels = append(labels, results.CutShort.Remark(ran))
	}
	return labels
}

// outlived returns a label if a client held its lock for longer than the TTL and the strategy has no watchdog. Such a
// lock claims exclusion only while the lease is valid. Afterwards several clients may use the protected resource at the
// same time, although the lock keeps its claim.
func (r *run) outlived(s results.Speed) results.Remarks {
	longest := s.Hold.Max
	if r.info.Claims.Watchdog || r.info.Nodes == 0 || longest == nil || longest.NS <= int64(r.Workload.TTL) {
		return nil
	}
	return results.Remarks{results.OutlivedLease.Remark(time.Duration(longest.NS), r.Workload.TTL)}
}

// overtime counts the waits that exceeded their timeout by more than overtimeLimit.
type overtime struct{ count, longest atomic.Int64 } // longest in ns, from the call of Acquire

const (
	// overtimeLimit is how much a wait may exceed its timeout before overtime counts it. A busy machine delays some waits.
	overtimeLimit = 500 * time.Millisecond
	// overtimeShare is the smallest share of waits counted in overtime for which a run gets a label.
	overtimeShare = 0.01
)

// waited counts a wait between the instants from and to if it exceeded its timeout by more than overtimeLimit.
func (r *run) waited(from, to int64) {
	limit, o := r.Workload.Timeout, &r.overtime
	if limit == nil || to-from <= int64(*limit)+int64(overtimeLimit) || !r.window.Contains(to) {
		return
	}
	o.count.Add(1)
	for longest := o.longest.Load(); to-from > longest && !o.longest.CompareAndSwap(longest, to-from); {
		longest = o.longest.Load()
	}
}

// beyondTimeout returns a label if the share of waits counted in overtime is at least overtimeShare. If the workload
// has faults, it returns none, because a fault may have delayed the clients' commands.
func (r *run) beyondTimeout(result *results.Run) results.Remarks {
	late, ended := r.overtime.count.Load(), result.Speed.Acquisitions+result.Waiting.TimedOut
	if late == 0 || float64(late) < overtimeShare*float64(ended) || len(r.Workload.Faults) > 0 {
		return nil
	}
	return results.Remarks{results.BeyondTimeout.Remark(results.CountOf(int(late), "wait"), overtimeLimit,
		*r.Workload.Timeout, time.Duration(r.overtime.longest.Load()))}
}

// errorLimit is the ratio of errors to acquisitions above which a run is invalid.
const errorLimit = 0.01

// failed returns a reason if the run has no acquisition, or more errors than errorLimit allows.
func (r *run) failed(result *results.Run) results.Remarks {
	granted, failures := result.Speed.Acquisitions, r.failures.Load()
	switch {
	case granted == 0 && len(result.Errors) > 0:
		return results.Remarks{results.OnlyErrors.Remark(result.Errors[0].Error)}
	case granted == 0 && len(r.Workload.Faults) == 0 && !r.shared():
		// In a shared session a run without acquisitions is valid, because the other processes may have held the lock all the
		// time.
		return results.Remarks{results.NoAcquisition.Remark()}
	case float64(failures) > errorLimit*float64(granted):
		return results.Remarks{results.ManyErrors.Remark(failures, granted, results.Measured(errorLimit*100, "%.0f %%"),
			result.Errors[0].Error)}
	}
	return nil
}

const (
	// otherCPULimit is the share of all cores, in percent, above which the CPU time of other processes gets a label.
	otherCPULimit = 10.0
	// stealLimit is the share of all cores, in percent, above which time stolen by the hypervisor gets a label. It is
	// lower than otherCPULimit because the hypervisor takes whole milliseconds, during which a holder does not run.
	stealLimit = 2.0
)

// othersLabels returns a label if other processes used more CPU time than otherCPULimit, and a label if the hypervisor
// took more than stealLimit.
func othersLabels(g results.Generator) results.Remarks {
	var labels results.Remarks
	if g.OtherCPU != nil && *g.OtherCPU > otherCPULimit {
		labels = append(labels, results.OtherCPU.Remark(results.Measured(*g.OtherCPU, "%.0f%%")))
	}
	if g.Steal != nil && *g.Steal > stealLimit {
		labels = append(labels, results.Stolen.Remark(results.Measured(*g.Steal, "%.1f%%")))
	}
	return labels
}
