// Package workloads describes the work of a run's clients as plain data. Flags and files set the data, the engine
// executes it, and the report repeats it.
package workloads

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/words"
)

// Spec is a workload: clients that repeatedly acquire, hold, release and think (closed loop), or acquire whenever an
// arrival is due (open loop).
type Spec struct {
	// Clients is the number of clients; in an open loop, the largest number of acquisitions in flight.
	Clients int `json:"clients" kind:"n" short:"c" sep:"," min:"1"`

	Duration Duration `json:"duration" kind:"duration" short:"d"` // length of the window, unless Iterations ends it
	// Iterations ends the window after this number of acquisitions; 0 means no such limit.
	Iterations int64    `json:"iterations" kind:"n" short:"n" min:"0"`
	Warmup     Duration `json:"warmup" kind:"duration" short:"w" min:"0s"`
	// Seed is the seed of all random choices. If it is 0, a session draws a seed and records it in the report, but a
	// single Job uses the seed 0.
	Seed int64 `json:"seed" kind:"n"`

	Instances int     `json:"instances" kind:"n" sep:"," min:"1"` // client i uses instance i mod Instances
	Keys      int     `json:"keys" kind:"n" sep:"," min:"1"`      // locks the clients choose among
	KeyDist   KeyDist `json:"key_dist" kind:"choice" sep:","`
	Hold      Dist    `json:"hold" kind:"dist" sep:","`  // the requested hold; the report has the measured one
	Think     Dist    `json:"think" kind:"dist" sep:","` // in a closed loop, between a release and the next acquire

	// Rate is the total number of arrivals per second of an open loop, in which arrivals do not wait for earlier
	// acquisitions. 0 means a closed loop.
	Rate     Rate     `json:"rate" kind:"n/s" short:"r" sep:","`
	Arrivals Arrivals `json:"arrivals" kind:"kind"` // in an open loop; Rate scales the gaps of a trace
	// Stages change the load during the window: the number of active clients in a closed loop, or the rate in an open
	// loop.
	Stages Stages `json:"stages,omitempty" kind:"time:load" sep:","`
	// Burst, if not 0, makes the clients wait in bursts: one client holds the lock for this time while all others wait,
	// and after its release they obtain the lock one after another.
	Burst Duration `json:"burst,omitempty" kind:"duration" sep:"," min:"0s"`

	TTL Duration `json:"ttl" kind:"duration" sep:"," min:"1ms"`
	// Timeout is the time after which a client stops waiting. nil means no limit, and 0 means a try-lock.
	Timeout *Duration `json:"timeout" kind:"duration" sep:"," min:"0s"`

	// Work selects what the holder does during the hold.
	Work Work `json:"work" kind:"kind" words:"none spin counter transaction"`
	// Fence selects how the counter checks fencing tokens.
	Fence Fence `json:"fence" kind:"kind" words:"all writes off"`
	// Counter selects the server that keeps the counter.
	Counter CounterPlace `json:"counter,omitempty" kind:"place" words:"with-locks apart"`
	// Release selects whether a holder with WorkTransaction releases the lock before or after the commit.
	Release Release `json:"release,omitempty" kind:"when" sep:"," words:"after-commit before-commit"`
	// Row selects how the transaction itself protects the row, which works even without a lock.
	Row RowGuard `json:"row,omitempty" kind:"how" sep:"," words:"plain where for-update version"`
	// Coalesce makes clients of an instance that want the same key at the same time share one
	// acquisition and its work (singleflight).
	Coalesce bool `json:"coalesce" kind:"bool"`

	// Faults are the faults that are injected during the run.
	Faults []Fault `json:"faults,omitempty" kind:"name:options" sep:";"`

	Pool int `json:"pool" kind:"n" sep:"," min:"0"` // connections per instance; 0 is min(clients of the instance, 64)
}

