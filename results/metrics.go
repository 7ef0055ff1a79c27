package results

import "slices"

// Metrics are all metrics, in the order in which exports write them.
func Metrics() []Metric {
	return slices.Concat(speedMetrics(), waitingMetrics(), fairnessMetrics(), costMetrics(), loadMetrics(), safetyMetrics(), faultMetrics())
}

// FindMetric is the metric of that name.
func FindMetric(name string) (Metric, bool) {
	all := Metrics()
	i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return all[i], true
}

func figureOf(name string, unit Unit, better Better, help string, value func(Run) *float64) Metric {
	return Metric{Name: name, Unit: unit, Better: better, Help: help, value: plainly(value)}
}

func durationOf(name, help string, value func(Run) *Bound) Metric {
	return Metric{Name: name, Unit: Nanoseconds, Better: Lower, Help: help, value: timed(value)}
}

// nanosecondsOf is a figure of the window that is told in seconds.
func nanosecondsOf(name, help string, seconds func(*ServerDelta) *float64) Metric {
	return figureOf(name, Nanoseconds, Lower, help, inNanoseconds(seconds))
}

func inNanoseconds(seconds func(*ServerDelta) *float64) func(Run) *float64 {
	return func(r Run) *float64 {
		s := seconds(r.Server.Window)
		if s == nil {
			return nil
		}
		return new(*s * 1e9)
	}
}

func totalOf(name, help string, count func(Run) *int64) Metric {
	return Metric{
		Name: name, Better: Lower, Help: help, total: true,
		value: plainly(func(r Run) *float64 { return converted(count(r)) }),
	}
}

func speedMetrics() []Metric {
	return []Metric{
		figureOf("acq_per_s", PerSecond, Higher, "leases granted per second", func(r Run) *float64 { return exactly(r.Speed.PerSecond) }),
		figureOf("gap", Nanoseconds, Lower, "time between two holds of a lock that is always waited for", func(r Run) *float64 { return r.Speed.Gap }),
		figureOf("served_per_s", PerSecond, Higher, "clients served per second, with --coalesce more than leases", func(r Run) *float64 { return exactly(r.Speed.ServedPerSecond) }),
		figureOf("utilisation", Percent, Higher, "share of the time that the lock was held", func(r Run) *float64 { return exactly(r.Speed.Utilisation * 100) }),
		durationOf("handoff_p50", "start of a release → next lease, where somebody waited", func(r Run) *Bound { return r.Speed.Handoff.P50 }),
		durationOf("handoff_p99", "the same", func(r Run) *Bound { return r.Speed.Handoff.P99 }),
		durationOf("release_p50", "start of a release → its return", func(r Run) *Bound { return r.Speed.Release.P50 }),
		durationOf("release_p99", "the same", func(r Run) *Bound { return r.Speed.Release.P99 }),
		{Name: "hold_mean", Unit: Nanoseconds, Help: "lease in hand → start of the release, as it came to", value: plainly(func(r Run) *float64 { return r.Speed.Hold.MeanNS })},
		{Name: "hold_p50", Unit: Nanoseconds, Help: "the same", value: timed(func(r Run) *Bound { return r.Speed.Hold.P50 })},
	}
}

func waitingMetrics() []Metric {
	return []Metric{
		durationOf("wait_p50", "start of an acquire → lease, every wait counting once", func(r Run) *Bound { return r.Waiting.PerAcquisition.P50 }),
		durationOf("wait_p90", "the same", func(r Run) *Bound { return r.Waiting.PerAcquisition.P90 }),
		durationOf("wait_p95", "the same", func(r Run) *Bound { return r.Waiting.PerAcquisition.P95 }),
		durationOf("wait_p99", "the same", func(r Run) *Bound { return r.Waiting.PerAcquisition.P99 }),
		durationOf("wait_p999", "the same", func(r Run) *Bound { return r.Waiting.PerAcquisition.P999 }),
		{
			Name: "wait_max", Unit: Nanoseconds, Better: Lower, Help: "the longest", value: timed(func(r Run) *Bound { return r.Waiting.PerAcquisition.Max }),
			caution: unfinished(func(r Run) Distribution { return r.Waiting.PerAcquisition }),
		},
		durationOf("wait_per_client_p50", "the same, every client counting once", func(r Run) *Bound { return r.Waiting.PerClient.P50 }),
		durationOf("wait_per_client_p99", "the same, every client counting once", func(r Run) *Bound { return r.Waiting.PerClient.P99 }),
		durationOf("start_lateness_p50", "open loop: start meant → start made, by a client that was free", func(r Run) *Bound { return r.Waiting.Lateness.P50 }),
		durationOf("start_lateness_p99", "the same", func(r Run) *Bound { return r.Waiting.Lateness.P99 }),
		figureOf("waits_open", Number, Lower, "waits that had not ended", func(r Run) *float64 { return exactly(r.Waiting.Open) }),
		figureOf("gave_up", Number, Lower, "waits that ended at their timeout", func(r Run) *float64 { return exactly(r.Waiting.GaveUp) }),
	}
}

