package engine

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// summarise computes the run's part of the report from the records.
func (r *run) summarise(o observed, whole *results.ServerDelta, idle *idleCost, left []string) *results.Run {
	result := &results.Run{
		Strategy: r.Strategy.Name(), Round: r.Round, Order: r.Order, Seed: r.Workload.Seed,
		Started: r.clock.Time(r.window.Open), Partial: o.partial,
		Server: results.Server{Whole: whole, Peak: o.peak}, Safety: r.safety(left),
		Errors: r.errors.list(), Timeline: r.timeline.slices, Herd: r.herd.summary(),
	}
	if o.closed != nil {
		result.Generator = generator(*o.opened, *o.closed)
		result.Generator.StoodStill = r.stood
		r.others(result, *o.opened, *o.closed)
	}
	r.recorder.Record(result, r.audit)
	var parts []string
	for _, part := range r.Strategy.Parts {
		name := part.Name()
		if slices.Contains(parts, name) {
			name += " (2)"
		}
		parts = append(parts, name)
	}
	result.Parts = r.recorder.Parts(parts)
	result.Speed.Stall = new(measure.Stall(r.audit))
	result.Record.Contended = r.contended(result.Speed)
	if o.closed != nil {
		r.between(result, *o.opened, *o.closed, idle)
	}
	if r.shared() { // another process may have acquired the key next, so handoffs are unknown
		result.Speed.Handoff, result.Speed.Stall, result.Record.Contended = results.Distribution{}, nil, false
		result.Fairness.PassesWithin = nil
		r.increments(&result.Record)
		if r.leases != nil {
			result.Record.Leases = r.leases.Packed()
		}
	}
	result.Compute()
	result.Faults = r.faults.report(true)
	result.Invalid = append(r.lostKeys(result, whole), r.invalid(result, o)...)
	result.Labels = r.labels(result)
	return result
}

// lostKeys returns a reason for each way in which the servers lost keys. Losses that the workload's faults caused do
// not count. If keys were lost, no claim of the lock can be judged, so the run is invalid and reports no broken claim.
func (r *run) lostKeys(result *results.Run, between *results.ServerDelta) results.Remarks {
	if !r.info.OnRedis() {
		return nil // the locks of the other stores outlive a restart, or end with their sessions
	}
	onServers := func(f workloads.Fault) bool { return f.Kind().Place == workloads.OnServers }
	result.Safety.LostKeys = between.LostKeys(!slices.ContainsFunc(r.Workload.Faults, onServers))
	var why results.Remarks
	for _, way := range result.Safety.LostKeys {
		result.Safety.Broken = nil
		why = append(why, results.KeysLost.Remark(way))
	}
	return why
}

// soFar returns the run as measured until the instant at. ages holds the ages of the open waits. reading may be nil.
func (r *run) soFar(opened snapshot, reading *results.Reading, at int64, ages []results.Wait) results.Run {
	now := snapshot{
		server: reading, readings: r.readings.Load(), probes: r.probes(), grants: r.recorded(), pools: opened.pools,
		health: measure.ReadHealth(),
	}
	result := results.Run{
		Strategy: r.Strategy.Name(), Round: r.Round, Order: r.Order, Seed: r.Workload.Seed,
		Started: r.clock.Time(r.window.Open), WindowNS: max(0, at-r.window.Open), Partial: true,
		Generator: generator(opened, now), Safety: measure.Seen(r.audit), Errors: r.errors.list(),
		Timeline: slices.Clone(r.timeline.slices), Faults: r.faults.report(false),
	}
	r.recorder.SoFar(&result, r.audit)
	result.Record.WithoutTurn = r.recorder.Unserved(ages)
	result.TimeAccounting.Hold = r.recorder.Held(r.audit, at).Seconds()
	waits := &result.Waiting
	waits.Open += int64(len(ages))
	waits.PerAcquisition = results.Sum(waits.PerAcquisition, measure.UnderWay(ages, result.WindowNS))
	r.between(&result, opened, now, nil)
	result.Safety.Broken = broken(r, result.Safety)
	r.lostKeys(&result, result.Server.Window)
	if r.shared() {
		result.Speed.Handoff = results.Distribution{}
	}
	result.Compute()
	return result
}

// increments records the updates and the counters' values, from which the merged report computes the updates lost
// between generators.
func (r *run) increments(record *results.Record) {
	record.Generators = 1
	if r.Workload.Work != workloads.WorkCounter || r.uncertain.Load() > 0 {
		return
	}
	record.Increments = new(int64)
	for i := range r.done {
		*record.Increments += r.done[i].Load()
	}
	for _, n := range r.counts {
		record.Counted = new(n + *cmp.Or(record.Counted, new(int64)))
	}
}

// crowded is the share of acquisitions that must be handoffs for a lock to count as always contended. An acquisition is
// a handoff if a client was waiting at the previous release.
const crowded = 0.99

// contended reports whether clients always waited for the lock. With several keys it also requires that clients choose
// them uniformly.
func (r *run) contended(s results.Speed) bool {
	skewed := len(r.keys) > 1 && !r.Workload.KeyDist.Equal(workloads.KeyDist{})
	return r.info.Capacity == 1 && !skewed && float64(s.Handoff.Count) >= crowded*float64(s.Acquisitions)
}

// between adds to the result what the servers and the strategies counted between two snapshots.
func (r *run) between(result *results.Run, from, to snapshot, idle *idleCost) {
	grants := to.grants - from.grants
	if grants == 0 || r.missed(grants, result.Speed.Acquisitions) {
		return
	}
	if from.server != nil && to.server != nil {
		d := to.server.ClientsSince(*from.server, grants)
		if idle != nil && d.IOThreads <= 1 {
			d.IdleCPU = new(idle.cores*d.Seconds + idle.reading*float64(to.readings-from.readings))
		}
		d.OtherTraffic = nil // requests under way at either end would count as other clients' traffic
		r.unseenTraffic(d)
		if r.shared() {
			d.Own = new(to.server.Observer.Since(from.server.Observer))
		}
		result.Server.Window = d
	}
	if !r.info.BlackBox {
		probed(&result.Record, from.probes, to.probes, grants, result.Speed.Handoff.Count > 0)
	}
}