// helps maps each option to its help text.
var helps = map[string]string{
	"clients":    "number of clients",
	"duration":   "length of the measurement window of each run",
	"iterations": "end a run after this number of acquisitions instead",
	"warmup":     "warm-up before the window",
	"seed":       "seed of all random choices, also of the order of the runs (default drawn and recorded)",
	"instances": "application instances that share the clients, each with its own connections " +
		"(default 10, or fewer for fewer clients)",
	"keys":     "number of locks that the clients choose from",
	"key-dist": "how they choose: uniform, zipf:0.99, or hotspot:0.8/2 for 80 % of choices among the first two",
	"hold": "hold time: 5ms, uniform:1ms,5ms, exp:5ms (mean), lognormal:5ms,0.8 (median, sigma) or file:PATH, " +
		"with one duration per line",
	"think": "pause between a release and the next acquire, in the same forms",
	"rate": "open loop: total arrivals per second, independent of completions; --clients limits those in flight " +
		"(default closed loop)",
	"arrivals": "arrivals of an open loop: constant, poisson or file:PATH, a trace with lines \"seconds,key,hold\" " +
		"(--rate plays it faster or slower)",
	"stage": "change to this number of clients (30s:500) or arrivals (30s:2000/s) in this time; repeatable; " +
		"together the stages are the window",
	"burst":   "one client holds the lock for this time while all others wait, then releases it; repeated",
	"ttl":     "lease time: how long a lock stays held after its holder dies",
	"timeout": "longest wait for a lock; 0 is a try-lock (default unlimited)",
	"work": "what a holder does: none (it sleeps), spin (it computes), counter: " +
		"it reads a counter, holds, and writes the counter plus one, or transaction: " +
		"it reads a row of PostgreSQL, holds, writes its number less one, and commits",
	"fence": "how the counter checks fencing tokens, if the lock has them: all (reads and writes), writes or off",
	"counter": "location of the counter: with-locks, in the Redis of the locks (for locks in another store, the Redis " +
		"of --redis, or one that lockbench starts), or apart, in a separate Redis without faults",
	"release": "when the holder of --work transaction releases the lock: after-commit, or before-commit, " +
		"which loses updates",
	"row": "how the transaction protects its row: plain (it reads the number and writes it less one), " +
		"where (UPDATE … SET n = n - 1 WHERE n > 0), for-update (SELECT … FOR UPDATE), or version (a version " +
		"column; a changed row is read again); without a lock: --strategy noop",
	"coalesce": "clients of an instance that want the same key share one acquisition (singleflight)",
	"fault":    "fault to inject, such as holder-pause:at=2s; see lockbench list faults; repeatable",
	"pool":     "connections per instance (default one per client, at most 64)",
}

// Default returns the default workload, a hot lock: all clients compete for one key.
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

// maxRate is the largest valid rate, in arrivals per second. It is far beyond the capacity of any lock or generator.
const maxRate Rate = 1e6

// Work selects what a holder does during the hold.
type Work string

const (
	// WorkNone means no work: the holder sleeps.
	WorkNone Work = "none"
	// WorkSpin computes for the length of the hold, on a core of the generator's machine. It is exact even for holds
	// below a millisecond.
	WorkSpin Work = "spin"
	// WorkCounter reads a counter, holds, and writes the counter plus one. If two holders do this at the same time, an
	// update is lost, and the counter shows it.
	WorkCounter Work = "counter"
	// WorkTransaction reads a row of PostgreSQL in a transaction, holds, writes its number less one, and commits. If the
	// commit follows the release, the next holder may read the row before the commit, and an update is then lost.
	WorkTransaction Work = "transaction"
)

// Release selects when a holder with WorkTransaction releases the lock.
type Release string

const (
	// ReleaseAfterCommit releases the lock after the commit, so the next holder reads the committed row.
	ReleaseAfterCommit Release = ""
	// ReleaseBeforeCommit releases the lock after the write and before the commit, so the next holder may read the old
	// row.
	ReleaseBeforeCommit Release = "before-commit"
)

// String returns the value of --release. That of the empty Release is after-commit.
func (r Release) String() string { return cmp.Or(string(r), "after-commit") }

// UnmarshalText parses a value of --release. Validate rejects unknown values.
func (r *Release) UnmarshalText(text []byte) error {
	*r = Release(text)
	if string(text) == ReleaseAfterCommit.String() {
		*r = ReleaseAfterCommit
	}
	return nil
}

// RowGuard selects how a transaction protects the row that it changes.
type RowGuard string

const (
	// RowPlain reads the number and writes it less one. Only a lock protects the row.
	RowPlain RowGuard = ""
	// RowWhere subtracts one with a conditional UPDATE and does not read the row first.
	RowWhere RowGuard = "where"
	// RowForUpdate reads with SELECT … FOR UPDATE, which locks the row until the commit.
	RowForUpdate RowGuard = "for-update"
	// RowVersion writes only if the row still has the version that was read. Otherwise the transaction starts again.
	RowVersion RowGuard = "version"
)

// String returns the value of --row. That of the empty RowGuard is plain.
func (r RowGuard) String() string { return cmp.Or(string(r), "plain") }

// UnmarshalText parses a value of --row. Validate rejects unknown values.
func (r *RowGuard) UnmarshalText(text []byte) error {
	*r = RowGuard(text)
	if string(text) == RowPlain.String() {
		*r = RowPlain
	}
	return nil
}

// Fence selects how the counter checks the fencing tokens of a strategy that has them.
type Fence string

const (
	// FenceAll rejects reads and writes whose token is smaller than the largest that the counter has seen.
	FenceAll Fence = "all"
	// FenceWrites checks only writes, and records tokens only from writes.
	FenceWrites Fence = "writes"
	// FenceOff disables the checks, so the counter accepts stale tokens.
	FenceOff Fence = "off"
)

