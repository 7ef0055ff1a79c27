// Package workloads says what the clients of a run do, as plain data: flags and
// files fill it, the engine carries it out, the report repeats it.
package workloads

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Spec is a workload: clients that acquire, hold, release and think, over and
// over (a closed loop), or whenever an arrival is due (an open one).
type Spec struct {
	Clients   int     `json:"clients"`   // clients in all; in an open loop the most that may be in flight
	Instances int     `json:"instances"` // application instances; client i uses instance i mod Instances
	Keys      int     `json:"keys"`      // locks the clients choose among
	KeyDist   KeyDist `json:"key_dist"`

	// Rate opens the loop: so many arrivals a second in all, however long the earlier ones
	// take. 0 means a closed loop.
	Rate     Rate     `json:"rate"`
	Arrivals Arrivals `json:"arrivals"` // of an open loop
	// Stages change the load during the window: the active clients of a closed loop, or the
	// rate of an open one.
	Stages Stages `json:"stages,omitempty"`

	// Burst, unless it is 0, makes all clients wait together: one of them holds the lock for
	// that long, then it releases, and the rest are served one after the other.
	Burst Duration `json:"burst,omitempty"`

	Hold  Dist     `json:"hold"`  // as asked for; the report has what was measured
	Think Dist     `json:"think"` // of a closed loop, between a release and the next acquire
	TTL   Duration `json:"ttl"`
	// Timeout bounds a wait; nil means no limit, and 0 a try-lock.
	Timeout *Duration `json:"timeout"`

	Work Work `json:"work"` // under the lock, around the hold
	// Fence is what the counter does with fencing tokens.
	Fence Fence `json:"fence"`
	// Counter is where the counter is kept.
	Counter CounterPlace `json:"counter,omitempty"`
	// Coalesce makes clients of an instance that want the same key at the same time share one
	// acquisition and its work (singleflight).
	Coalesce bool `json:"coalesce"`

	// Faults are what goes wrong on purpose during the run.
	Faults []Fault `json:"faults,omitempty"`

	Warmup   Duration `json:"warmup"`
	Duration Duration `json:"duration"` // of the window, unless Iterations ends it
	// Iterations ends the window after that many acquisitions in all; 0 means no such end.
	Iterations int64 `json:"iterations"`

	Pool int `json:"pool"` // connections an instance; 0 is min(clients of the instance, 64)
	// Seed is the seed of everything that is random. With 0 a session draws one, and its
	// report has it here; a Job by itself uses 0.
	Seed int64 `json:"seed"`
}

// Default is a hot lock as people benchmark it: all clients want the one key.
func Default() Spec {
	return Spec{
		Clients:   100,
		Instances: 10,
		Keys:      1,
		Arrivals:  ArrivalsPoisson,
		TTL:       Duration(30 * time.Second),
		Work:      WorkNone,
		Fence:     FenceAll,
		Warmup:    Duration(time.Second),
		Duration:  Duration(5 * time.Second),
	}
}

// maxRate is far beyond what any lock or generator can do.
const maxRate Rate = 1e6

// Work is what a holder does while it holds.
type Work string

const (
	// WorkNone is nothing: the holder sleeps.
	WorkNone Work = "none"
	// WorkSleep is WorkNone by its other name.
	WorkSleep Work = "sleep"
	// WorkSpin computes for as long as the hold, on a core of the generator's
	// machine: exact also below a millisecond.
	WorkSpin Work = "spin"
	// WorkCounter reads a counter, holds, and writes it back one higher: two holders at once
	// lose an update, and the counter shows that.
	WorkCounter Work = "counter"
)

// Fence is what the counter does with the fencing tokens of a strategy that has
// them.
type Fence string

const (
	// FenceAll refuses reads and writes with a token older than one it has seen.
	FenceAll Fence = "all"
	// FenceWrites checks writes only, and learns tokens from writes only.
	FenceWrites Fence = "writes"
	// FenceOff checks nothing.
	FenceOff Fence = "off"
)

// CounterPlace is where the counter of WorkCounter is kept.
type CounterPlace string

const (
	// CounterWithLocks is in the store of the locks: a fault that hits one hits the other.
	CounterWithLocks CounterPlace = ""
	// CounterApart is in a Redis of its own, which no fault hits: it shows what was lost even
	// if the locks' store has forgotten it.
	CounterApart CounterPlace = "apart"
)

// MaxPool is the largest command pool an instance opens unless Pool says more: more
// connections gain nothing on one Redis thread.
const MaxPool = 64

// ClientsPerInstance is the number of clients of the fullest instance.
func (s Spec) ClientsPerInstance() int {
	return (s.Clients + s.Instances - 1) / s.Instances
}

// PoolSize is the size of an instance's command pool.
func (s Spec) PoolSize() int {
	if s.Pool > 0 {
		return s.Pool
	}
	return min(s.ClientsPerInstance(), MaxPool)
}

// Times returns n/d of the workload: what several generators carry out together, or one of them
// alone.
func (s Spec) Times(n, d int) Spec {
	s.Clients = s.Clients * n / d
	s.Instances = s.Instances * n / d
	s.Iterations = s.Iterations * int64(n) / int64(d)
	s.Rate = s.Rate * Rate(n) / Rate(d)
	s.Stages = slices.Clone(s.Stages)
	for i := range s.Stages {
		s.Stages[i].Target = s.Stages[i].Target * float64(n) / float64(d)
	}
	return s
}

