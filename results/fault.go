package results

import "github.com/lockbench/lockbench/workloads"

// Fault is a fault of the workload with its effects in a run.
type Fault struct {
	Fault      workloads.Fault `json:"fault"`
	Injections []Injection     `json:"strikes"`
	// Missed says, for each time that the fault was due and did not occur, why.
	Missed []string `json:"missed,omitempty"`
}

// Injection is one occurrence of a fault, and what followed until the next injection of any
// fault, or the end of the run.
type Injection struct {
	AtNS     int64  `json:"at_ns"`         // since the window opened
	LastedNS int64  `json:"lasted_ns"`     // 0: it was over at once
	Key      string `json:"key,omitempty"` // the key that it affects; empty: all
	// Halts says that no client could get any lock while it lasted; in a failover, until there
	// was a new primary.
	Halts bool `json:"halts,omitempty"`
	// RecoveryNS is the time from the injection to the next acquisition of an affected key. If
	// Halts, only acquisitions after the outage count. nil means that there was none in the
	// window.
	RecoveryNS *int64 `json:"recovery_ns"`
	// Stall is the longest time without an acquisition of an affected key, from the injection to
	// the next injection of any fault or the end of the window. It is a lower bound if one of
	// these cut it off.
	Stall *Bound `json:"stall"`

	Overlaps  int64 `json:"overlaps"` // as in Safety, for this injection
	OverlapNS int64 `json:"overlap_ns"`
	Late      int64 `json:"late_overlaps"`
	LateNS    int64 `json:"late_overlap_ns"`
	// LostWakeUps counts how often a key stayed free for more than a second, or half the TTL if
	// that is less, although a client had been waiting for it at its release.
	LostWakeUps int64 `json:"lost_wake_ups"`
}
