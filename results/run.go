package results

import (
	"slices"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Run is one measurement of one strategy. It covers the events in the measurement window, unless the comment of a field
// says otherwise.
type Run struct {
	Strategy string `json:"strategy"`
	Point    string `json:"point,omitempty"` // label of the sweep's point, see Report.WorkloadOf
	// Round counts from 1. The runs of a round follow one another and are compared in pairs.
	Round    int       `json:"round"`
	Order    int       `json:"order"` // from 1, within the round
	Seed     int64     `json:"seed"`
	Started  time.Time `json:"started"` // start of the window
	WindowNS int64     `json:"window_ns"`

	Record         Record         `json:"record"`
	Speed          Speed          `json:"speed"`
	Waiting        Waiting        `json:"waiting"`
	Fairness       Fairness       `json:"fairness"`
	Parts          []Part         `json:"parts,omitempty" add:"none"` // of a mixed strategy
	Effort         Effort         `json:"effort"`
	Server         Server         `json:"server"`
	Safety         Safety         `json:"safety"`
	Generator      Generator      `json:"generator"`
	TimeAccounting TimeAccounting `json:"books"`
	Timeline       []Slice        `json:"timeline,omitempty" add:"none"`
	Herd           *Herd          `json:"herd,omitempty" add:"none"` // with bursts
	// Faults has one entry for each fault of the workload.
	Faults []Fault `json:"faults,omitempty" add:"none"`

	Errors  []ErrorCount `json:"errors,omitempty"`           // errors of Acquire and Release, most frequent first
	Failure string       `json:"failure,omitempty"`          // what ended the run early
	Partial bool         `json:"partial,omitempty" add:"or"` // the window was cut short
	Invalid Remarks      `json:"invalid,omitempty"`          // why the figures cannot be trusted; empty for a valid run
	Labels  Remarks      `json:"labels,omitempty"`           // what limits the figures
}

const (
	stillShare = 0.05                   // of the window
	stallLeast = 300 * time.Millisecond // so that a short window on a loaded machine gets no remark
	// stillLeast is longer than the delays that load alone causes: on a loaded machine a process did not run for 498 ms.
	stillLeast = time.Second
)

// Stalled reports whether Speed.Stall is long enough for a remark: over 5 % of the window and over 300 ms.
func (r Run) Stalled() bool { return r.marks(r.Speed.Stall, stallLeast) }

// StoodStill reports whether lockbench itself did not run for over 5 % of the window and over one second.
func (r Run) StoodStill() bool { return r.marks(r.Generator.StoodStill, stillLeast) }

func (r Run) marks(still *int64, least time.Duration) bool {
	return still != nil && float64(*still) > stillShare*float64(r.WindowNS) && *still > int64(least)
}

// Valid reports whether the figures can be trusted.
func (r Run) Valid() bool { return len(r.Invalid) == 0 }

// Speed holds the throughput of the lock, and the durations of handoffs, holds and releases.
type Speed struct {
	Acquisitions int64   `json:"acquisitions" add:"sum"` // leases granted in the window
	PerSecond    float64 `json:"acquisitions_per_second"`
	// Served counts the clients that were served: one for each acquisition and, with --coalesce, also those that shared
	// its lease.
	Served          int64   `json:"served" add:"sum"`
	ServedPerSecond float64 `json:"served_per_second"`
	// Utilisation is the sum of all holds ÷ window ÷ keys. Its maximum is the capacity of the lock.
	Utilisation float64 `json:"utilisation"`
	// Gap is the mean time between two holds of a key, in nanoseconds, in which no client holds it although clients wait:
	// keys × window ÷ acquisitions − mean hold. It is nil unless a client always waits and the lock's capacity is one.
	Gap *float64 `json:"gap_ns"`
	// Stall is the longest time, in nanoseconds, in which a key was free and clients waited for it, but none of them got
	// it. It is nil if clients of other processes may have got it.
	Stall *int64 `json:"stall_ns" add:"none"`
	// Handoff is the time from the start of a Release to the next lease on the same key. It counts only if a client was
	// waiting when the release began. The next lease may belong to a client whose Acquire began later.
	Handoff Distribution `json:"handoff" add:"none"`
	Hold    Distribution `json:"hold" add:"sum"` // lease received → start of Release, as measured
	// HoldAsked is the mean duration, in nanoseconds, that the workload requested for these holds; nil if it requested
	// none.
	HoldAsked *float64     `json:"hold_asked_mean_ns"`
	Release   Distribution `json:"release" add:"sum"` // start of Release → its return
}

// Waiting is the time from the start of Acquire until the lease is received.
//
// A wait belongs, with its full length, to the window in which it ends. A wait that was open
// when the window closed is a right-censored observation. Percentiles are
// the product-limit estimate of Kaplan and Meier (J. Am. Stat. Assoc. 53, 1958); a
// percentile beyond the observed range is a lower bound.
//
// If a wait ended at its timeout, the lease would have come later or never. A percentile that depends on such a wait is
// a lower bound, see Survival.
type Waiting struct {
	// PerAcquisition gives every wait the same weight.
	PerAcquisition Distribution `json:"per_acquisition" add:"sum"`
	// PerClient gives every client the same weight, so that clients that barge in thousands of
	// times cannot hide those that starve. Choose a client and an instant of the window at
	// random, and take the first wait that the client begins after it. So the weight of a wait
	// is the time, in nanoseconds, from the start of the client's previous wait to its own
	// start. That time does not depend on the length of the wait.
	//
	// The time from a client's last start to the end of the window belongs to a wait that was not observed. Without this
	// time, clients with long waits have too little weight. With Rest, which adds the time to the client's first wait in
	// the window (or to its only wait, at full length, if that began earlier), they have too much. If the two results
	// agree within 5 %, which needs about ten waits per client for the median, the percentile is their geometric mean;
	// otherwise it is a lower bound.
	//
	// A client without an acquisition, whose only wait was open when the window closed, counts with the age of this wait
	// and the weight of the whole window. If more than a share 1 − q of the clients waited in this way for at least a time
	// t, the q-quantile is at least t.
	PerClient Distribution `json:"per_client" add:"sum"`
	// Service is the wait from the actual start of Acquire. In a closed loop it equals PerAcquisition. In an open loop
	// PerAcquisition counts from the intended start.
	Service Distribution `json:"service" add:"sum"`
	// Lateness is the time by which the generator itself delayed the starts of an open loop: a
	// client was free but woke up late. It is not part of any wait: a wait begins at the intended
	// start only if all clients are busy then.
	Lateness Distribution `json:"lateness,omitzero" add:"sum"`
	Open     int64        `json:"open" add:"sum"` // waits still open when the window closed
	// Backlog is the number of arrivals of an open loop that no client had taken when the window closed. They are open
	// waits too.
	Backlog  int64 `json:"backlog" add:"sum"`
	TimedOut int64 `json:"gave_up" add:"sum"` // waits that ended at their timeout
}

// Fairness is how evenly the clients were served in the window.
//
// The clients of an open loop are slots for arrivals. Their acquisitions do not depend on the
// lock, so Jain, WorkingSet and ReacquireDistance are nil there.
type Fairness struct {
	AcquisitionsMin int64 `json:"turns_min" add:"min"`
	AcquisitionsMax int64 `json:"turns_max" add:"max"`
	// Jain is (Σx)² ÷ (n·Σx²) over the acquisitions per client (Jain, Chiu, Hawe 1984): 1 is even, 1/n means that one
	// client got every acquisition. nil below 20 acquisitions per client, where the index depends on chance.
	Jain *float64 `json:"jain"`
	// Starved is the number of clients that waited and had no acquisition although there were two acquisitions per client.
	// It is nil if a client had none and the window was too short for that many: the client's turn may have come later.
	Starved     *int      `json:"starved"`
	LongestWait *Bound    `json:"longest_wait" add:"max"`        // of any client, including open waits
	PerClient   Histogram `json:"turns_hdr,omitempty" add:"sum"` // of the acquisitions per client

	// WorkingSet is the mean number of distinct clients among as many consecutive acquisitions of a key as there are
	// clients (the lock working set size of Dice, Malthusian Locks, EuroSys 2017). A value equal to the number of clients
	// is perfectly fair; 1 means that one client keeps the lock. nil without that many acquisitions, or with more than
	// about four million clients × keys.
	WorkingSet *float64 `json:"working_set" add:"none"`
	// ReacquireDistance is the median number of acquisitions of a key until the same client's
	// next one (Dice's median time to reacquire).
	ReacquireDistance *int64 `json:"return_p50" add:"none"`
	// Overtaken is the share of acquisitions, in percent, that were granted while a client that had arrived earlier still
	// waited. A client arrives at the start of its Acquire. Requests may overtake one another on the network, so even a
	// FIFO lock shows a few.
	Overtaken *float64 `json:"overtakes_percent" add:"none"`
	// LargestBypass is the largest number of later arrivals that got the lock, in the window, while
	// one client waited. nil if clients of other processes may have got it.
	LargestBypass *int64 `json:"largest_bypass" add:"none"`
	// PassesWithin is the share, in percent, of the passes from one client to another in which both belong to the same
	// application instance. nil without passes, if the lock's capacity is not one, or if clients of other processes may
	// have held the lock in between.
	PassesWithin *float64 `json:"passes_within_instance_percent" add:"none"`
}

// Part holds the figures of the clients that use one part of a mixed strategy. The clients of all parts contend for the
// same keys.
type Part struct {
	Strategy     string       `json:"strategy"`
	Clients      int64        `json:"clients"`
	Acquisitions int64        `json:"acquisitions"`
	Share        *float64     `json:"share_percent"`     // of all acquisitions; nil if there are none
	Waits        Distribution `json:"waits"`             // as Waiting.PerAcquisition
	Overtaken    *float64     `json:"overtakes_percent"` // as Fairness.Overtaken, by clients of any part
}

// Effort holds the strategies' own counts of their work; nil for a black box.
type Effort struct {
	Attempts *float64 `json:"attempts_per_acquisition"` // tries to take the lock at Redis
	WakeUps  *float64 `json:"wake_ups_per_acquisition"` // resumptions of a parked waiter; 1 per handoff is ideal
	Futile   *float64 `json:"futile_wake_ups_per_acquisition"`
}

// Generator is the load of lockbench itself in the window.
type Generator struct {
	CPUSeconds  float64  `json:"cpu_seconds" add:"sum"`
	CPUPercent  float64  `json:"cpu_percent" add:"sum"`          // of one core
	MachineIdle *float64 `json:"machine_idle_percent" add:"min"` // of all cores; Linux only
	// DriverCPUSeconds is the CPU time of the processes in which a driver runs the clients; null without drivers.
	DriverCPUSeconds *float64 `json:"driver_cpu_seconds,omitempty" add:"none"` // generators of a session have no drivers
	// OtherCPU is the CPU time of processes other than lockbench and Redis, in percent of all cores; interrupts belong to
	// no process. null if the system does not report it, or the window is shorter than about half a second.
	OtherCPU *float64 `json:"foreign_cpu_percent" add:"max"`
	// Steal is the time in which the hypervisor ran another machine, in percent of all cores; null
	// as for OtherCPU.
	Steal *float64 `json:"steal_percent" add:"max"`
	// StoodStill is the longest time, in nanoseconds, in which lockbench did not run although it was due to: lockbench,
	// its container or its machine was stopped. nil if it was not observed.
	StoodStill     *int64  `json:"stood_still_ns" add:"max"`
	SchedulingP99  int64   `json:"scheduling_p99_ns" add:"max"` // goroutine runnable → running, bucket's upper bound
	GCCount        int64   `json:"gc_count" add:"sum"`
	GCPauseNS      int64   `json:"gc_pause_ns" add:"sum"` // sum of stop-the-world pauses
	GCCPUSeconds   float64 `json:"gc_cpu_seconds" add:"sum"`
	TimerOvershoot *int64  `json:"timer_overshoot_p50_ns" add:"max"` // actual − requested hold; nil without holds
	Starts         int64   `json:"starts" add:"sum"`                 // open loop: starts in the window
	// LateStarts counts the starts of an open loop that were more than 10 ms late because of the generator.
	LateStarts int64 `json:"late_starts" add:"sum"`
	// BehindStarts counts the starts of an open loop that were more than 10 ms late because no client was free.
	BehindStarts int64 `json:"behind_starts" add:"sum"`
	PoolWaits    int64 `json:"pool_waits" add:"sum"`   // commands that waited for a connection
	PoolWaitNS   int64 `json:"pool_wait_ns" add:"sum"` // sum of their waits
	PoolTimeouts int64 `json:"pool_timeouts" add:"sum"`
	PeakRSS      int64 `json:"peak_rss_bytes" add:"sum"` // largest resident memory of the process so far
}

// TimeAccounting proves that no time was lost: for every client wait + hold + release + think
// must be equal to the window.
type TimeAccounting struct {
	Wait    float64 `json:"wait_seconds" add:"sum"` // sums over all clients, clipped to the window
	Hold    float64 `json:"hold_seconds" add:"sum"`
	Release float64 `json:"release_seconds" add:"sum"`
	Think   float64 `json:"think_seconds" add:"sum"`  // release → next acquire, including the harness's own work
	Window  float64 `json:"window_seconds" add:"sum"` // clients × window
	// WorstPercent is the largest difference of this sum from the window for any client, in percent of the window.
	WorstPercent float64 `json:"worst_percent" add:"max"`
	Balanced     bool    `json:"balanced" add:"and"`
}

// ErrorCount is an error with the number of its occurrences.
type ErrorCount struct {
	Error string `json:"error"`
	Count int64  `json:"count"`
}

// Herd summarises the bursts that ended in the window. In a burst all clients wait for one
// holder, which then releases.
type Herd struct {
	Bursts int64 `json:"bursts"`
	// FirstHandoff is the time from the start of the one release to the next lease.
	FirstHandoff Distribution `json:"first_handoff"`
	// Drain is the time from the release of that next lease until the last client gets the lock; 0
	// with two clients.
	Drain Distribution `json:"drain"`
	// Attempts, WakeUps and Commands are means per burst of what the one release caused until the next holder had held the
	// lock for as long as the first. 1 attempt and 1 wake-up are ideal. Polling clients add their regular attempts. nil
	// for a black box, or if the servers cannot be read.
	Attempts *float64 `json:"attempts"`
	WakeUps  *float64 `json:"wake_ups"`
	Commands *float64 `json:"commands"`
	// DrainCommands is the number of commands at Redis per acquisition while the herd drained.
	DrainCommands *float64 `json:"drain_commands_per_acquisition"`
	// PeakCPU is the servers' CPU use in the drain that used the most, in percent of one core.
	PeakCPU *float64 `json:"peak_redis_cpu_percent"`
}

// Leftovers is what a run left on the servers.
type Leftovers struct {
	Keys        []string
	Channels    []string // with at least one subscriber
	Connections []string // id, last command and age of each, from CLIENT LIST
}

// Safety is the audit of a run, including warm-up and drain: exclusion must hold at any time.
type Safety struct {
	// Overlaps counts how often a client got a key beyond its capacity while the earlier leases were still valid.
	// OverlapNS is their total time.
	Overlaps  int64 `json:"overlaps" add:"sum"`
	OverlapNS int64 `json:"overlap_ns" add:"sum"`
	// ExpiredOverlaps counts the overlaps with a holder whose lease had run out, or may have.
	ExpiredOverlaps  int64 `json:"late_overlaps" add:"sum"`
	ExpiredOverlapNS int64 `json:"late_overlap_ns" add:"sum"`

	MaxHolders        int   `json:"max_holders" add:"max"`
	FencedLeases      int64 `json:"fenced_leases" add:"sum"`      // leases that carried a token
	FencingRegression int64 `json:"fencing_regression" add:"sum"` // tokens not larger than an earlier one
	LostLeases        int64 `json:"lost_leases" add:"sum"`        // releases that found that the lease had ended

	// LostUpdates is the number of updates under the lock that are missing from the counters or rows; nil without
	// --work counter or transaction.
	LostUpdates *int64 `json:"lost_updates" add:"known"`
	// Refused counts the updates that the counter refused because of a stale fencing token, or the row because of its
	// version; nil if neither was checked.
	Refused *int64 `json:"refused_updates" add:"known"`

	// Leftovers names the keys, connections and subscriptions that the strategy left on the servers without declaring
	// them, at most 20.
	Leftovers     []string `json:"leftovers,omitempty" add:"sum"`
	LeftoverCount *int64   `json:"leftover_count" add:"known"` // nil if the servers could not be read
	// Hung is the number of clients that did not return from Acquire or Release after the stop.
	Hung int `json:"stuck_clients" add:"sum"`

	// LostKeys names the ways in which the servers lost keys by themselves; then no guarantee is judged.
	LostKeys []string `json:"lost_keys,omitempty" add:"sum"`
	// Broken names each claimed guarantee that did not hold; the exit code is then 111.
	Broken Remarks `json:"broken_claims,omitempty" add:"sum"`
}

// Fault is a fault of the workload with its effects in a run.
type Fault struct {
	Fault      workloads.Fault `json:"fault"`
	Injections []Injection     `json:"strikes"`
	// Missed has the reason for each time that the fault was due but did not occur.
	Missed []string `json:"missed,omitempty"`
}

// Injection is one occurrence of a fault, and what followed until the next injection of any
// fault, or the end of the run.
type Injection struct {
	AtNS     int64  `json:"at_ns"`         // since the window opened
	LastedNS int64  `json:"lasted_ns"`     // 0: it was over at once
	Key      string `json:"key,omitempty"` // the key that it affects; empty: all
	// Halts means that no client could obtain any lock during the fault; in a failover, until there was a new primary.
	Halts bool `json:"halts,omitempty"`
	// RecoveryNS is the time from the injection to the next acquisition of an affected key. If Halts, only acquisitions
	// after the outage count. nil means that there was no such acquisition in the window.
	RecoveryNS *int64 `json:"recovery_ns"`
	// Stall is the longest time without an acquisition of an affected key, from the injection to the next injection of any
	// fault or the end of the window. It is a lower bound if that injection or the end of the window cut it short.
	Stall *Bound `json:"stall"`

	Overlaps  int64 `json:"overlaps"` // as in Safety, for this injection
	OverlapNS int64 `json:"overlap_ns"`
	Late      int64 `json:"late_overlaps"`
	LateNS    int64 `json:"late_overlap_ns"`
	// LostWakeUps counts how often a key stayed free for more than a second, or half the TTL if
	// that is less, although a client had been waiting for it at its release.
	LostWakeUps int64 `json:"lost_wake_ups"`
}

// Slice is a part of a run's window, usually one second.
type Slice struct {
	At           float64 `json:"at_seconds"`        // its start, since the window opened
	Seconds      float64 `json:"seconds" add:"sum"` // its length
	Acquisitions int64   `json:"acquisitions" add:"sum"`
	Waiting      int     `json:"waiting"` // clients that waited at its end
	// WaitP50, WaitP99 and WaitMax describe the waits in the slice, as Distribution does for the window; nil without
	// waits. WaitMax is the longest wait that ended.
	WaitP50 *Bound `json:"wait_p50" add:"max"` // of two slices the larger
	WaitP99 *Bound `json:"wait_p99" add:"max"`
	WaitMax *Bound `json:"wait_max" add:"max"`
	// HandoffP50 and HandoffP99 describe the handoffs in the slice; absent without handoffs.
	HandoffP50 *Bound `json:"handoff_p50,omitempty" add:"max"` // of two slices the larger
	HandoffP99 *Bound `json:"handoff_p99,omitempty" add:"max"`

	Commands   *int64   `json:"commands" add:"sum"`           // calls at Redis, all nodes
	RedisCPU   *float64 `json:"redis_cpu_seconds" add:"sum"`  // all nodes, including lockbench's own readings
	RoundTrips *int64   `json:"client_round_trips" add:"sum"` // requests written by the generator
	Connected  *int64   `json:"connections,omitempty"`        // at its end
}

// Wait is how long a client has been waiting.
type Wait struct {
	Client int
	NS     int64
}

// Halve joins each pair of neighbouring slices, so that a long window has few slices. Of two percentiles it keeps the
// larger one.
func Halve(parts []Slice) []Slice {
	var halved []Slice
	for pair := range slices.Chunk(parts, 2) {
		joined, last := pair[0], pair[len(pair)-1]
		if len(pair) == 2 {
			addFields(&joined, last)
		}
		joined.Waiting, joined.Connected = last.Waiting, last.Connected
		halved = append(halved, joined)
	}
	return halved
}