// Slots says whether clients are only slots for arrivals, with a rate or with stages: then no client
// has a share of its own, and figures per client mean nothing.
func (s Spec) Slots() bool { return s.Rate > 0 || len(s.Stages) > 0 }

// Validate returns every error at once, joined, each naming its field as the
// flag is called.
func (s Spec) Validate() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(s.Clients >= 1, "--clients must be at least 1, not %d", s.Clients)
	check(s.Instances >= 1, "--instances must be at least 1, not %d", s.Instances)
	check(s.Keys >= 1, "--keys must be at least 1, not %d", s.Keys)
	check(!s.Hold.negative(), "--hold must not be negative, not %v", s.Hold)
	check(!s.Think.negative(), "--think must not be negative, not %v", s.Think)
	check(s.Rate >= 0 && s.Rate <= maxRate, "--rate must be from 0 to %v, not %v", maxRate, s.Rate)
	check(s.Rate == 0 || s.Think.IsZero(), "--think has no meaning with --rate: arrivals do not wait for each other")
	check(slices.Contains(ArrivalKinds(), s.Arrivals), "--arrivals must be %s, not %q", either(ArrivalKinds()), s.Arrivals)
	for _, stage := range s.Stages {
		check(stage.Open == (s.Rate > 0), "--stage %v is of the other kind of loop: stages are of clients (30s:500) without --rate, of arrivals (30s:2000/s) with it", stage)
		check(stage.Open || stage.Target <= float64(s.Clients), "--stage %v wants more than the %d clients there are", stage, s.Clients)
		check(!stage.Open || Rate(stage.Target) <= maxRate, "--stage %v: the rate must be from 0 to %v", stage, maxRate)
	}
	check(len(s.Stages) == 0 || s.Iterations == 0, "--iterations cannot end a window that --stage divides")
	check(len(s.Stages) == 0 || s.Duration == s.Stages.Length(), "--duration is %v and the stages take %v: leave it out", s.Duration, s.Stages.Length())
	check(s.Burst >= 0, "--burst must not be negative, not %v", s.Burst)
	if s.Burst > 0 {
		check(s.Clients >= 2 && s.Keys == 1, "--burst needs at least 2 clients and one key, there are %d and %d", s.Clients, s.Keys)
		check(s.Rate == 0 && len(s.Stages) == 0, "--burst decides itself who asks when: leave out --rate and --stage")
		check(s.Timeout == nil && !s.Coalesce, "--burst has everybody wait for a turn: leave out --timeout and --coalesce")
		check(2*s.Burst < s.TTL, "--burst %v must be less than half of --ttl %v, for two hold the lock that long in turn", s.Burst, s.TTL)
	}
	check(time.Duration(s.TTL) >= time.Millisecond, "--ttl must be at least 1ms, not %v", s.TTL)
	check(s.Timeout == nil || *s.Timeout >= 0, "--timeout must not be negative")
	check(slices.Contains([]Work{WorkNone, WorkSleep, WorkSpin, WorkCounter}, s.Work), "--work must be none, sleep, spin or counter, not %q", s.Work)
	check(s.Counter == CounterWithLocks || s.Counter == CounterApart, "--counter must be with-locks or apart, not %q", s.Counter)
	check(slices.Contains([]Fence{FenceAll, FenceWrites, FenceOff}, s.Fence), "--fence must be all, writes or off, not %q", s.Fence)
	check(s.Warmup >= 0, "--warmup must not be negative, not %v", s.Warmup)
	check(s.Iterations >= 0, "--iterations must not be negative, not %d", s.Iterations)
	check(s.Duration > 0 || s.Iterations > 0, "--duration must be positive, not %v", s.Duration)
	check(s.Pool >= 0, "--pool must not be negative, not %d", s.Pool)
	return errors.Join(append(problems, s.faultsWrong()...)...)
}

// Expected is how long a run's warm-up and window take. A window that ends after
// a number of iterations counts as nothing.
func (s Spec) Expected() time.Duration {
	if s.Iterations > 0 {
		return time.Duration(s.Warmup)
	}
	return time.Duration(s.Warmup + s.Duration)
}

// Load reads the files that the workload names, and returns every error in them,
// joined.
func (s *Spec) Load() error {
	var problems []error
	if err := s.Hold.Load(); err != nil {
		problems = append(problems, fmt.Errorf("--hold: %w", err))
	}
	if err := s.Think.Load(); err != nil {
		problems = append(problems, fmt.Errorf("--think: %w", err))
	}
	return errors.Join(problems...)
}

// Warnings names what is allowed but rarely meant.
func (s Spec) Warnings() []string {
	var warnings []string
	if s.Hold.Mean() > time.Duration(s.TTL) {
		warnings = append(warnings, fmt.Sprintf(
			"--hold %v is longer than --ttl %v: leases run out while they are held, so locks without a watchdog will overlap", s.Hold, s.TTL))
	}
	for _, f := range s.Faults {
		if lasts := s.Lasts(f); f.Name == HolderPause && lasts <= time.Duration(s.TTL) {
			warnings = append(warnings, fmt.Sprintf("--fault %v is no longer than --ttl %v: the lease outlives the pause", f, s.TTL))
		}
	}
	return warnings
}