// CounterPlace is the server that keeps the counter of WorkCounter.
type CounterPlace string

const (
	// CounterWithLocks keeps the counter in the same Redis as the locks, so a fault of this Redis affects both. If the
	// locks are in another store, the counter is in the user's Redis, or in one that lockbench starts.
	CounterWithLocks CounterPlace = ""
	// CounterApart keeps the counter in a separate Redis without faults, so it shows lost updates even if the locks'
	// Redis has lost its data.
	CounterApart CounterPlace = "apart"
)

// String returns the value of --counter. That of the empty CounterPlace is with-locks.
func (c CounterPlace) String() string { return cmp.Or(string(c), "with-locks") }

// UnmarshalText parses a value of --counter. Validate rejects unknown values.
func (c *CounterPlace) UnmarshalText(text []byte) error {
	*c = CounterPlace(text)
	if string(text) == CounterWithLocks.String() {
		*c = CounterWithLocks
	}
	return nil
}

// MaxPool limits the number of command connections of an instance unless Pool is set. More connections gain nothing,
// because Redis executes commands on a single thread.
const MaxPool = 64

// ClientsPerInstance returns the number of clients of the instance with the most clients.
func (s Spec) ClientsPerInstance() int {
	return (s.Clients + s.Instances - 1) / s.Instances
}

// PoolSize returns the number of connections for the commands of an instance.
func (s Spec) PoolSize() int {
	if s.Pool > 0 {
		return s.Pool
	}
	return min(s.ClientsPerInstance(), MaxPool)
}

// Times returns the workload with its clients, instances, iterations and rates multiplied by n/d. With d = 1 it is the
// workload of n equal generators together, and with n = 1 the share of one of d generators.
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

// Slots reports whether figures per client have no meaning: with a rate, clients are only slots for arrivals, and with
// stages, not all clients are always active.
func (s Spec) Slots() bool { return s.Rate > 0 || len(s.Stages) > 0 }

// Validate returns all errors in the workload, joined. Each error names the flag of its field.
func (s Spec) Validate() error {
	var found problems
	for _, field := range ofSpec() {
		if err := field.check(reflect.ValueOf(s)); err != nil {
			found = append(found, fmt.Errorf("--%w", err))
		}
	}
	check := found.unless
	check(!s.Hold.negative(), "--hold must be at least 0, not %v", s.Hold)
	check(!s.Think.negative(), "--think must be at least 0, not %v", s.Think)
	check(s.Rate >= 0 && s.Rate <= maxRate, "--rate must be from 0 to %v, not %v", maxRate, s.Rate)
	check(s.Rate == 0 || s.Think.IsZero(), "--think has no meaning with --rate: arrivals do not wait for each other")
	check(s.Duration > 0 || s.Iterations > 0, "--duration must be positive, not %v", s.Duration)
	if len(s.Stages) > 0 {
		s.checkStages(check)
	}
	if s.Arrivals.kind == "file" {
		check(s.Rate > 0 || s.Arrivals.trace == nil, "--rate of --arrivals %v must be above 0", s.Arrivals)
		check(len(s.Stages) == 0, "--stage is not supported with --arrivals %v: the trace has its own load", s.Arrivals)
		if t := s.Arrivals.trace; t != nil {
			check(s.Keys >= t.Keys, "--keys must be at least %d for --arrivals %v, not %d", t.Keys, s.Arrivals, s.Keys)
		}
	}
	if s.Burst > 0 {
		check(s.Clients >= 2 && s.Keys == 1, "--burst needs at least 2 clients and one key, there are %d and %d",
			s.Clients, s.Keys)
		check(s.Rate == 0 && len(s.Stages) == 0, "--burst is not supported with --rate and --stage")
		check(s.Timeout == nil && !s.Coalesce, "--burst is not supported with --timeout and --coalesce")
		check(2*s.Burst < s.TTL,
			"--burst %v must be less than half of --ttl %v: two clients in turn hold the lock for this time",
			s.Burst, s.TTL)
	}
	check(s.Work == WorkTransaction || s.Release == ReleaseAfterCommit, needsTransaction, "release", s.Work)
	check(s.Work == WorkTransaction || s.Row == RowPlain, needsTransaction, "row", s.Work)
	s.checkFaults(check)
	return errors.Join(found...)
}

// needsTransaction is the format of the error for an option that only WorkTransaction supports.
const needsTransaction = "--%s needs --work transaction, not --work %s"

// problems collects the errors that Validate finds.
type problems []error

