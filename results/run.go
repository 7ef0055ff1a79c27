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
	// Round counts from 1. The runs of a round follow one another, and strategies are compared by their runs of the same
	// round.
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
	// Faults has one entry for each fault of the workload, with its injections and their effects.
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
	// stillLeast is the shortest standstill that gets a remark. It is one second, because load alone can keep a process
	// from running for about half a second. On a loaded machine, 498 ms were measured.
	stillLeast = time.Second
)

// Stalled reports whether Speed.Stall is long enough for a remark, that is, longer than both 5 % of the window and 300
// ms.
func (r Run) Stalled() bool { return r.marks(r.Speed.Stall, stallLeast) }

// StoodStill reports whether lockbench itself did not run for a time longer than both 5 % of the window and one second.
func (r Run) StoodStill() bool { return r.marks(r.Generator.StoodStill, stillLeast) }

func (r Run) marks(still *int64, least time.Duration) bool {
	return still != nil && float64(*still) > stillShare*float64(r.WindowNS) && *still > int64(least)
}

// Valid reports whether the figures can be trusted, that is, whether the list Invalid is empty.
func (r Run) Valid() bool { return len(r.Invalid) == 0 }

// Speed holds the throughput of the lock, and the durations of handoffs, holds and releases.
type Speed struct {
	Acquisitions int64   `json:"acquisitions" add:"sum"` // leases granted in the window
	PerSecond    float64 `json:"acquisitions_per_second"`
	// Served counts the clients that were served: one for each acquisition and, with --coalesce, also each client that
	// shared the lease.
	Served          int64   `json:"served" add:"sum"`
	ServedPerSecond float64 `json:"served_per_second"`
	// Utilisation is the sum of all holds ÷ window ÷ keys. Its maximum is the capacity of the lock.
	Utilisation float64 `json:"utilisation"`
	// Gap is the mean time, in nanoseconds, from the end of a hold of a key to the next hold, while clients wait: keys ×
	// window ÷ acquisitions − mean hold. It is nil unless a client always waits and the lock's capacity is one.
	Gap *float64 `json:"gap_ns"`
	// Stall is the longest time, in nanoseconds, in which a key was free and clients waited for it, but none of them
	// obtained it. It is nil if clients of other processes may have obtained the key.
	Stall *int64 `json:"stall_ns" add:"none"`
	// Handoff is the time from the start of a Release to the next lease on the same key. It is recorded only if a client
	// was waiting at the start of the Release. The next lease may belong to a client whose Acquire began later.
	Handoff Distribution `json:"handoff" add:"none"`
	Hold    Distribution `json:"hold" add:"sum"` // lease received → start of Release, as measured
	// HoldAsked is the mean hold, in nanoseconds, that the workload requested for the holds in Hold; nil if it requested
	// none.
	HoldAsked *float64     `json:"hold_asked_mean_ns"`
	Release   Distribution `json:"release" add:"sum"` // start of Release → its return
}

// Waiting is the time from the start of Acquire until the lease is received.
//
// A wait belongs, with its full length, to the window in which it ends. A wait that was open when the window closed is
// a right-censored observation. Percentiles are the product-limit estimate of Kaplan and Meier (J. Am. Stat. Assoc. 53,
// 1958); a percentile beyond the observed range is a lower bound.
//
// If a wait ended at its timeout, the lease might have come later or never. A percentile that depends on such a wait is
// a lower bound (see Survival).
type Waiting struct {
	// PerAcquisition gives every wait the same weight.
	PerAcquisition Distribution `json:"per_acquisition" add:"sum"`
	// PerClient gives every client the same weight, so that clients that barge in thousands of times cannot hide those
	// that starve. It describes the first wait that a randomly chosen client begins after a randomly chosen instant of the
	// window. So the weight of a wait is the time, in nanoseconds, from the start of the client's previous wait to the
	// start of this one. That time does not depend on the length of the wait.
	//
	// The time from a client's last start to the end of the window belongs to a wait that was not observed. Without this
	// time, clients with long waits have too little weight. Rest adds the time to the weight of the client's first wait in
	// the window. If the client began no wait in the window, Rest gives the weight of the whole window to the wait that
	// was open when the window opened. With Rest, clients with long waits have too much weight. If the two results agree
	// within 5 %, the percentile is their geometric mean; otherwise it is a lower bound. For the median, agreement needs
	// about ten waits per client.
	//
	// A client without an acquisition, whose only wait was open when the window closed, counts with the age of this wait
	// and the weight of the whole window. If more than a share 1 − q of the clients waited in this way for at least a time
	// t, the q-quantile is at least t.
	PerClient Distribution `json:"per_client" add:"sum"`
	// Service holds the waits counted from the actual start of Acquire. In a closed loop it equals PerAcquisition, which
	// in an open loop counts from the intended start.
	Service Distribution `json:"service" add:"sum"`
	// Lateness is the time by which the generator itself delayed the starts of an open loop, because a free client woke up
	// late. It is not part of any wait: a wait counts from the intended start only if all clients were busy at that time.
	Lateness Distribution `json:"lateness,omitzero" add:"sum"`
	Open     int64        `json:"open" add:"sum"` // waits still open when the window closed
	// Backlog is the number of arrivals of an open loop that no client had taken when the window closed. These arrivals
	// are unfinished waits too.
	Backlog  int64 `json:"backlog" add:"sum"`
	TimedOut int64 `json:"gave_up" add:"sum"` // waits that ended at their timeout
}

