package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/netfault"
	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/internal/untrusted"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

var (
	// ErrServerGone is returned by Job.Run when the servers stopped answering.
	ErrServerGone = errors.New("the servers stopped answering")
	// ErrUnsupported is returned by Job.Run when the strategy lacks an operation that the workload requires, such as a
	// try-lock.
	ErrUnsupported = errors.New("not supported by the strategy")
)

// PhaseGone is passed to Job.Phase once the servers have stopped answering. The run then closes the connections of
// clients that still wait for a reply.
const PhaseGone = "the servers have stopped answering"

// Prefix is the prefix of every key of a run and of every connection's CLIENT name.
const Prefix = "lockbench:"

// Job is one run of one strategy with one workload.
type Job struct {
	Strategy strategies.Variant
	Workload workloads.Spec
	Target   store.Target // may be nil for strategies that need no nodes
	Hub      store.Hub    // has the counters, and its connections show which processes take part; nil means Target

	// Transactor holds the rows of --work transaction; nil for other work.
	Transactor store.Transactor

	Session string // identifies the keys and connections of all runs of a session, see store.NewRunID
	Number  int    // number of the run in the session
	Round   int    // from 1
	Order   int    // from 1, within the round
	Phase   func(name string)
	// Second is called once a second with the last second of the timeline. It may be nil.
	Second func(results.Slice)
	// Watch is called once a second with the run so far and its open waits. It may be nil. With drivers, the calls of
	// Second and Watch are delayed until each client has reported.
	Watch func(results.Run, []results.Wait)

	// Generator names this process if several processes share the session and its keys; "" means a single process.
	Generator string
	// Begin is called when the run is prepared. It waits for the other processes and returns the instant at which the
	// clients start their warm-up. If Begin is nil, they start as soon as possible.
	Begin func(context.Context) (time.Time, error)

	Observer Observer // may be nil
	// VirtualTime means that the run is in a bubble of testing/synctest, where only timers of package time work.
	VirtualTime bool
	Faults      store.Faults // may be nil if the workload has only faults of clients

	// misread, unless nil, replaces the clock's reading at the start of a release. Only a test sets it, to plant a fault.
	misread func(granted, released int64) int64

	asked int // Workload.Instances as requested, before Run adapted it
}

// Run executes the job: prepare, warm up, measure, stop, drain, verify, clean up. When ctx ends, the run ends early and
// returns the figures measured so far.
//
// If Run fails, the returned run is nil or contains the figures measured before the error. The error wraps
// ErrServerGone or ErrUnsupported if that is the reason.
func (j Job) Run(ctx context.Context) (*results.Run, error) {
	j.asked, j.Workload.Instances = j.Workload.Instances, j.Strategy.Instances(j.Workload.Instances)
	if err := j.Workload.Load(); err != nil {
		return nil, err
	}
	for _, f := range j.Workload.Faults {
		if j.Faults == nil && f.Kind().Place != workloads.InClients {
			return nil, fmt.Errorf("this run cannot inject the fault %s", f.Name)
		}
	}
	if len(j.Workload.Faults) > 0 && j.Strategy.Info().Nodes == 0 {
		return nil, fmt.Errorf("%w: the strategy works within the process, but faults act on servers and their clients",
			ErrUnsupported)
	}
	return newRun(j).carryOut(ctx)
}

func (r *run) carryOut(ctx context.Context) (*results.Run, error) {
	// The run closes its connections and cleans up after Ctrl-C too.
	always := context.WithoutCancel(ctx)

	r.phase("prepare")
	before := r.read(always)
	err := r.open(ctx)
	if err == nil {
		err = r.openRows(ctx)
	}
	if err != nil {
		r.close()
		r.cleanUp(always)
		return nil, err
	}
	idle, late, err := r.awaitStart(ctx)
	if err != nil {
		r.close()
		r.cleanUp(always)
		return nil, err
	}
	r.start(always)
	rest := r.live(always)
	r.drive()
	window, failure := r.observe(ctx)
	r.stop()
	r.phase("drain")
	r.drain()
	r.sleepers.Close()
	if failed := r.replay(); failure == nil {
		failure = failed
	}

	if r.arrivals != nil {
		r.recorder.Backlog(r.arrivals.backlog(r.window.End()))
	}

	r.phase("verify")
	r.lost = r.lostUpdates(always)
	r.closeRows()
	left := r.verify(always)
	r.cleanUp(always)
	after := r.read(always)
	rest()

	var whole *results.ServerDelta
	if before != nil && after != nil {
		whole = after.Since(*before, r.grants())
		r.unseenTraffic(whole)
	}
	result := r.summarise(window, whole, idle, left)
	if failure != nil {
		result.Failure = untrusted.Printable(failure.Error())
		result.Invalid = append(result.Invalid, results.EndedEarly.Remark(result.Failure))
	}
	if late > 0 {
		result.Labels = append(result.Labels, results.BegunLate.Remark(late))
	}
	return result, failure
}