// unless adds an error with this format and arguments if ok is false.
func (p *problems) unless(ok bool, format string, args ...any) {
	if !ok {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

func (s Spec) checkStages(check func(ok bool, format string, args ...any)) {
	for _, stage := range s.Stages {
		check(stage.Open == (s.Rate > 0),
			"--stage %v does not fit the loop: a stage sets clients (30s:500) without --rate, "+
				"and arrivals (30s:2000/s) with it", stage)
		check(stage.Open || stage.Target <= float64(s.Clients), "--stage %v needs more than the %d clients of --clients",
			stage, s.Clients)
		check(!stage.Open || Rate(stage.Target) <= maxRate, "--stage %v: the rate must be from 0 to %v", stage, maxRate)
	}
	check(s.Iterations == 0, "--iterations is not supported with --stage")
	check(s.Duration == s.Stages.Length(), "--duration is %v but the stages take %v: leave out --duration",
		s.Duration, s.Stages.Length())
}

// Expected returns the total duration of a run's warm-up and window. With Iterations, the length of the window is not
// known and counts as 0.
func (s Spec) Expected() time.Duration {
	if s.Iterations > 0 {
		return time.Duration(s.Warmup)
	}
	return time.Duration(s.Warmup + s.Duration)
}

// Load reads the files that the workload names and returns all errors in them, joined.
func (s *Spec) Load() error {
	var problems []error
	if err := s.Hold.Load(); err != nil {
		problems = append(problems, fmt.Errorf("--hold: %w", err))
	}
	if err := s.Think.Load(); err != nil {
		problems = append(problems, fmt.Errorf("--think: %w", err))
	}
	if err := s.Arrivals.Load(); err != nil {
		problems = append(problems, fmt.Errorf("--arrivals: %w", err))
	}
	return errors.Join(problems...)
}

// Warnings returns a text for each setting that is allowed but rarely intended.
func (s Spec) Warnings() []string {
	var warnings []string
	warn := func(is bool, format string, args ...any) {
		if is {
			warnings = append(warnings, fmt.Sprintf(format, args...))
		}
	}
	warn(s.Hold.Mean() > time.Duration(s.TTL),
		"--hold %v is longer than --ttl %v: leases expire while held, so locks without a watchdog will overlap",
		s.Hold, s.TTL)
	if t := s.Arrivals.Trace(); t != nil {
		longest := slices.MaxFunc(t.Arrivals, func(a, b Arrival) int { return cmp.Compare(a.Hold, b.Hold) }).Hold
		warn(longest >= time.Duration(s.TTL),
			"--arrivals %v has a hold of %v, and --ttl is %v: leases expire while held", s.Arrivals, longest, s.TTL)
	}
	warn(s.Work == WorkSpin && s.Hold.IsZero(), "--work spin has no effect without --hold")
	for _, f := range s.Faults {
		warn(f.Name == HolderPause && s.Lasts(f) <= time.Duration(s.TTL),
			"--fault %v is no longer than --ttl %v: the lease outlives the pause", f, s.TTL)
	}
	return warnings
}

// Describe returns the workload as one line. It includes every option that differs from its default, except the faults
// and the seed.
func (s Spec) Describe() string {
	keys := words.Count(s.Keys, "key")
	if chosen := s.KeyDist.String(); s.Keys > 1 && chosen != "uniform" {
		keys += " (" + chosen + ")"
	}
	parts := []string{fmt.Sprintf("%s in %s on %s", words.Count(s.Clients, "client"),
		words.Count(s.Instances, "instance"), keys)}
	say := func(there bool, format string, args ...any) {
		if there {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	say(s.Pool > 0, "%s an instance", words.Count(s.Pool, "connection"))
	say(s.Rate > 0, "%s arrivals at %v", s.Arrivals, s.Rate)
	say(s.Burst > 0, "all wait for one holder for %v", s.Burst)
	for _, stage := range s.Stages {
		say(true, "stage %v", stage)
	}
	say(true, "hold %v", s.Hold)
	say(!s.Think.IsZero(), "think %v", s.Think)
	say(s.Work != WorkNone && s.Work != "", "work %s", s.Work)
	say(s.Work == WorkCounter && s.Counter == CounterApart, "counter apart")
	say(s.Work == WorkCounter && s.Fence != FenceAll, "fence %s", s.Fence)
	say(s.Work == WorkTransaction, "release %s", s.Release)
	say(s.Work == WorkTransaction && s.Row != RowPlain, "row %s", s.Row)
	say(s.Coalesce, "coalesced")
	say(true, "TTL %v", s.TTL)
	if s.Timeout != nil {
		say(true, "timeout %v", *s.Timeout)
	}
	if s.Iterations > 0 {
		say(true, "%d acquisitions after %v of warm-up", s.Iterations, s.Warmup)
	} else {
		say(true, "%v after %v of warm-up", s.Duration, s.Warmup)
	}
	return strings.Join(parts, " · ")
}
