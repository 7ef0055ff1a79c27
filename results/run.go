package results

import (
	"cmp"
	"time"
)

// Run is one measurement of one strategy: the events in its window, unless a field says
// otherwise.
type Run struct {
	Strategy string    `json:"strategy" merge:"first"`
	Point    string    `json:"point,omitempty" merge:"first"` // of a sweep: its label, see Report.WorkloadOf
	Round    int       `json:"round" merge:"first"`           // from 1; the runs of a round follow one another and are compared in pairs
	Order    int       `json:"order" merge:"first"`           // from 1, within the round
	Seed     int64     `json:"seed" merge:"first"`
	Started  time.Time `json:"started" merge:"-"` // of the window
	WindowNS int64     `json:"window_ns" merge:"-"`

	Speed          Speed          `json:"speed"`
	Waiting        Waiting        `json:"waiting"`
	Fairness       Fairness       `json:"fairness"`
	Effort         Effort         `json:"effort"`
	Server         Server         `json:"server"`
	Safety         Safety         `json:"safety"`
	Generator      Generator      `json:"generator"`
	TimeAccounting TimeAccounting `json:"books"`
	Timeline       []Slice        `json:"timeline,omitempty"`
	Herd           *Herd          `json:"herd,omitempty" merge:"-"` // of a workload of bursts
	// Faults are the workload's faults, one by one.
	Faults []Fault `json:"faults,omitempty" merge:"-"`

	Errors  []ErrorCount `json:"errors,omitempty"`              // errors of Acquire and Release, most frequent first
	Failure string       `json:"failure,omitempty" merge:"-"`   // what ended the run early
	Partial bool         `json:"partial,omitempty" merge:"any"` // the window was cut short
	Invalid []string     `json:"invalid,omitempty" merge:"-"`   // why the figures cannot be trusted; empty for a valid run
	Labels  []string     `json:"labels,omitempty" merge:"-"`    // remarks for the reader: "generator-bound"
}

const (
	stillShare = 0.05                   // of the window
	stallLeast = 300 * time.Millisecond // so that a short window on a loaded machine is not remarked on
	// stillLeast is longer than what a loaded machine alone does to a process: one waited for 498 ms.
	stillLeast = time.Second
)

// Stalled says whether a lock stood still for so long that it marks the figures: for over 5 % of the
// window, and over 300 ms.
func (r Run) Stalled() bool { return r.marks(r.Speed.Stall, stallLeast) }

// StoodStill says whether lockbench itself did so: for over 5 % of the window, and over a second.
func (r Run) StoodStill() bool { return r.marks(r.Generator.StoodStill, stillLeast) }

func (r Run) marks(still *int64, least time.Duration) bool {
	return still != nil && float64(*still) > stillShare*float64(r.WindowNS) && *still > int64(least)
}

// Valid says whether the figures can be trusted.
func (r Run) Valid() bool { return len(r.Invalid) == 0 }

// Speed says how much work went through the lock.
type Speed struct {
	Acquisitions int64   `json:"acquisitions" merge:"sum"` // leases granted in the window
	PerSecond    float64 `json:"acquisitions_per_second" merge:"sum"`
	// Served counts the clients whose work was done: the acquisitions, and the clients that
	// shared one with --coalesce.
	Served          int64   `json:"served" merge:"sum"`
	ServedPerSecond float64 `json:"served_per_second" merge:"sum"`
	// Utilisation is the sum of all holds ÷ window ÷ keys. At most it is the capacity of the
	// lock.
	Utilisation float64 `json:"utilisation" merge:"sum"`
	// Gap is the lock's own part of an acquisition's time in nanoseconds, in which no client
	// holds it although clients wait: keys × window ÷ acquisitions − mean hold. nil if there is
	// not always a waiter, or the lock's capacity is not one.
	Gap *float64 `json:"gap_ns" merge:"-"`
	// Stall is the longest time, in nanoseconds, in which a key could be had, clients waited for
	// it, and none got it; nil if the clients of other processes may have.
	Stall *int64 `json:"stall_ns" merge:"-"`
	// Handoff is the time from the start of a Release to the next lease on the same key. It only
	// counts if a client was waiting when the release began; the lease may be that of a client
	// that asked later.
	Handoff Distribution `json:"handoff" merge:"-"`
	Hold    Distribution `json:"hold" merge:"pool"` // lease received → start of Release, as measured
	// HoldAsked is the mean, in nanoseconds, of what the workload asked of these holds; nil if it
	// asked for none.
	HoldAsked *float64     `json:"hold_asked_mean_ns" merge:"weighted"`
	Release   Distribution `json:"release" merge:"pool"` // start of Release → its return
}