// Fairness is how evenly the clients were served in the window.
//
// The clients of an open loop are slots for arrivals. How the acquisitions are spread over them does not depend on the
// lock, so Jain, WorkingSet and ReacquireDistance are nil.
type Fairness struct {
	AcquisitionsMin int64 `json:"turns_min" add:"min"`
	AcquisitionsMax int64 `json:"turns_max" add:"max"`
	// Jain is (Σx)² ÷ (n·Σx²) over the acquisitions per client (Jain, Chiu, Hawe 1984): 1 is even, 1/n means that one
	// client made every acquisition. It is nil below 20 acquisitions per client, where the index depends on chance.
	Jain *float64 `json:"jain"`
	// Starved is the number of clients that waited but had no acquisition in the window, although there were at least
	// twice as many acquisitions as clients. With several keys, or with fewer acquisitions, such a client may still have
	// had its turn later. Starved is then nil if there is any such client.
	Starved     *int      `json:"starved"`
	LongestWait *Bound    `json:"longest_wait" add:"max"`        // of any client, including open waits
	PerClient   Histogram `json:"turns_hdr,omitempty" add:"sum"` // of the acquisitions per client

	// WorkingSet is the mean number of distinct clients among as many consecutive acquisitions of a key as there are
	// clients (the lock working set size of Dice, Malthusian Locks, EuroSys 2017). A value equal to the number of clients
	// is perfectly fair; 1 means that one client keeps the lock. It is nil without that many acquisitions, or with more
	// than about four million clients × keys.
	WorkingSet *float64 `json:"working_set" add:"none"`
	// ReacquireDistance is the median number of acquisitions of a key from one acquisition by a client to its next (Dice's
	// median time to reacquire).
	ReacquireDistance *int64 `json:"return_p50" add:"none"`
	// Overtaken is the share of acquisitions, in percent, that were granted while a client that had arrived earlier still
	// waited. A client arrives at the start of its Acquire. Requests may overtake one another on the network, so even a
	// FIFO lock has a few such acquisitions.
	Overtaken *float64 `json:"overtakes_percent" add:"none"`
	// LargestBypass is the largest number of acquisitions in the window that went to later arrivals while one and the same
	// client waited. It is nil if clients of other processes may have obtained the lock.
	LargestBypass *int64 `json:"largest_bypass" add:"none"`
	// PassesWithin is the percentage of passes, from one client to another, in which both clients belong to the same
	// application instance. It is nil without passes, if the lock's capacity is not one, or if clients of other processes
	// may have held the lock between two of these clients.
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

// Effort holds the strategy's own counts of its work, per acquisition; nil for a strategy that does not count.
type Effort struct {
	Attempts *float64 `json:"attempts_per_acquisition"` // tries to take the lock at Redis
	WakeUps  *float64 `json:"wake_ups_per_acquisition"` // resumptions of a parked waiter; 1 per handoff is ideal
	Futile   *float64 `json:"futile_wake_ups_per_acquisition"`
}

// Generator holds the resources that lockbench itself used in the window, and the delays that it caused.
type Generator struct {
	CPUSeconds  float64  `json:"cpu_seconds" add:"sum"`
	CPUPercent  float64  `json:"cpu_percent" add:"sum"`          // of one core
	MachineIdle *float64 `json:"machine_idle_percent" add:"min"` // of all cores; Linux only
	// DriverCPUSeconds is the CPU time of the processes in which a driver runs the clients; null without drivers.
	DriverCPUSeconds *float64 `json:"driver_cpu_seconds,omitempty" add:"none"` // generators of a session have no drivers
	// OtherCPU is the CPU time of processes other than lockbench and Redis, in percent of all cores; interrupts do not
	// count. It is null if the system does not report it, or the window is shorter than about half a second.
	OtherCPU *float64 `json:"foreign_cpu_percent" add:"max"`
	// Steal is the CPU time in which the hypervisor ran other virtual machines instead, in percent of all cores. It is
	// null in the same cases as OtherCPU.
	Steal *float64 `json:"steal_percent" add:"max"`
	// StoodStill is the longest time, in nanoseconds, in which lockbench should have run but did not, because lockbench,
	// its container or its machine was stopped. It is nil if it was not observed.
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

// TimeAccounting shows whether all time is accounted for: for every client, wait + hold + release + think must equal
// the window.
type TimeAccounting struct {
	Wait    float64 `json:"wait_seconds" add:"sum"` // sums over all clients, clipped to the window
	Hold    float64 `json:"hold_seconds" add:"sum"`
	Release float64 `json:"release_seconds" add:"sum"`
	Think   float64 `json:"think_seconds" add:"sum"`  // release → next acquire, including the harness's own work
	Window  float64 `json:"window_seconds" add:"sum"` // clients × window
	// WorstPercent is the largest difference, for any client, between wait + hold + release + think and the window, in
	// percent of the window.
	WorstPercent float64 `json:"worst_percent" add:"max"`
	Balanced     bool    `json:"balanced" add:"and"`
}

// ErrorCount is an error text with the number of its occurrences.
type ErrorCount struct {
	Error string `json:"error"`
	Count int64  `json:"count"`
}

// Herd summarises the bursts that ended in the window. In a burst, all clients wait until one holder releases the lock.
type Herd struct {
	Bursts int64 `json:"bursts"`
	// FirstHandoff is the time from the start of the holder's release to the next lease.
	FirstHandoff Distribution `json:"first_handoff"`
	// Drain is the time from the release by the client that obtained the lock first after the holder until the last client
	// has obtained the lock; 0 with two clients.
	Drain Distribution `json:"drain"`
	// Attempts, WakeUps and Commands are means per burst, counted from the holder's release until the next holder had held
	// the lock for as long as the first holder did. 1 attempt and 1 wake-up are ideal. The regular attempts of polling
	// clients count too. A value is nil if the strategy does not count it, or if the servers cannot be read.
	Attempts *float64 `json:"attempts"`
	WakeUps  *float64 `json:"wake_ups"`
	Commands *float64 `json:"commands"`
	// DrainCommands is the number of commands at Redis per acquisition while the remaining clients of a burst obtain the
	// lock.
	DrainCommands *float64 `json:"drain_commands_per_acquisition"`
	// PeakCPU is the largest CPU use of the servers, in percent of one core, while the remaining clients of a burst obtain
	// the lock.
	PeakCPU *float64 `json:"peak_redis_cpu_percent"`
}

// Leftovers lists the keys, channels and connections that a run left on the servers.
type Leftovers struct {
	Keys        []string
	Channels    []string // with at least one subscriber
	Connections []string // id, last command and age of each, from CLIENT LIST
}

// Safety is the audit of a run. It includes warm-up and drain, because exclusion must hold at any time.
type Safety struct {
	// Overlaps counts the leases that were granted although valid leases of the key already filled the lock's capacity.
	// OverlapNS is the total time of these overlaps in nanoseconds.
	Overlaps  int64 `json:"overlaps" add:"sum"`
	OverlapNS int64 `json:"overlap_ns" add:"sum"`
	// ExpiredOverlaps counts the overlaps with a holder whose lease had expired or may have expired.
	ExpiredOverlaps  int64 `json:"late_overlaps" add:"sum"`
	ExpiredOverlapNS int64 `json:"late_overlap_ns" add:"sum"`

	MaxHolders        int   `json:"max_holders" add:"max"`
	FencedLeases      int64 `json:"fenced_leases" add:"sum"`      // leases that carried a token
	FencingRegression int64 `json:"fencing_regression" add:"sum"` // tokens not larger than an earlier one
	LostLeases        int64 `json:"lost_leases" add:"sum"`        // releases that found that the lease had ended

	// LostUpdates is the number of updates under the lock that are missing from the counters or rows; nil without
	// --work counter or transaction.
	LostUpdates *int64 `json:"lost_updates" add:"known"`
	// Refused counts the updates that the counter refused because of a stale fencing token, or that the row refused
	// because of its version; nil if neither was checked.
	Refused *int64 `json:"refused_updates" add:"known"`

	// Leftovers names the keys, connections and subscriptions that the strategy left on the servers without declaring
	// them, at most 20.
	Leftovers     []string `json:"leftovers,omitempty" add:"sum"`
	LeftoverCount *int64   `json:"leftover_count" add:"known"` // nil if the servers could not be read
	// Hung is the number of clients that did not return from Acquire or Release after the run had stopped them.
	Hung int `json:"stuck_clients" add:"sum"`

	// LostKeys names the ways in which the servers lost keys through no action of the strategy, such as evictions. If
	// there are any, no guarantee is judged.
	LostKeys []string `json:"lost_keys,omitempty" add:"sum"`
	// Broken names each claimed guarantee that did not hold. If there is one, lockbench exits with code 111.
	Broken Remarks `json:"broken_claims,omitempty" add:"sum"`
}

// Fault is a fault of the workload with its effects in a run.
type Fault struct {
	Fault      workloads.Fault `json:"fault"`
	Injections []Injection     `json:"strikes"`
	// Missed holds the reason for each injection that was due but did not happen.
	Missed []string `json:"missed,omitempty"`
}

// Injection describes one occurrence of a fault, and what followed until the next injection of any fault or the end of
// the run.
type Injection struct {
	AtNS     int64  `json:"at_ns"`         // since the window opened
	LastedNS int64  `json:"lasted_ns"`     // 0: it was over at once
	Key      string `json:"key,omitempty"` // the key that it affects; empty: all
	// Halts means that no client could obtain a lock during the fault or, in a failover, until there was a new primary.
	Halts bool `json:"halts,omitempty"`
	// RecoveryNS is the time from the injection to the next acquisition of an affected key. If Halts is set, only
	// acquisitions after the outage count. nil means that there was no such acquisition in the window.
	RecoveryNS *int64 `json:"recovery_ns"`
	// Stall is the longest time without an acquisition of an affected key between this injection and the next one of any
	// fault, or the end of the window. It is a lower bound if the next injection or the end of the window cut this time
	// short.
	Stall *Bound `json:"stall"`

	Overlaps  int64 `json:"overlaps"` // as in Safety, for this injection
	OverlapNS int64 `json:"overlap_ns"`
	Late      int64 `json:"late_overlaps"`
	LateNS    int64 `json:"late_overlap_ns"`
	// LostWakeUps counts how often a key stayed free too long although a client was waiting when the key was released: for
	// more than one second, or for more than half the TTL if that is less.
	LostWakeUps int64 `json:"lost_wake_ups"`
}

// Slice holds the figures of a part of a run's window, usually one second.
type Slice struct {
	At           float64 `json:"at_seconds"`        // its start, since the window opened
	Seconds      float64 `json:"seconds" add:"sum"` // its length
	Acquisitions int64   `json:"acquisitions" add:"sum"`
	Waiting      int     `json:"waiting"` // clients that waited at its end
	// WaitP50, WaitP99 and WaitMax describe the waits in the slice, as Distribution does for the window; nil without
	// waits. WaitMax is the longest wait that ended in the slice.
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

// Wait is a wait in progress: the index of the client, and the nanoseconds for which it has been waiting.
type Wait struct {
	Client int
	NS     int64
}

// Halve halves the number of slices by joining neighbours in pairs. Of two percentiles it keeps the larger one.
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