// probed records what the strategy counted between two snapshots. A lock that has reported no attempt does not report
// attempts at all, so their number is unknown. In the same way, the number of wake-ups is unknown if a client waited
// and the lock has reported none.
func probed(record *results.Record, from, to strategies.ProbeCounts, grants int64, waited bool) {
	record.Granted = grants
	if to.Attempts > 0 {
		record.Attempts = new(to.Attempts - from.Attempts)
	}
	if to.Useful+to.Futile > 0 || to.Attempts > 0 && !waited {
		record.WakeUps = new(to.Useful - from.Useful + to.Futile - from.Futile)
		record.Futile = new(to.Futile - from.Futile)
	}
}

// generator returns the resources that lockbench itself used between two snapshots.
func generator(from, to snapshot) results.Generator {
	spent := to.health.Since(from.health)
	return results.Generator{
		CPUSeconds:    spent.CPU.Seconds(),
		CPUPercent:    spent.CPU.Seconds() / spent.Wall.Seconds() * 100,
		MachineIdle:   spent.MachineIdle,
		SchedulingP99: int64(spent.SchedulingP99),
		GCCount:       spent.GCCycles,
		GCPauseNS:     int64(spent.GCPause),
		GCCPUSeconds:  spent.GCCPU,
		PoolWaits:     to.pools.Waits - from.pools.Waits,
		PoolWaitNS:    to.pools.WaitedNS - from.pools.WaitedNS,
		PoolTimeouts:  to.pools.Timeouts - from.pools.Timeouts,
		PeakRSS:       measure.PeakRSS(),
	}
}

// others adds the share of this machine's CPU time that processes other than lockbench, its drivers and its servers
// used.
func (r *run) others(result *results.Run, from, to snapshot) {
	g := &result.Generator
	g.Steal = to.health.StolenSince(from.health)
	locks, known := 0.0, true
	if r.remote() && r.Target.Local() {
		locks, known = spent(from.server, to.server)
	}
	hub := 0.0
	if r.Hub != nil && r.Hub.Local() && known {
		hub, known = spent(from.hub, to.hub)
	}
	if r.Transactor != nil && !r.rowsWithLocks() && r.Transactor.Local() && known {
		if r.rowsCPU, known = spent(from.rows, to.rows); known {
			hub += r.rowsCPU
		}
	}
	drivers := 0.0
	if from.drivers != nil && to.drivers != nil {
		drivers = *to.drivers - *from.drivers
		g.DriverCPUSeconds = &drivers
	}
	if known { // otherwise Redis may have used all of it
		g.OtherCPU = to.health.OtherCPUSince(from.health, locks+hub+drivers)
	}
}

// spent returns a server's CPU time between two readings in seconds; false if it is unknown, for example after a
// restart of Redis, which resets it to 0.
func spent(from, to *results.Reading) (float64, bool) {
	if from == nil || to == nil || from.CPU == nil || to.CPU == nil || *to.CPU < *from.CPU {
		return 0, false
	}
	return *to.CPU - *from.CPU, true
}

// missed reports whether the grants between the two snapshots differ from those in the window by more than
// observedLimit allows. Snapshots that were taken late cover an interval that differs from the window. The difference
// matters most if the window is short.
func (r *run) missed(seen, granted int64) bool {
	return math.Abs(float64(seen-granted)) > observedLimit*float64(granted)
}

// mostLeftovers is how many leftovers the report lists by name. The report only counts any others.
const mostLeftovers = 20

func (r *run) safety(left []string) results.Safety {
	s := measure.Audit(r.audit)
	s.Hung = len(r.hung)
	s.LostUpdates = r.lost
	fenced := s.FencedLeases > 0 && r.lost != nil && r.Workload.Fence != workloads.FenceOff
	if fenced && !r.transacts() || r.transacts() && r.Workload.Row == workloads.RowVersion {
		s.Refused = new(r.refused.Load())
	}
	if !r.unseen {
		s.LeftoverCount = new(int64(len(left)))
	}
	s.Leftovers = left[:min(len(left), mostLeftovers)]
	s.Broken = broken(r, s)
	return s
}

// lockProtects reports whether a lost update proves that the lock admitted several clients. It does not if the lock is
// released before the commit, or if the transaction itself protects its row.
func (r *run) lockProtects() bool {
	return r.Workload.Release == workloads.ReleaseAfterCommit && r.Workload.Row == workloads.RowPlain
}

// broken returns a remark for each claim of the lock that the audit found broken.
func broken(r *run, s results.Safety) results.Remarks {
	var claims results.Remarks
	if r.info.Caveat != "" {
		return nil // a lock that is unsafe by design shows its caveat instead
	}
	if r.info.Claims.Exclusion && s.Overlaps > 0 {
		claims = append(claims, results.Overlapped.Remark(s.Overlaps))
	}
	if lost := s.LostUpdates; r.info.Claims.Exclusion && lost != nil && *lost > 0 && r.lockProtects() &&
		s.Overlaps+s.ExpiredOverlaps+s.LostLeases == 0 {
		claims = append(claims, results.UpdatesLost.Remark(*lost))
	}
	if r.info.Claims.Fencing && s.FencingRegression > 0 {
		claims = append(claims, results.TokensRepeated.Remark(s.FencingRegression))
	}
	return claims
}
