package results

import "slices"

// Figures are all metrics, and those that only some experiments ask for.
func Figures() []Metric { return slices.Concat(Metrics(), specialMetrics(), herdMetrics()) }

// FindFigure is the one of that name among Figures.
func FindFigure(name string) (Metric, bool) {
	all := Figures()
	i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return all[i], true
}

func specialMetrics() []Metric {
	return []Metric{
		figureOf("acquisitions", Number, Higher, "leases granted in the window", func(r Run) *float64 { return exactly(r.Speed.Acquisitions) }),
		durationOf("wait_per_client_p90", "start of an acquire → lease, every client counting once", func(r Run) *Bound { return r.Waiting.PerClient.P90 }),
		figureOf("max_holders", Number, Lower, "most holders at a time", func(r Run) *float64 { return exactly(r.Safety.MaxHolders) }),
		figureOf("refused_updates", Number, Neither, "updates refused for a stale fencing token", func(r Run) *float64 { return converted(r.Safety.Refused) }),
		figureOf("bus_messages_per_acq", Number, Lower, "messages from node to node of a cluster that published something", func(r Run) *float64 {
			if r.Server.Window == nil {
				return nil
			}
			return r.Server.Window.PerAcquisition(r.Server.Window.BusPublished)
		}),
		figureOf("bus_bytes_per_acq", Number, Lower, "bytes that the nodes of a cluster received from each other", func(r Run) *float64 {
			if r.Server.Window == nil {
				return nil
			}
			return r.Server.Window.PerAcquisition(r.Server.Window.BusReceived)
		}),
	}
}

// herdMetrics are of a workload that gathers bursts.
func herdMetrics() []Metric {
	of := func(value func(*Herd) *float64) func(Run) *float64 {
		return func(r Run) *float64 {
			if r.Herd == nil {
				return nil
			}
			return value(r.Herd)
		}
	}
	return []Metric{
		figureOf("burst_attempts", Number, Lower, "tries that one release set off", of(func(h *Herd) *float64 { return h.Attempts })),
		figureOf("burst_wake_ups", Number, Lower, "waiters that one release woke", of(func(h *Herd) *float64 { return h.WakeUps })),
		figureOf("burst_commands", Number, Lower, "commands at Redis that one release set off", of(func(h *Herd) *float64 { return h.Commands })),
		figureOf("drain_commands_per_acq", Number, Lower, "commands at Redis per turn while the herd drained", of(func(h *Herd) *float64 { return h.DrainCommands })),
	}
}