// Waiting is the time from the start of Acquire until the lease is received.
//
// A wait belongs, with its full length, to the window in which it ends. A wait that was open
// when the window closed, or that timed out, is a right-censored observation. Percentiles are
// the product-limit estimate of Kaplan and Meier (J. Am. Stat. Assoc. 53, 1958); a
// percentile beyond the observed range is a lower bound.
type Waiting struct {
	// PerAcquisition gives every wait the same weight.
	PerAcquisition Distribution `json:"per_acquisition" merge:"pool"`
	// PerClient gives every client the same weight, so that clients that barge in thousands of
	// times cannot hide those that starve. Choose a client and an instant of the window at
	// random, and take the first wait that the client begins after it. So the weight of a wait
	// is the time, in nanoseconds, from the start of the client's previous wait to its own
	// start. That time does not depend on the length of the wait.
	//
	// The time from a client's last start to the end of the window belongs to a wait that was
	// not seen. Without that time, clients with long waits have too little weight. Rest puts it
	// on the client's first wait in the window (or on its only wait, at its full length, if that
	// began before): then they have too much. A percentile is between the two results if they
	// agree within 5 %, which needs about ten waits per client for the median; otherwise it is a
	// lower bound.
	PerClient Distribution `json:"per_client" merge:"pool"`
	// Service is the same from the actual start of Acquire. In a closed loop it is PerAcquisition
	// without the open waits. In an open loop PerAcquisition counts from the intended start.
	Service Distribution `json:"service" merge:"pool"`
	// Lateness is the time by which the generator itself delayed the starts of an open loop: a
	// client was free but woke up late. It is not part of any wait: a wait begins at the intended
	// start only if all clients are busy then.
	Lateness Distribution `json:"lateness,omitzero" merge:"pool"`
	Open     int64        `json:"open" merge:"sum"`    // waits still open when the window closed
	Backlog  int64        `json:"backlog" merge:"sum"` // open loop: arrivals that no client had taken by then; they are open waits too
	TimedOut int64        `json:"gave_up" merge:"sum"` // waits that ended at their timeout
}

// Distribution is a set of durations in nanoseconds.
type Distribution struct {
	Count    int64    `json:"count"`              // durations that were seen to end
	Censored int64    `json:"censored,omitempty"` // durations of which only a lower bound is known
	MeanNS   *float64 `json:"mean_ns"`            // of those that were seen to end
	P50      *Bound   `json:"p50"`
	P90      *Bound   `json:"p90"`
	P95      *Bound   `json:"p95"`
	P99      *Bound   `json:"p99"`
	P999     *Bound   `json:"p999"`
	Max      *Bound   `json:"max"` // exact, including the censored ones
	// Histogram holds the durations that were seen to end, in HdrHistogram's V2 compressed
	// encoding, base64; empty if there are none. CensoredHistogram holds what was seen of the
	// censored ones. EnteredHistogram holds the ages, at the opening of the window, of those
	// that were under way then. See Survival.
	Histogram         string `json:"hdr,omitempty"`
	CensoredHistogram string `json:"censored_hdr,omitempty"`
	EnteredHistogram  string `json:"entered_hdr,omitempty"`
	Rest              *Rest  `json:"rest,omitempty"`     // of Waiting.PerClient only
	Overflow          int64  `json:"overflow,omitempty"` // durations above the histogram's range; they count as its largest value
}

