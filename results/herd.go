package results

// Herd summarises the bursts that ended in the window. In a burst all clients wait for one
// holder, which then releases.
type Herd struct {
	Bursts int64 `json:"bursts"`
	// FirstHandoff is the time from the start of the one release to the next lease.
	FirstHandoff Distribution `json:"first_handoff"`
	// Drain is the time from the release of that next lease until the last client has had its
	// turn.
	Drain Distribution `json:"drain"`
	// The means of what the one release caused until the next holder had held for as long as
	// the first. 1 attempt and 1 wake-up are ideal. Clients that poll add attempts of their own.
	// nil for a black box, or where the servers cannot be read.
	Attempts *float64 `json:"attempts"`
	WakeUps  *float64 `json:"wake_ups"`
	Commands *float64 `json:"commands"`
	// DrainCommands is the commands at Redis per acquisition while the herd drained.
	DrainCommands *float64 `json:"drain_commands_per_acquisition"`
	// PeakCPU is the servers' CPU in the drain that used the most, in percent of a core.
	PeakCPU *float64 `json:"peak_redis_cpu_percent"`
}
