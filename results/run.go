package results

import (
	"cmp"
	"time"
)

// Run is one strategy measured once: what happened in its window, unless a
// field says otherwise.
type Run struct {
	Strategy string    `json:"strategy" merge:"first"`
	Point    string    `json:"point,omitempty" merge:"first"` // of a sweep: its label, see Report.WorkloadOf
	Round    int       `json:"round" merge:"first"`           // from 1; runs of a round are neighbours in time and compared in pairs
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
	// Faults are those of the workload, one by one.
	Faults []Fault `json:"faults,omitempty" merge:"-"`

	Errors  []ErrorCount `json:"errors,omitempty"`              // errors of Acquire and Release, most frequent first
	Failure string       `json:"failure,omitempty" merge:"-"`   // what ended the run early
	Partial bool         `json:"partial,omitempty" merge:"any"` // the window was cut short
	Invalid []string     `json:"invalid,omitempty" merge:"-"`   // why the figures cannot be trusted; empty for a valid run
	Labels  []string     `json:"labels,omitempty" merge:"-"`    // what a reader should know: "generator-bound"
}

// Valid says whether the figures can be trusted.
func (r Run) Valid() bool { return len(r.Invalid) == 0 }

// Speed is how much work went through the lock.
type Speed struct {
	Acquisitions int64   `json:"acquisitions" merge:"sum"` // leases granted in the window
	PerSecond    float64 `json:"acquisitions_per_second" merge:"sum"`
	// Served counts the clients whose work was done: acquisitions, and clients that
	// shared somebody's with --coalesce.
	Served          int64   `json:"served" merge:"sum"`
	ServedPerSecond float64 `json:"served_per_second" merge:"sum"`
	// Utilisation is the sum of actual holds ÷ window ÷ keys; the ceiling is the
	// capacity of the lock.
	Utilisation float64 `json:"utilisation" merge:"sum"`
	// Gap is the lock's own part of an acquisition's time in nanoseconds, for which nobody holds it
	// although somebody waits: keys × window ÷ acquisitions − mean hold. nil where it
	// is not so that somebody always waits, or the lock admits other than one.
	Gap *float64 `json:"gap_ns" merge:"-"`
	// Handoff is the time from the start of a Release to the next lease on the
	// same key, only where somebody was waiting when the release began.
	Handoff Distribution `json:"handoff" merge:"-"`
	Hold    Distribution `json:"hold" merge:"pool"`    // lease in hand → start of Release, as it came to
	Release Distribution `json:"release" merge:"pool"` // start of Release → its return
}

// Waiting is the time from the start of Acquire to the lease in hand.
//
// A wait belongs to the window in which it ends, with its full length. A wait
// still open when the window closes, and one given up at its timeout, is a
// right-censored observation: percentiles are Kaplan and Meier's product-limit
// estimate (J. Am. Stat. Assoc. 53, 1958), and one that falls beyond what was
// observed is a lower bound.
type Waiting struct {
	// PerAcquisition weighs every wait alike.
	PerAcquisition Distribution `json:"per_acquisition" merge:"pool"`
	// PerClient weighs every client alike, so that clients that barge in thousands of
	// times cannot hide those that starve: choose a client and an instant of the
	// window at random, then take the first wait that the client begins from there
	// on. So a wait counts by the time, in nanoseconds, between its beginning and that
	// of the client's wait before, which does not depend on how long it takes itself.
	//
	// The time from a client's last beginning to the end of the window belongs to a
	// wait that was not seen. Without that time clients that wait long have too little
	// weight; put on the client's first wait in the window (or on its only one, at its
	// full length, if that began before), which is Rest, it gives them too much. The
	// percentiles are between the two where these agree within 5 %, which takes about
	// ten waits a client for the median; elsewhere lower bounds.
	PerClient Distribution `json:"per_client" merge:"pool"`
	// Service is the same from the actual start of Acquire. In a closed loop that is
	// PerAcquisition without the open waits; in an open loop PerAcquisition counts
	// from the intended start.
	Service Distribution `json:"service" merge:"pool"`
	// Lateness is by how much the generator itself delayed an open loop's starts: a
	// client was free, and woke up late. It is no part of any wait, which begins at
	// the intended start only while all clients are busy.
	Lateness Distribution `json:"lateness,omitzero" merge:"pool"`
	Open     int64        `json:"open" merge:"sum"`    // waits still open when the window closed
	Backlog  int64        `json:"backlog" merge:"sum"` // open loop: arrivals that had found no client by then, open waits too
	TimedOut int64        `json:"gave_up" merge:"sum"` // waits that ended at their timeout
}