// run is the state of a Job under way.
type run struct {
	Job
	info strategies.Info
	name string // CLIENT name of its connections
	sign string // part of every key and channel
	keys []string
	made store.KeyNames // of keys

	instances  []*instance
	rows       store.Rows     // nil without --work transaction
	sockets    netfault.Conns // closed when the servers are dead, so that every client that waits for a reply returns
	clock      measure.Clock
	window     *measure.Window
	recorder   *measure.Recorder
	audit      []*measure.Key  // by key
	leases     *measure.Leases // nil unless other processes take part
	arrivals   *arrivals       // nil for a closed loop
	chooser    workloads.Chooser
	timeline   timeline
	herd       *herd // nil without a herd
	faults     *faults
	driven     *driven // nil unless drivers run the clients
	clients    []*client
	sleepers   pause.Sleepers
	cycle      func(*client, int64) (int64, bool) // (*client).cycle; a test can replace it to plant faults
	control    control
	errors     errorCounts
	failures   atomic.Int64   // number of client errors that no fault explains
	readings   atomic.Int64   // number of readings of the servers' counters
	done       []atomic.Int64 // confirmed updates of the counter or row, by key
	refused    atomic.Int64   // updates that the counter or row refused as stale
	uncertain  atomic.Int64   // updates that may or may not have been made
	overtime   overtime
	unended    int // number of keys left by waits that a driver could not end
	hung       []int
	stood      *int64          // ns, the longest time for which this process was stopped; nil if not observed
	lost       *int64          // lost updates
	rowsCPU    float64         // CPU seconds in the window of the server with the rows
	counts     []int64         // values of the keys' counters after the last generator has finished
	unseen     bool            // the leftovers on the servers could not be read
	closing    bool            // all other processes have left the run
	dead       atomic.Bool     // the servers have stopped answering
	life       context.Context // ends, with the reason, when the servers are dead or no client makes progress
	end        context.CancelCauseFunc
	unanswered atomic.Bool // the last Ping failed
}

func newRun(j Job) *run {
	r := &run{
		Job:   j,
		info:  j.Strategy.Info(),
		cycle: (*client).cycle,

		sleepers: pause.Sleepers{Exact: true, Plain: j.VirtualTime},
		name:     fmt.Sprintf("%s%s:run%d", Prefix, j.Session, j.Number),
		sign:     fmt.Sprintf("{%s:%d:", j.Session, j.Number),
		made:     store.NamesOf(j.Strategy.Info()),
	}
	if j.Generator != "" {
		r.name = r.sharedClientPrefix() + j.Generator
	}
	if r.info.Driver {
		r.driven = &driven{}
	}
	r.done = make([]atomic.Int64, j.Workload.Keys)
	for i := range j.Workload.Keys {
		r.keys = append(r.keys, fmt.Sprintf("%s%d}", r.sign, i))
	}
	return r
}

func (r *run) phase(name string) {
	if r.Phase != nil {
		r.Phase(name)
	}
}

// remote reports whether the run uses a store.
func (r *run) remote() bool { return NeedsStore(r.info, r.Workload) }

// NeedsStore reports whether a strategy uses a store under a workload.
func NeedsStore(info strategies.Info, w workloads.Spec) bool {
	return info.Nodes > 0 || w.Work == workloads.WorkCounter
}

// patience limits each request to the servers that is not part of the measured work.
const patience = 5 * time.Second

// read returns a reading of the locks' servers; nil if the reading fails or the run uses no server.
func (r *run) read(ctx context.Context) *results.Reading {
	if !r.remote() || r.dead.Load() {
		return nil
	}
	r.readings.Add(1)
	return r.readFrom(ctx, r.Target)
}

// readHub returns a reading of the Hub; nil if the reading fails or the run has no separate Hub.
func (r *run) readHub(ctx context.Context) *results.Reading {
	if r.Hub == nil {
		return nil
	}
	return r.readFrom(ctx, r.Hub)
}

func (r *run) readFrom(ctx context.Context, servers store.Target) *results.Reading {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reading, err := servers.Read(within)
	if err != nil {
		if ctx.Err() == nil { // an interrupt is not an error of the server
			r.errors.add(fmt.Errorf("read the server's counters: %w", err))
		}
		return nil
	}
	return &reading
}

// grants returns the number of leases granted so far. While drivers run, it returns the number of reported cycles
// instead.
func (r *run) grants() int64 {
	if cycles, running := r.driven.soFar(); running {
		return cycles
	}
	return r.recorded()
}

// recorded returns the number of leases recorded so far.
func (r *run) recorded() int64 {
	var sum int64
	for _, k := range r.audit {
		sum += k.Grants()
	}
	return sum
}

// probes returns the sum of the instances' probe counts so far.
func (r *run) probes() strategies.ProbeCounts {
	var sum strategies.ProbeCounts
	for _, i := range r.instances {
		c := i.probe.Counts()
		sum.Attempts += c.Attempts
		sum.Useful += c.Useful
		sum.Futile += c.Futile
	}
	return sum
}

func (r *run) ownsKey(key string) bool {
	session, number, made := r.made.Run(key)
	return made && session == r.Session && number == r.Number
}

// declared reports whether a key may remain on a server: it belongs to the workload, or the strategy declares that it
// leaves such a key.
func (r *run) declared(key string) bool {
	return slices.ContainsFunc(r.keys, func(k string) bool {
		counter := r.Workload.Work == workloads.WorkCounter &&
			(key == counterOf(k) || strings.HasPrefix(key, counterOf(k)+":"))
		return counter || matches(r.info.Persistent, k, key)
	})
}

// matches reports whether a key on a server belongs to a lock. This is the case if the key equals one of the patterns,
// with the lock's full name in place of {key}.
func matches(patterns []string, lock, key string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		return key == strings.ReplaceAll(pattern, "{key}", Prefix+lock)
	})
}
