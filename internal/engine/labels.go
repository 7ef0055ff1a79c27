package engine

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/workloads"
)

// invalid says why the figures cannot be trusted.
func (r *run) invalid(result *results.Run, o observed) []string {
	if o.closed == nil || result.WindowNS == 0 {
		return []string{errNoWindow.Error()}
	}
	var why []string
	if reason := r.late(result, o); reason != "" {
		why = append(why, reason)
	}
	if result.StoodStill() {
		why = append(why, fmt.Sprintf("lockbench itself did not run for %v of %v: it was stopped, or its machine was",
			time.Duration(*result.Generator.StoodStill).Round(time.Millisecond),
			time.Duration(result.WindowNS).Round(time.Millisecond)))
	}
	if !result.TimeAccounting.Balanced {
		why = append(why, fmt.Sprintf("its time accounts do not balance: a client's phases differ from the window by "+
			"%.2f %%", result.TimeAccounting.WorstPercent))
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
	if n := r.driven.silent(r); n > 0 && !o.partial {
		why = append(why, fmt.Sprintf("its driver does not say what %d of its clients did at the end", n))
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

// late says why the ends of the window were not observed in time; "" if they were. The servers are read at both ends:
// they are the cause if they took most of the difference to answer, and the generator's own goroutines ran in time.
func (r *run) late(result *results.Run, o observed) string {
	seen, window := o.closed.health.Since(o.opened.health).Wall, time.Duration(result.WindowNS)
	off := (seen - window).Abs()
	if r.dead.Load() || window <= longEnough || float64(off) <= observedLimit*float64(window) {
		return ""
	}
	cause := "the generator was too busy to look in time"
	silent := max(o.opened.answered, o.closed.answered)
	if silent > off/2 && time.Duration(result.Generator.SchedulingP99) < silent/10 {
		cause = fmt.Sprintf("the server took %v to answer at its end", silent.Round(time.Millisecond))
		if silent == o.opened.answered {
			cause = fmt.Sprintf("the server took %v to answer at its opening", silent.Round(time.Millisecond))
		}
	}
	return fmt.Sprintf("it was observed for %v of a window of %v: %s", seen.Round(time.Millisecond),
		window.Round(time.Millisecond), cause)
}

// saturated says why the generator, not the lock, kept an open loop from its load.
func (r *run) saturated(result *results.Run) string {
	g := result.Generator
	switch {
	case r.arrivals == nil:
		return ""
	case float64(g.LateStarts) > lateLimit*float64(g.Starts):
		return fmt.Sprintf("the generator was late with %d starts of %d", g.LateStarts, g.Starts)
	case r.behind(result) && time.Duration(g.SchedulingP99) > hardlyRuns:
		return fmt.Sprintf("the generator could not offer %v: its goroutines waited %v to run (p99)", r.Workload.Rate,
			time.Duration(g.SchedulingP99))
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

// ours returns the share of all cores that the generator used, in percent, and Redis if it is on this machine.
func (r *run) ours(result *results.Run) float64 {
	used := result.Generator.CPUPercent
	if drivers := result.Generator.DriverCPUSeconds; drivers != nil && result.WindowNS > 0 {
		used += *drivers / time.Duration(result.WindowNS).Seconds() * 100
	}
	if redis := result.Server.Window.CPUPercent(); redis != nil && r.remote() && r.Target.Local() {
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
	case idle != nil && *idle < barelyIdle && len(disturbed) == 0:
		// else the labels of othersLabels say it with a figure
		labels = append(labels, results.BusyMachine)
	}
	labels = append(labels, disturbed...)
	if slices.ContainsFunc(r.Workload.Faults,
		func(f workloads.Fault) bool { return f.Kind().Place == workloads.OnNetwork }) {
		labels = append(labels, "through proxies")
	}
	if label := result.ShortOfARound(); label != "" {
		labels = append(labels, label)
	}
	if len(r.Strategy.Parts) > 0 && r.asked != r.Workload.Instances {
		labels = append(labels, fmt.Sprintf("in %d instances, as many of each part", r.Workload.Instances))
	}
	if r.behind(result) {
		labels = append(labels, fmt.Sprintf(results.Overloaded+"%v found all %d clients waiting", r.Workload.Rate,
			r.Workload.Clients))
	}
	if label := r.driven.ownTime(result); label != "" {
		labels = append(labels, label)
	}
	if label := r.outlived(result.Speed); label != "" {
		labels = append(labels, label)
	}
	if label := r.beyondTimeout(result); label != "" {
		labels = append(labels, label)
	}
	if r.unended > 0 {
		labels = append(labels,
			fmt.Sprintf("left %s of waits that the driver could not end", words.Count(r.unended, "key")))
	}
	if r.shared() {
		labels = append(labels, results.PartOfASession)
	}
	if whole := result.Server.Whole; !r.shared() && whole != nil && whole.OtherTraffic != nil &&
		*whole.OtherTraffic > otherTrafficLimit {
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
	return fmt.Sprintf("%s: %v for a TTL of %v", results.OutlivedLease,
		time.Duration(longest.NS).Round(time.Millisecond), r.Workload.TTL)
}

// overtime counts the waits that went on beyond their timeout.
type overtime struct{ count, longest atomic.Int64 } // longest in ns, from the call of Acquire

const (
	// overtimeLimit is how long a wait may go on beyond its timeout: a busy machine makes some late.
	overtimeLimit = 500 * time.Millisecond
	// overtimeShare is the share of the waits that may go on for longer without a label.
	overtimeShare = 0.01
)

// waited notes a wait that ended at the instant to.
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

// beyondTimeout returns a label if waits went on although their timeout was over, else "". A fault may have kept their
// commands.
func (r *run) beyondTimeout(result *results.Run) string {
	late, ended := r.overtime.count.Load(), result.Speed.Acquisitions+result.Waiting.TimedOut
	if late == 0 || float64(late) < overtimeShare*float64(ended) || len(r.Workload.Faults) > 0 {
		return ""
	}
	longest := time.Duration(r.overtime.longest.Load()).Round(time.Millisecond)
	return fmt.Sprintf("%s went on for over %v beyond --timeout %v, the longest ended after %v",
		words.Count(int(late), "wait"), overtimeLimit, *r.Workload.Timeout, longest)
}

// errorLimit is the ratio of errors to acquisitions above which a run is invalid.
const errorLimit = 0.01

// failed says why a run with too many errors, or without acquisitions, is invalid.
func (r *run) failed(result *results.Run) string {
	granted, failures := result.Speed.Acquisitions, r.failures.Load()
	switch {
	case granted == 0 && len(result.Errors) > 0:
		return "it had errors and not one acquisition: " + result.Errors[0].Error
	case granted == 0 && len(r.Workload.Faults) == 0 && !r.shared():
		// in a session the other processes may have had the lock
		return "it had not one acquisition"
	case float64(failures) > errorLimit*float64(granted):
		return fmt.Sprintf("%d errors for %d acquisitions, over %.0f %%: %s", failures, granted, errorLimit*100,
			result.Errors[0].Error)
	}
	return ""
}

const (
	// otherCPULimit is the share of all cores, in percent, above which other processes get a label.
	otherCPULimit = 10.0
	// stealLimit is the same for the hypervisor. It is lower: the hypervisor takes whole
	// milliseconds, during which a holder does not run.
	stealLimit = 2.0
)

// othersLabels returns labels that say how much other processes used.
func othersLabels(g results.Generator) []string {
	var labels []string
	if g.OtherCPU != nil && *g.OtherCPU > otherCPULimit {
		labels = append(labels, fmt.Sprintf("%s%.0f%%", results.OtherCPU, *g.OtherCPU))
	}
	if g.Steal != nil && *g.Steal > stealLimit {
		labels = append(labels, fmt.Sprintf("%s%.1f%%", results.Stolen, *g.Steal))
	}
	return labels
}