// Rest is the weight of durations that began after the window. It is put on durations of the
// same client that were seen, and encoded like those of the Distribution.
type Rest struct {
	Histogram         string `json:"hdr,omitempty"`
	CensoredHistogram string `json:"censored_hdr,omitempty"`
}

// Bound is a duration, or with AtLeast a lower bound of a duration.
type Bound struct {
	NS      int64 `json:"ns"`
	AtLeast bool  `json:"at_least,omitempty"`
}

// compare orders by length; of two equal lengths a lower bound is the longer one.
func (b Bound) compare(other Bound) int {
	switch {
	case b.NS != other.NS || b.AtLeast == other.AtLeast:
		return cmp.Compare(b.NS, other.NS)
	case b.AtLeast:
		return 1
	}
	return -1
}

// Longest returns the longest bound, as a lower bound if one of that length is; nil if none
// is known.
func Longest(all ...*Bound) *Bound {
	var longest *Bound
	for _, b := range all {
		if b != nil && (longest == nil || b.compare(*longest) > 0) {
			longest = b
		}
	}
	return longest
}

// Fairness says how evenly the clients were served in the window.
//
// The clients of an open loop are slots for arrivals. Their acquisitions do not depend on the
// lock, so Jain, WorkingSet and ReacquireDistance are nil there.
type Fairness struct {
	AcquisitionsMin int64 `json:"turns_min" merge:"min"`
	AcquisitionsMax int64 `json:"turns_max" merge:"max"`
	// Jain is (Σx)² ÷ (n·Σx²) over the acquisitions per client (Jain, Chiu, Hawe 1984): 1 is
	// even, 1/n means that one client has all. nil below 20 acquisitions per client, where the
	// index depends on chance.
	Jain *float64 `json:"jain" merge:"-"`
	// Starved is the number of clients that waited and had no acquisition although there were two
	// for each. nil if a client had none and the window was too short for two rounds, in which a
	// fair lock serves every client: its turn may only have been later.
	Starved     *int   `json:"starved" merge:"sum"`
	LongestWait *Bound `json:"longest_wait" merge:"max"` // of any client, including open waits
	// PerClient is a histogram of the acquisitions per client, encoded like
	// Distribution.Histogram; see PerClientHistogram.
	PerClient string `json:"turns_hdr,omitempty" merge:"-"`

	// WorkingSet is the mean number of distinct clients among as many consecutive acquisitions of
	// a key as there are clients (the lock working set size of Dice, Malthusian Locks, EuroSys
	// 2017). The number of clients is perfectly fair; 1 means that one client keeps the lock. nil
	// without that many acquisitions, or with more than about four million clients × keys.
	WorkingSet *float64 `json:"working_set" merge:"-"`
	// ReacquireDistance is the median number of acquisitions of a key until the same client's
	// next one (Dice's median time to reacquire).
	ReacquireDistance *int64 `json:"return_p50" merge:"-"`
	// Overtaken is the share of acquisitions, in percent, while an earlier arrival still waited.
	// Arrival is the start of Acquire. Requests may cross on their way, so a FIFO lock shows a
	// few.
	Overtaken *float64 `json:"overtakes_percent" merge:"-"`
	// LargestBypass is the largest number of later arrivals that got the lock, in the window, while
	// one client waited.
	LargestBypass int64 `json:"largest_bypass" merge:"max"`
	// PassesWithin is the share, in percent, of the passes from one client to another that stayed
	// within an application instance. nil without any, if the lock's capacity is not one, or if
	// clients of other processes may have been in between.
	PassesWithin *float64 `json:"passes_within_instance_percent" merge:"-"`
}

// Effort is what the strategies report of their own work; nil for a black box.
type Effort struct {
	Attempts *float64 `json:"attempts_per_acquisition" merge:"weighted"` // tries to take the lock at Redis
	WakeUps  *float64 `json:"wake_ups_per_acquisition" merge:"weighted"` // resumptions of a parked waiter; 1 per handoff is ideal
	Futile   *float64 `json:"futile_wake_ups_per_acquisition" merge:"weighted"`
}

