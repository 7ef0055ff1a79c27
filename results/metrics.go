package results

import (
	"cmp"
	"slices"
)

// Metrics returns all metrics in the order of exports: a new metric is added at the end.
func Metrics() []Metric {
	return slices.Concat(speedMetrics(), waitingMetrics(), fairnessMetrics(), costMetrics(), loadMetrics(), safetyMetrics(), faultMetrics(), laterMetrics(), herdMetrics(), newMetrics())
}

// FindMetric returns the metric of this name.
func FindMetric(name string) (Metric, bool) {
	all := Metrics()
	i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return all[i], true
}

func speedMetrics() []Metric {
	return []Metric{
		{
			Name: "acquisitions", Better: Higher, Whole: true, Help: "leases granted in the window",
			value: always(func(r Run) int64 { return r.Speed.Acquisitions }),
		},
		{
			Name: "acq_per_s", Unit: PerSecond, Better: Higher, Help: "leases granted per second",
			Columns:  []Column{{Group: SpeedGroup, Place: 1, Heading: "acq/s"}, {Group: RatioGroup, Heading: "acq/s"}, {Group: SpreadGroup, Heading: "acq/s"}, {Group: PageGroup, Heading: "acq/s"}, {Group: ShortGroup, Heading: "acq/s"}, {Group: ShortRatioGroup, Heading: "acq/s"}},
			Compared: &Compared{Place: 1, Label: "acquisitions", Resolution: 0.01}, Bench: &Bench{Place: 2, Unit: "acq/s"},
			value: always(func(r Run) float64 { return r.Speed.PerSecond }),
		},
		{
			Name: "gap", Unit: Nanoseconds, Better: Lower, Help: "time between two holds of a lock that is always waited for",
			Columns: when(not(coalesced), Column{Group: SpeedGroup, Place: 3, Heading: "gap"}, Column{Group: ShortGroup, Place: 1, Heading: "gap"}), // clients that shared a lease are no part of it
			value:   maybe(func(r Run) *float64 { return r.Speed.Gap }),
		},
		{
			Name: "served_per_s", Unit: PerSecond, Better: Higher, Help: "clients served per second, with --coalesce more than leases",
			Columns: when(coalesced, Column{Group: SpeedGroup, Place: 3, Heading: "served/s"}, Column{Group: ShortGroup, Place: 1, Heading: "served/s"}),
			value:   always(func(r Run) float64 { return r.Speed.ServedPerSecond }),
		},
		{
			Name: "utilisation", Unit: Percent, Better: Higher, Help: "share of the time that the lock was held",
			Columns:  []Column{{Group: SpeedGroup, Place: 4, Heading: "utili-\nsation"}, {Group: PageGroup, Heading: "held"}},
			Compared: &Compared{Place: 2, Label: "utilisation", Resolution: 0.1},
			value:    always(func(r Run) float64 { return r.Speed.Utilisation * 100 }),
		},
		{
			Name: "handoff_p50", Unit: Nanoseconds, Better: Lower,
			Help:     "start of a release → next lease, where somebody waited; that lease may be of a client that asked later",
			Columns:  []Column{{Group: SpeedGroup, Place: 6, Heading: "handoff\np50"}, {Group: SpreadGroup, Heading: "handoff\np50"}, {Group: PageGroup, Place: 2, Heading: "handoff p50"}, {Group: ShortGroup, Place: 2, Heading: "handoff\np50"}},
			Compared: &Compared{Place: 5, Label: "handoff p50", Resolution: nanosecond},
			of:       handoffs, percentile: 50,
		},
		{
			Name: "handoff_p99", Unit: Nanoseconds, Better: Lower, Help: "the same",
			Columns:  in(SpeedGroup, 7, "handoff\np99"),
			Compared: &Compared{Place: 6, Label: "handoff p99", Resolution: nanosecond},
			of:       handoffs, percentile: 99, noun: "handoffs",
		},
		{
			Name: "release_p50", Unit: Nanoseconds, Better: Lower, Help: "start of a release → its return",
			Columns:  in(SpeedGroup, 8, "release\np50"),
			Compared: &Compared{Place: 7, Label: "release p50", Resolution: nanosecond},
			of:       releases, percentile: 50,
		},
		{Name: "release_p99", Unit: Nanoseconds, Better: Lower, Help: "the same", of: releases, percentile: 99},
		{
			Name: "hold_mean", Unit: Nanoseconds, Help: "lease in hand → start of the release, as it came to", Columns: in(SpeedGroup, 5, "hold\nmean"),
			value: meanHold,
		},
		{Name: "hold_p50", Unit: Nanoseconds, Help: "the same", of: holds, percentile: 50},
	}
}

