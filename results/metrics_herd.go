package results

// herdMetrics are the metrics of a workload with bursts.
func herdMetrics() []Metric {
	return []Metric{
		{Name: "bursts", Whole: true, Help: "times that all clients waited behind one holder and it let go", Columns: herdColumn("bursts"), value: ofHerd(func(h *Herd) *Figure { return &Figure{Value: float64(h.Bursts)} })},
		{Name: "burst_attempts", Better: Lower, Help: "tries that one release set off", Columns: herdColumn("attempts"), value: ofHerd(func(h *Herd) *Figure { return known(h.Attempts) })},
		{Name: "burst_wake_ups", Better: Lower, Help: "waiters that one release woke", Columns: herdColumn("wake-ups"), value: ofHerd(func(h *Herd) *Figure { return known(h.WakeUps) })},
		{Name: "burst_commands", Better: Lower, Help: "commands at the servers that one release set off", Columns: herdColumn("commands"), value: ofHerd(func(h *Herd) *Figure { return known(h.Commands) })},
		{Name: "first_handoff_p50", Unit: Nanoseconds, Better: Lower, Help: "start of the one release → next lease", Columns: herdColumn("first\nhandoff"), value: ofHerd(func(h *Herd) *Figure { return h.FirstHandoff.P50.figure() })},
		{Name: "drain_p50", Unit: Nanoseconds, Better: Lower, Help: "that lease's release → the last client's acquisition", Columns: herdColumn("drain\np50"), value: ofHerd(func(h *Herd) *Figure { return h.Drain.P50.figure() })},
		{Name: "drain_commands_per_acq", Better: Lower, Help: "commands at the servers per acquisition while the herd drained", Columns: herdColumn("commands\nper acq"), value: ofHerd(func(h *Herd) *Figure { return known(h.DrainCommands) })},
		{Name: "drain_cpu_max", Unit: Percent, Better: Lower, Help: "CPU of the servers, of one core, in the drain that took the most", Columns: herdColumn("peak\nCPU"), value: ofHerd(func(h *Herd) *Figure { return known(h.PeakCPU) })},
	}
}

func herdColumn(heading string) []Column {
	return when(anyRun(func(r Run) bool { return r.Herd != nil }), in(HerdGroup, 0, heading)...)
}