// Generator is the load of lockbench itself in the window.
type Generator struct {
	CPUSeconds  float64  `json:"cpu_seconds" merge:"sum"`
	CPUPercent  float64  `json:"cpu_percent" merge:"sum"`          // of one core
	MachineIdle *float64 `json:"machine_idle_percent" merge:"min"` // of all cores; Linux only
	// OtherCPU is the CPU time of processes other than lockbench and Redis, in percent of all
	// cores; interrupts count for no process. null if the system does not say, or the window is
	// shorter than about half a second.
	OtherCPU *float64 `json:"foreign_cpu_percent" merge:"max"`
	// Steal is the time in which the hypervisor ran another machine, in percent of all cores; null
	// as for OtherCPU.
	Steal *float64 `json:"steal_percent" merge:"max"`
	// StoodStill is the longest time, in nanoseconds, in which lockbench did not run although it
	// wanted to: it was stopped, or its container or machine was. nil if it was not observed.
	StoodStill     *int64  `json:"stood_still_ns" merge:"max"`
	SchedulingP99  int64   `json:"scheduling_p99_ns" merge:"max"` // goroutine runnable → running, bucket's upper bound
	GCCount        int64   `json:"gc_count" merge:"sum"`
	GCPauseNS      int64   `json:"gc_pause_ns" merge:"sum"` // sum of stop-the-world pauses
	GCCPUSeconds   float64 `json:"gc_cpu_seconds" merge:"sum"`
	TimerOvershoot *int64  `json:"timer_overshoot_p50_ns" merge:"max"` // actual − asked hold; nil without any
	Starts         int64   `json:"starts" merge:"sum"`                 // open loop: starts in the window
	LateStarts     int64   `json:"late_starts" merge:"sum"`            // open loop: starts more than 10 ms late because of the generator
	BehindStarts   int64   `json:"behind_starts" merge:"sum"`          // open loop: starts more than 10 ms late because no client was free
	PoolWaits      int64   `json:"pool_waits" merge:"sum"`             // commands that waited for a connection
	PoolWaitNS     int64   `json:"pool_wait_ns" merge:"sum"`           // sum of their waits
	PoolTimeouts   int64   `json:"pool_timeouts" merge:"sum"`
	PeakRSS        int64   `json:"peak_rss_bytes" merge:"sum"` // largest resident memory of the process so far
}

// TimeAccounting proves that no time was lost: for every client wait + hold + release + think
// must be equal to the window.
type TimeAccounting struct {
	Wait    float64 `json:"wait_seconds" merge:"sum"` // sums over all clients, clipped to the window
	Hold    float64 `json:"hold_seconds" merge:"sum"`
	Release float64 `json:"release_seconds" merge:"sum"`
	Think   float64 `json:"think_seconds" merge:"sum"`  // release → next acquire, including the harness's own work
	Window  float64 `json:"window_seconds" merge:"sum"` // clients × window
	// WorstPercent is the largest difference of a client, in percent of the window.
	WorstPercent float64 `json:"worst_percent" merge:"max"`
	Balanced     bool    `json:"balanced" merge:"all"`
}

// ErrorCount says how often an error occurred.
type ErrorCount struct {
	Error string `json:"error" merge:"key"`
	Count int64  `json:"count" merge:"sum"`
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

// Leftovers is what a run left on the servers.
type Leftovers struct {
	Keys        []string
	Channels    []string // with at least one subscriber
	Connections []string // of each: id, last command and age in CLIENT LIST
}

// enoughAcquisitions is the mean number per client from which on Jain's index is not mere chance.
const enoughAcquisitions = 20

// Jain returns Jain's index, see Fairness, of the clients' acquisitions, from their sum and the
// sum of their squares; nil if there are too few.
func Jain(clients, sum, squares float64) *float64 {
	if clients == 0 || sum < enoughAcquisitions*clients {
		return nil
	}
	return new(sum * sum / (clients * squares))
}