func waitingMetrics() []Metric {
	return []Metric{
		{
			Name: "wait_p50", Unit: Nanoseconds, Better: Lower, Help: "start of an acquire → lease, every wait counting once",
			Columns:  []Column{{Group: WaitingGroup, Heading: "per acq\np50"}, {Group: PageGroup, Place: 1, Heading: "wait p50"}},
			Compared: &Compared{Place: 3, Label: "wait p50", Resolution: nanosecond},
			of:       waits, percentile: 50,
		},
		{Name: "wait_p90", Unit: Nanoseconds, Better: Lower, Help: "the same", of: waits, percentile: 90},
		{Name: "wait_p95", Unit: Nanoseconds, Better: Lower, Help: "the same", of: waits, percentile: 95},
		{
			Name: "wait_p99", Unit: Nanoseconds, Better: Lower, Help: "the same",
			Columns:  []Column{{Group: WaitingGroup, Heading: "per acq\np99"}, {Group: PageGroup, Place: 1, Heading: "wait p99"}},
			Compared: &Compared{Place: 4, Label: "wait p99", Resolution: nanosecond}, Bench: &Bench{Place: 1, Unit: "p99-wait-ns/op"},
			of: waits, percentile: 99, noun: "waits",
		},
		{Name: "wait_p999", Unit: Nanoseconds, Better: Lower, Help: "the same", of: waits, percentile: 99.9},
		{
			Name: "wait_max", Unit: Nanoseconds, Better: Lower, Help: "the longest", Columns: in(WaitingGroup, 0, "per acq\nmax"),
			value: timed(func(r Run) *Bound { return r.Waiting.PerAcquisition.Max }), caution: unfinished(waits),
		},
		{
			Name: "wait_per_client_p50", Unit: Nanoseconds, Better: Lower, Rough: true, Help: "the same, every client counting once",
			Columns: in(WaitingGroup, 0, "per client\np50"), of: waitsPerClient, percentile: 50,
		},
		{
			Name: "wait_per_client_p99", Unit: Nanoseconds, Better: Lower, Rough: true, Help: "the same, every client counting once",
			Columns: []Column{{Group: WaitingGroup, Heading: "per client\np99"}, {Group: RatioGroup, Heading: "wait p99\nper client"}, {Group: PageGroup, Place: 1, Heading: "p99 per client"}, {Group: ShortGroup, Place: 3, Heading: "wait p99\n/client"}, {Group: ShortRatioGroup, Heading: "wait p99\nper client"}},
			of:      waitsPerClient, percentile: 99,
		},
		{Name: "start_lateness_p50", Unit: Nanoseconds, Better: Lower, Help: "open loop: start meant → start made, by a client that was free", of: lateness, percentile: 50},
		{
			Name: "start_lateness_p99", Unit: Nanoseconds, Better: Lower, Help: "the same",
			Columns: when(openLoop, Column{Group: WaitingGroup, Place: 2, Heading: "starts\nlate p99"}), of: lateness, percentile: 99,
		},
		{
			Name: "waits_unfinished", Better: Lower, Whole: true, Help: "waits that had not ended when the window closed, and arrivals that no client had taken", Columns: in(WaitingGroup, 1, "unfinished"),
			value: always(func(r Run) int64 { return r.Waiting.Open + r.Waiting.Backlog }),
		},
		{
			Name: "timed_out", Better: Lower, Whole: true, Help: "waits that ended at their timeout", Columns: in(WaitingGroup, 1, "timed\nout"),
			value: always(func(r Run) int64 { return r.Waiting.TimedOut }),
		},
	}
}

