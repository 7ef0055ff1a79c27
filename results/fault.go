package results

import "github.com/lockbench/lockbench/workloads"

// Fault is a fault of the workload, and what it came to in a run.
type Fault struct {
	Fault      workloads.Fault `json:"fault"`
	Injections []Injection     `json:"strikes"`
	// Missed says why it did not come about, each time that it should have.
	Missed []string `json:"missed,omitempty"`
}

// Injection is one time that a fault came about, and what followed until the next
// injection of any fault, or the end of the run.
type Injection struct {
	AtNS     int64  `json:"at_ns"`         // since the window opened
	LastedNS int64  `json:"lasted_ns"`     // 0: over at once
	Key      string `json:"key,omitempty"` // that it concerns; empty: all
	// Halts says that nobody could get any lock for as long as it lasted, or of a
	// failover until there was another primary.
	Halts bool `json:"halts,omitempty"`
	// RecoveryNS is the time from the injection to the first acquisition that followed on
	// a key concerned: of one that halts, once they could. nil is never in
	// the window.
	RecoveryNS *int64 `json:"recovery_ns"`
	// Stall is the longest time from the injection on, to the next one of any fault or the
	// end of the window, in which nobody got a key concerned. At least that long is
	// one which either of them cut off.
	Stall *Bound `json:"stall"`

	Overlaps  int64 `json:"overlaps"` // as in Safety, but those of this injection
	OverlapNS int64 `json:"overlap_ns"`
	Late      int64 `json:"late_overlaps"`
	LateNS    int64 `json:"late_overlap_ns"`
	// LostWakeUps counts the times that a key stayed free for longer than a second, or
	// half the TTL if that is less, although a client had been waiting for it when it
	// was released.
	LostWakeUps int64 `json:"lost_wake_ups"`
}