func fairnessMetrics() []Metric {
	return []Metric{
		figureOf("turns_min", Number, Higher, "acquisitions of the client that got the fewest", func(r Run) *float64 { return exactly(r.Fairness.TurnsMin) }),
		figureOf("turns_max", Number, Neither, "acquisitions of the client that got the most", func(r Run) *float64 { return exactly(r.Fairness.TurnsMax) }),
		figureOf("jain", Number, Higher, "Jain's index of the clients' turns, 1 is even", func(r Run) *float64 { return r.Fairness.Jain }),
		figureOf("starved", Number, Lower, "clients without a turn although there were two for each", starved),
		durationOf("longest_wait", "of any client, open ones included", func(r Run) *Bound { return r.Fairness.LongestWait }),
		figureOf("working_set", Number, Higher, "distinct clients among as many acquisitions as there are clients", func(r Run) *float64 { return r.Fairness.WorkingSet }),
		figureOf("return_p50", Number, Neither, "acquisitions until the same client's next", func(r Run) *float64 { return converted(r.Fairness.Return) }),
		figureOf("overtakes", Percent, Lower, "acquisitions while an earlier arrival waited", func(r Run) *float64 { return r.Fairness.Overtakes }),
		figureOf("largest_bypass", Number, Lower, "most later arrivals served while one client waited", func(r Run) *float64 { return exactly(r.Fairness.LargestBypass) }),
	}
}

func costMetrics() []Metric {
	each := func(name string, unit Unit, help string, total func(*ServerDelta) *int64) Metric {
		return figureOf(name, unit, Lower, help, func(r Run) *float64 {
			if r.Server.Window == nil {
				return nil
			}
			return r.Server.Window.PerAcquisition(total(r.Server.Window))
		})
	}
	return []Metric{
		each("commands_per_acq", Number, "commands that Redis executed, those inside scripts included", func(d *ServerDelta) *int64 { return d.Calls }),
		each("round_trips_per_acq", Number, "requests written to Redis", func(d *ServerDelta) *int64 { return d.RoundTrips }),
		each("bytes_in_per_acq", Bytes, "received by Redis", func(d *ServerDelta) *int64 { return d.BytesIn }),
		each("bytes_out_per_acq", Bytes, "sent by Redis", func(d *ServerDelta) *int64 { return d.BytesOut }),
		{Name: "redis_cpu_per_acq", Unit: Nanoseconds, Better: Lower, Help: "CPU time of Redis, less what idle connections cost; with I/O threads see the next two", value: redisCPU},
		nanosecondsOf("redis_main_cpu_per_acq", "with I/O threads: CPU time of the thread that executes commands", (*ServerDelta).MainPerAcquisition),
		nanosecondsOf("redis_rest_cpu_per_acq", "with I/O threads: CPU time of the other threads, waiting for work included", (*ServerDelta).RestPerAcquisition),
		figureOf("attempts_per_acq", Number, Lower, "tries to take the lock", func(r Run) *float64 { return r.Effort.Attempts }),
		figureOf("wake_ups_per_acq", Number, Lower, "resumptions of a parked waiter", func(r Run) *float64 { return r.Effort.WakeUps }),
		figureOf("futile_wake_ups_per_acq", Number, Lower, "those whose next attempt failed", func(r Run) *float64 { return r.Effort.Futile }),
	}
}

func loadMetrics() []Metric {
	peak := func(value func(*ServerPeak) *int64) func(Run) *float64 {
		return func(r Run) *float64 {
			if r.Server.Peak == nil {
				return nil
			}
			return converted(value(r.Server.Peak))
		}
	}
	return []Metric{
		figureOf("redis_cpu", Percent, Lower, "CPU of Redis, of one core", func(r Run) *float64 { return r.Server.Window.CPUPercent() }),
		figureOf("connections", Number, Lower, "most connections to Redis", peak(func(p *ServerPeak) *int64 { return p.Clients })),
		figureOf("subscriptions", Number, Neither, "most channel subscriptions", peak(func(p *ServerPeak) *int64 { return p.Subscriptions })),
		figureOf("redis_memory", Bytes, Lower, "most memory of Redis", peak(func(p *ServerPeak) *int64 { return p.MemoryBytes })),
	}
}

func safetyMetrics() []Metric {
	always := func(count func(Run) int64) func(Run) *int64 {
		return func(r Run) *int64 {
			n := count(r)
			return &n
		}
	}
	return []Metric{
		totalOf("violations", "overlaps and fencing tokens that went back, claimed or not; at least the broken claims", always(Run.violations)),
		totalOf("overlaps", "more holders than the lock admits, leases still valid", always(func(r Run) int64 { return r.Safety.Overlaps })),
		totalOf("late_overlaps", "overlaps with a holder that had outstayed its lease", always(func(r Run) int64 { return r.Safety.Late })),
		totalOf("fencing_regressions", "fencing tokens not larger than an earlier one", func(r Run) *int64 {
			if r.Safety.FencedLeases == 0 {
				return nil
			}
			return &r.Safety.FencingRegression
		}),
		totalOf("leases_lost", "releases that found the lease gone", always(func(r Run) int64 { return r.Safety.LostLeases })),
		totalOf("lost_updates", "increments under the lock that got lost, with --work counter", func(r Run) *int64 { return r.Safety.LostUpdates }),
		totalOf("left_behind", "keys, channels and connections not declared", func(r Run) *int64 { return r.Safety.LeftoverCount }),
		totalOf("stuck_clients", "clients that did not come back", always(func(r Run) int64 { return int64(r.Safety.Stuck) })),
		totalOf("errors", "of Acquire and Release", always(Run.errors)),
	}
}

// violations counts what no lock may do.
func (r Run) violations() int64 {
	return max(r.Safety.Overlaps+r.Safety.FencingRegression, int64(len(r.Safety.Broken)))
}

// starved is the metric of Fairness.Starved.
func starved(r Run) *float64 {
	if r.Fairness.Starved == nil {
		return nil
	}
	return exactly(*r.Fairness.Starved)
}