func fairnessMetrics() []Metric {
	return []Metric{
		{Name: "acq_per_client_min", Better: Higher, Whole: true, Help: "acquisitions of the client that got the fewest", value: always(func(r Run) int64 { return r.Fairness.AcquisitionsMin })},
		{Name: "acq_per_client_max", Whole: true, Help: "acquisitions of the client that got the most", value: always(func(r Run) int64 { return r.Fairness.AcquisitionsMax })},
		{
			Name: "jain", Better: Higher, Help: "Jain's index of the acquisitions per client, 1 is even", Columns: in(FairnessGroup, 0, "Jain\nindex"),
			Compared: &Compared{Place: 9, Label: "Jain index", Resolution: 0.001}, Bench: &Bench{Place: 3, Unit: "jain-pct", Scale: 100},
			value: maybe(func(r Run) *float64 { return r.Fairness.Jain }),
		},
		{
			Name: "starved", Better: Lower, Whole: true, everyRun: true,
			Help:     "clients without an acquisition although there were two for each; not known if one run cannot tell",
			Columns:  append(when(not(slots), Column{Group: FairnessGroup, Heading: "starved\nclients", Cell: starvedOf}, Column{Group: ShortGroup, Place: 4, Heading: "starved"}), in(PageGroup, 1, "starved")...),
			Compared: &Compared{Place: 10, Label: "starved clients", Resolution: 1},
			value:    maybe(func(r Run) *int { return r.Fairness.Starved }),
		},
		{
			Name: "longest_wait", Unit: Nanoseconds, Better: Lower, Help: "of any client, open ones included", Columns: in(FairnessGroup, 0, "longest\nwait"),
			value: timed(func(r Run) *Bound { return r.Fairness.LongestWait }),
		},
		{
			Name: "working_set", Better: Higher, Help: "distinct clients among as many acquisitions as there are clients", Columns: in(FairnessGroup, 0, "working\nset"),
			value: maybe(func(r Run) *float64 { return r.Fairness.WorkingSet }),
		},
		{
			Name: "reacquire_distance_p50", Whole: true, Help: "acquisitions until the same client's next", Columns: in(FairnessGroup, 0, "reacquire\ndistance"),
			value: maybe(func(r Run) *int64 { return r.Fairness.ReacquireDistance }),
		},
		{
			Name: "overtaken", Unit: Percent, Better: Lower, Help: "acquisitions while an earlier arrival waited", Columns: in(FairnessGroup, 0, "overtaken"),
			value: maybe(func(r Run) *float64 { return r.Fairness.Overtaken }),
		},
		{
			Name: "largest_bypass", Better: Lower, Whole: true,
			Help: "most later arrivals served in the window before one that waited", Columns: in(FairnessGroup, 0, "largest\nbypass"),
			value: always(func(r Run) int64 { return r.Fairness.LargestBypass }),
		},
	}
}