// Distribution is a set of durations in nanoseconds.
type Distribution struct {
	Count    int64    `json:"count"`              // observed to their end
	Censored int64    `json:"censored,omitempty"` // known only to be longer than what was seen of them
	MeanNS   *float64 `json:"mean_ns"`            // of the observed ones
	P50      *Bound   `json:"p50"`
	P90      *Bound   `json:"p90"`
	P95      *Bound   `json:"p95"`
	P99      *Bound   `json:"p99"`
	P999     *Bound   `json:"p999"`
	Max      *Bound   `json:"max"` // exact, censored ones included
	// Histogram is the observed ones in HdrHistogram's V2 compressed encoding,
	// base64; empty where there is none. CensoredHistogram is what was seen of the
	// censored ones. EnteredHistogram is the age of those that were under way when
	// the window opened, at that instant. See Survival.
	Histogram         string `json:"hdr,omitempty"`
	CensoredHistogram string `json:"censored_hdr,omitempty"`
	EnteredHistogram  string `json:"entered_hdr,omitempty"`
	Rest              *Rest  `json:"rest,omitempty"`     // of Waiting.PerClient only
	Overflow          int64  `json:"overflow,omitempty"` // longer than the histogram's range; counted as its top
}

// Rest is weight that belongs to durations which began after the window, put on
// those of the same client that were seen, encoded as those of the Distribution.
type Rest struct {
	Histogram         string `json:"hdr,omitempty"`
	CensoredHistogram string `json:"censored_hdr,omitempty"`
}

// Bound is a duration, or with AtLeast a lower bound of one.
type Bound struct {
	NS      int64 `json:"ns"`
	AtLeast bool  `json:"at_least,omitempty"`
}

// compare orders by length; of the same length a lower bound is the longer one.
func (b Bound) compare(other Bound) int {
	switch {
	case b.NS != other.NS || b.AtLeast == other.AtLeast:
		return cmp.Compare(b.NS, other.NS)
	case b.AtLeast:
		return 1
	}
	return -1
}

// Longest is the longest of these, a lower bound if one of that length is; nil of
// none that is known.
func Longest(all ...*Bound) *Bound {
	var longest *Bound
	for _, b := range all {
		if b != nil && (longest == nil || b.compare(*longest) > 0) {
			longest = b
		}
	}
	return longest
}

// Fairness is how evenly the clients were served in the window.
//
// The clients of an open loop are slots that arrivals are given to: what they
// got says nothing of the lock, so Jain, WorkingSet and ReacquireDistance are nil there.
type Fairness struct {
	AcquisitionsMin int64 `json:"turns_min" merge:"min"`
	AcquisitionsMax int64 `json:"turns_max" merge:"max"`
	// Jain is (Σx)² ÷ (n·Σx²) over the acquisitions per client (Jain, Chiu, Hawe 1984): 1 is
	// even, 1/n is one client having it all. nil below 20 acquisitions a client, where
	// chance alone moves it.
	Jain *float64 `json:"jain" merge:"-"`
	// Starved are the clients that waited and had no acquisition although there were two for
	// each. nil where some have none and the window was too short for two rounds, in
	// which a fair lock serves everybody: they may only have been due later.
	Starved     *int   `json:"starved" merge:"sum"`
	LongestWait *Bound `json:"longest_wait" merge:"max"` // of any client, open ones included
	// PerClient is a histogram of the acquisitions per client, encoded as Distribution.Histogram;
	// see AcquisitionsHistogram.
	PerClient string `json:"turns_hdr,omitempty" merge:"-"`

	// WorkingSet is the number of distinct clients among as many consecutive
	// acquisitions of a key as there are clients, on average (the lock working set
	// size of Dice, Malthusian Locks, EuroSys 2017): the number of clients is
	// perfectly fair, 1 is one client keeping the lock. nil without that many
	// acquisitions, or with more than a few million clients × keys.
	WorkingSet *float64 `json:"working_set" merge:"-"`
	// ReacquireDistance is the median number of acquisitions of a key until the same client's
	// next one (Dice's median time to reacquire).
	ReacquireDistance *int64 `json:"return_p50" merge:"-"`
	// Overtaken is the share of acquisitions, in percent, while an earlier arrival
	// was still waiting. Arrival is the start of Acquire: requests cross on their
	// way, so a FIFO lock shows a few.
	Overtaken *float64 `json:"overtakes_percent" merge:"-"`
	// LargestBypass is the most later arrivals that got the lock while one client
	// waited.
	LargestBypass int64 `json:"largest_bypass" merge:"max"`
}