func costMetrics() []Metric {
	threaded := anyRun(func(r Run) bool { return r.Server.Window.threaded() })
	return []Metric{
		{
			Name: "commands_per_acq", Better: Lower, Help: "commands that the servers executed, those inside scripts included",
			Columns:  []Column{{Group: CostGroup, Heading: "commands"}, {Group: RatioGroup, Heading: "commands\nper acq"}, {Group: PageGroup, Place: 3, Heading: "commands"}, {Group: ShortGroup, Place: 5, Heading: "cmds\n/acq"}},
			Compared: &Compared{Place: 11, Label: "commands per acq", Resolution: counting, Count: true}, Bench: &Bench{Place: 6, Unit: "commands/op"},
			value: perAcquisition(func(d *ServerDelta) *int64 { return d.Calls }),
		},
		{
			Name: "round_trips_per_acq", Better: Lower, Help: "requests written to the servers", Columns: in(CostGroup, 0, "round\ntrips"),
			Compared: &Compared{Place: 12, Label: "round trips per acq", Resolution: counting, Count: true}, Bench: &Bench{Place: 7, Unit: "round-trips/op"},
			value: perAcquisition(func(d *ServerDelta) *int64 { return d.RoundTrips }),
		},
		{
			Name: "bytes_in_per_acq", Unit: Bytes, Better: Lower, Help: "received by the servers, by their own count, else as sent to them", Columns: in(CostGroup, 0, "bytes\nin"),
			Compared: &Compared{Place: 13, Label: "bytes in per acq", Resolution: counting, Count: true},
			value:    perAcquisition(func(d *ServerDelta) *int64 { return cmp.Or(d.BytesIn, d.ClientBytesOut) }),
		},
		{
			Name: "bytes_out_per_acq", Unit: Bytes, Better: Lower, Help: "sent by the servers, by their own count, else as received from them", Columns: in(CostGroup, 0, "bytes\nout"),
			Compared: &Compared{Place: 14, Label: "bytes out per acq", Resolution: counting, Count: true},
			value:    perAcquisition(func(d *ServerDelta) *int64 { return cmp.Or(d.BytesOut, d.ClientBytesIn) }),
		},
		{
			Name: "redis_cpu_per_acq", Unit: Nanoseconds, Better: Lower, Help: "CPU time of the servers, less what idle connections cost; with I/O threads see the next two",
			Columns: append(when(not(threaded), Column{Group: CostGroup, Heading: "server\nCPU"}),
				Column{Group: RatioGroup, Heading: "server CPU\nper acq"}, Column{Group: SpreadGroup, Heading: "server CPU\nper acq"}, Column{Group: PageGroup, Place: 3, Heading: "server CPU"},
				Column{Group: ShortGroup, Place: 6, Heading: "CPU\n/acq"}, Column{Group: ShortRatioGroup, Heading: "server CPU\nper acq"}),
			Compared: &Compared{Place: 8, Label: "server CPU per acq", Resolution: nanosecond}, Bench: &Bench{Place: 4, Unit: "redis-cpu-ns/op"},
			value: redisCPU,
		},
		{
			Name: "redis_main_cpu_per_acq", Unit: Nanoseconds, Better: Lower, Help: "with I/O threads: CPU time of the thread that executes commands",
			Columns: when(threaded, Column{Group: CostGroup, Heading: "main\nthread"}), value: inNanoseconds((*ServerDelta).MainPerAcquisition),
		},
		{
			Name: "redis_rest_cpu_per_acq", Unit: Nanoseconds, Better: Lower, Help: "with I/O threads: CPU time of the other threads, waiting for work included",
			Columns: when(threaded, Column{Group: CostGroup, Heading: "other\nthreads"}), value: inNanoseconds((*ServerDelta).RestPerAcquisition),
		},
		{
			Name: "attempts_per_acq", Better: Lower, Help: "tries to take the lock", Columns: in(CostGroup, 0, "attempts"),
			Compared: &Compared{Place: 15, Label: "attempts per acq", Resolution: counting, Count: true},
			value:    maybe(func(r Run) *float64 { return r.Effort.Attempts }),
		},
		{
			Name: "wake_ups_per_acq", Better: Lower, Help: "resumptions of a parked waiter", Columns: in(CostGroup, 0, "wake-ups"),
			Compared: &Compared{Place: 16, Label: "wake-ups per acq", Resolution: counting, Count: true}, Bench: &Bench{Place: 8, Unit: "wake-ups/op"},
			value: maybe(func(r Run) *float64 { return r.Effort.WakeUps }),
		},
		{
			Name: "futile_wake_ups_per_acq", Better: Lower, Help: "those whose next attempt failed", Columns: in(CostGroup, 0, "futile\nwake-ups"),
			Compared: &Compared{Place: 17, Label: "futile wake-ups per acq", Resolution: counting, Count: true},
			value:    maybe(func(r Run) *float64 { return r.Effort.Futile }),
		},
	}
}

func loadMetrics() []Metric {
	return []Metric{
		{
			Name: "redis_cpu", Unit: Percent, Better: Lower, Help: "CPU of the servers, of one core",
			Columns: []Column{{Group: LoadGroup, Heading: "CPU of\none core"}, {Group: SpreadGroup, Heading: "server CPU\nof one core"}},
			value:   maybe(func(r Run) *float64 { return r.Server.Window.CPUPercent() }),
		},
		{
			Name: "connections", Better: Lower, Whole: true, Help: "most connections to the servers", Columns: in(LoadGroup, 0, "connections\npeak"),
			value: peak(func(p *ServerPeak) *int64 { return p.Clients }),
		},
		{
			Name: "subscriptions", Whole: true, Help: "most channel subscriptions", Columns: in(LoadGroup, 0, "subscriptions\npeak"),
			value: peak(func(p *ServerPeak) *int64 { return p.Subscriptions }),
		},
		{
			Name: "redis_memory", Unit: Bytes, Better: Lower, Help: "most memory of the servers", Columns: in(LoadGroup, 0, "memory\npeak"),
			value: peak(func(p *ServerPeak) *int64 { return p.MemoryBytes }),
		},
	}
}

func safetyMetrics() []Metric {
	return []Metric{
		{
			Name: "violations", Better: Lower, Whole: true, total: true, Help: "overlaps and fencing tokens that went back, claimed or not; at least the broken claims",
			Bench: &Bench{Place: 5, Unit: "violations", Exact: true}, value: always(Run.violations),
		},
		{
			Name: "overlaps", Better: Lower, Whole: true, total: true, Help: "more holders than the lock admits, leases still valid", Columns: in(SafetyGroup, 1, "overlaps"),
			value: always(func(r Run) int64 { return r.Safety.Overlaps }),
		},
		{
			Name: "overlaps_after_expiry", Better: Lower, Whole: true, total: true, Help: "overlaps with a holder whose lease had expired", Columns: in(SafetyGroup, 1, "overlaps\nafter\nexpiry"),
			value: always(func(r Run) int64 { return r.Safety.ExpiredOverlaps }),
		},
		{
			Name: "fencing_regressions", Better: Lower, Whole: true, total: true, Help: "fencing tokens not larger than an earlier one", Columns: in(SafetyGroup, 3, "fencing\nbroken"),
			value: maybe(func(r Run) *int64 {
				if r.Safety.FencedLeases == 0 && r.Speed.Acquisitions > 0 { // without a lease no token can go back
					return nil
				}
				return &r.Safety.FencingRegression
			}),
		},
		{
			Name: "leases_lost", Better: Lower, Whole: true, total: true, Help: "releases that found the lease gone", Columns: in(SafetyGroup, 3, "leases\nlost"),
			value: always(func(r Run) int64 { return r.Safety.LostLeases }),
		},
		{
			Name: "lost_updates", Better: Lower, Whole: true, total: true, Help: "increments under the lock that got lost, with --work counter",
			Columns: when(counted, Column{Group: SafetyGroup, Place: 2, Heading: "updates\nlost"}), value: maybe(func(r Run) *int64 { return r.Safety.LostUpdates }),
		},
		{
			Name: "leftovers", Better: Lower, Whole: true, total: true, Help: "keys, channels and connections that the strategy left and had not declared", Columns: in(SafetyGroup, 3, "leftovers"),
			value: maybe(func(r Run) *int64 { return r.Safety.LeftoverCount }),
		},
		{
			Name: "hung_clients", Better: Lower, Whole: true, total: true, Help: "clients that did not return from Acquire or Release", Columns: in(SafetyGroup, 3, "clients\nhung"),
			value: always(func(r Run) int64 { return int64(r.Safety.Hung) }),
		},
		{Name: "errors", Better: Lower, Whole: true, total: true, Help: "of Acquire and Release, and of lockbench's own commands", Columns: in(SafetyGroup, 3, "errors"), value: always(Run.errors)},
	}
}