// Effort is what strategies report of themselves; nil for a black box.
type Effort struct {
	Attempts *float64 `json:"attempts_per_acquisition" merge:"weighted"` // tries to take the lock at Redis
	WakeUps  *float64 `json:"wake_ups_per_acquisition" merge:"weighted"` // resumptions of a parked waiter; 1 per handoff is ideal
	Futile   *float64 `json:"futile_wake_ups_per_acquisition" merge:"weighted"`
}

// Generator is the health of lockbench itself in the window.
type Generator struct {
	CPUSeconds  float64  `json:"cpu_seconds" merge:"sum"`
	CPUPercent  float64  `json:"cpu_percent" merge:"sum"`          // of one core
	MachineIdle *float64 `json:"machine_idle_percent" merge:"min"` // of all cores; Linux only
	// OtherCPU is the CPU time that processes used which are neither lockbench nor Redis,
	// in percent of all cores; interrupts are nobody's. null where the system does not
	// say, and in a window of less than about half a second.
	OtherCPU *float64 `json:"foreign_cpu_percent" merge:"max"`
	// Steal is the time in which the hypervisor ran another machine, in percent of all
	// cores; null as OtherCPU.
	Steal          *float64 `json:"steal_percent" merge:"max"`
	SchedulingP99  int64    `json:"scheduling_p99_ns" merge:"max"` // goroutine runnable → running, bucket's upper bound
	GCCount        int64    `json:"gc_count" merge:"sum"`
	GCPauseNS      int64    `json:"gc_pause_ns" merge:"sum"` // stop-the-world, in all
	GCCPUSeconds   float64  `json:"gc_cpu_seconds" merge:"sum"`
	TimerOvershoot *int64   `json:"timer_overshoot_p50_ns" merge:"max"` // actual − asked hold; nil without one
	Starts         int64    `json:"starts" merge:"sum"`                 // open loop: starts in the window
	LateStarts     int64    `json:"late_starts" merge:"sum"`            // open loop: starts delayed by the generator, by over 10 ms
	BehindStarts   int64    `json:"behind_starts" merge:"sum"`          // open loop: starts over 10 ms late because no client was free
	PoolWaits      int64    `json:"pool_waits" merge:"sum"`             // commands that waited for a connection
	PoolWaitNS     int64    `json:"pool_wait_ns" merge:"sum"`           // their waits in all
	PoolTimeouts   int64    `json:"pool_timeouts" merge:"sum"`
	PeakRSS        int64    `json:"peak_rss_bytes" merge:"sum"` // resident memory of the process so far
}

// TimeAccounting is the proof that no time was lost: for every client wait + hold +
// release + think must come to the window.
type TimeAccounting struct {
	Wait    float64 `json:"wait_seconds" merge:"sum"` // sums over all clients, clipped to the window
	Hold    float64 `json:"hold_seconds" merge:"sum"`
	Release float64 `json:"release_seconds" merge:"sum"`
	Think   float64 `json:"think_seconds" merge:"sum"`  // release → next acquire, the harness's own work included
	Window  float64 `json:"window_seconds" merge:"sum"` // clients × window
	// WorstPercent is the largest difference of any client, in percent of the
	// window.
	WorstPercent float64 `json:"worst_percent" merge:"max"`
	Balanced     bool    `json:"balanced" merge:"all"`
}

// ErrorCount is how often an error occurred.
type ErrorCount struct {
	Error string `json:"error" merge:"key"`
	Count int64  `json:"count" merge:"sum"`
}