// laterMetrics were added after the first exports.
func laterMetrics() []Metric {
	return []Metric{
		{Name: "wait_per_client_p90", Unit: Nanoseconds, Better: Lower, Rough: true, Help: "start of an acquire → lease, every client counting once", of: waitsPerClient, percentile: 90},
		{Name: "max_holders", Better: Lower, Whole: true, Help: "most holders at a time", value: always(func(r Run) int64 { return int64(r.Safety.MaxHolders) })},
		{
			Name: "refused_updates", Whole: true, total: true, Help: "updates refused for a stale fencing token",
			Columns: when(anyRun(func(r Run) bool { return r.Safety.Refused != nil }), Column{Group: SafetyGroup, Place: 2, Heading: "updates\nrefused"}),
			value:   maybe(func(r Run) *int64 { return r.Safety.Refused }),
		},
		{
			Name: "bus_messages_per_acq", Better: Lower, Help: "messages from node to node of a cluster that published something",
			value: perAcquisition(func(d *ServerDelta) *int64 { return d.BusPublished }),
		},
		{
			Name: "bus_bytes_per_acq", Better: Lower, Help: "bytes that the nodes of a cluster received from each other",
			value: perAcquisition(func(d *ServerDelta) *int64 { return d.BusReceived }),
		},
		{
			Name: "other_traffic", Unit: Percent, Help: "bytes that the servers received from others than lockbench", Columns: in(LoadGroup, 0, "other clients'\ntraffic"),
			value: maybe(func(r Run) *float64 {
				if r.Server.Whole == nil {
					return nil
				}
				return r.Server.Whole.OtherTraffic
			}),
		},
		{
			Name: "other_cpu", Unit: Percent, Help: "CPU of all cores that neither lockbench nor the servers used", Columns: in(SpreadGroup, 1, "other CPU\nof all"),
			value: maybe(func(r Run) *float64 { return r.Generator.OtherCPU }),
		},
	}
}

// newMetrics are the newest: they come last.
func newMetrics() []Metric {
	return []Metric{
		{
			Name: "service_p99", Unit: Nanoseconds, Better: Lower, Help: "start of an acquire → lease, from the start as it was made also in an open loop",
			of: func(r Run) Distribution { return r.Waiting.Service }, percentile: 99,
		},
		{
			Name: "client_cpu_per_acq", Unit: Nanoseconds, Better: Lower, Help: "CPU time of lockbench itself, its waiting clients and what it measures with",
			value: maybe(clientCPU),
		},
		{
			Name: "wal_bytes_per_acq", Better: Lower, Unit: Bytes, Help: "bytes that PostgreSQL added to its write-ahead log",
			value: perAcquisition(func(d *ServerDelta) *int64 { return d.WALBytes }),
		},
		{
			Name: "passes_within_instance", Unit: Percent,
			Help:    "passes from one client to another that stayed within an application instance",
			Columns: when(passed, in(SpeedGroup, 7, "in one\nprocess")...),
			value:   maybe(func(r Run) *float64 { return r.Fairness.PassesWithin }),
		},
		{
			Name: "stall", Unit: Nanoseconds, Better: Lower,
			Help:  "longest time in which a lock could be had, clients waited and none got it",
			value: maybe(func(r Run) *int64 { return r.Speed.Stall }),
		},
		{
			Name: "generator_stood_still", Unit: Nanoseconds, Better: Lower,
			Help:  "longest time in which lockbench itself did not run",
			value: maybe(func(r Run) *int64 { return r.Generator.StoodStill }),
		},
	}
}
