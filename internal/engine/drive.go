package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Driver is the Locker of an instance whose clients run in a process of another program.
type Driver interface {
	strategies.Locker
	// Drive has the program run the clients, and reports their cycles, those of one client in their order. It
	// returns once the program has said that all clients have stopped, or with the reason why it cannot go on.
	Drive(ctx context.Context, a Assignment, report func([]Cycle) error) error
	// CPU returns the CPU time of the process so far in seconds; nil if not known.
	CPU() *float64
}

// Assignment is what the clients of one instance do in a run. Its instants are those of Clock.
type Assignment struct {
	Clock       measure.Clock
	Start, Stop int64
	Stopped     <-chan struct{} // closed if they are to stop earlier
	Clients     []AssignedClient
	Keys        []string
	// Steps is what a client does in its cycles, one after the other; after the last comes the first.
	Steps   []Step
	Timeout *time.Duration // as workloads.Spec's
	// Count has each holder read the key's counter, hold, and write it back one higher: KEY:counter, in decimal.
	Count bool
}

// AssignedClient is a client and the Step of its first cycle.
type AssignedClient struct{ ID, First int }

// Step is one cycle as it is asked for.
type Step struct {
	Key         int
	Hold, Think time.Duration
}

// Cycle is what a client did between two thinks, as a driver reports it.
type Cycle struct {
	Client                         int
	Step                           int // in Assignment.Steps
	Asked, Granted, Released, Done int64
	Error                          CycleError // why there is no lease, or what Release returned
	Token                          *int64     // the lease's fencing token; nil without one
	// Until is the instant until which the lease was valid by the library's word just before its release; nil if the
	// library does not say it. Then the lease is known to be valid from Granted until a TTL after Asked.
	Until *int64
}

// CycleError is what went wrong in a Cycle, "" if nothing did. Other texts than these are errors of the lock.
type CycleError string

// How a wait can end without a lease, and what can be wrong with a lease.
const (
	CycleTimedOut CycleError = "timeout"  // or a try-lock that found the lock held
	CycleStopped  CycleError = "stopped"  // the end of the run
	CycleNotHeld  CycleError = "not held" // the release of a lease that had been lost
)

const (
	// driverLead is the time between the question and the start of the clients.
	driverLead = 100 * time.Millisecond
	// driverTail is how much longer than the window the clients run, so that waits are seen to be under way at its
	// end.
	driverTail = 50 * time.Millisecond
	// mostCycles limits the memory: a run keeps all cycles until its end, some 200 bytes each.
	mostCycles = 2 << 20
	// mostSteps are drawn of distributions for the clients of an instance.
	mostSteps = 4096
	// silence is how long a client of a driver may do what is not reported.
	silence = time.Second
	// ownTimeLimit is the share of the clients' time, in percent, that a driver may take without a label.
	ownTimeLimit = 5.0
)

// Undriven returns an error for each option of a workload that the clients of a driver cannot carry out.
func Undriven(info strategies.Info, w workloads.Spec) (problems []error) {
	counts := info.Counts && w.Work == workloads.WorkCounter
	for _, option := range []struct {
		flag  string
		given bool
	}{
		{"--rate", w.Rate > 0},
		{"--stage", len(w.Stages) > 0},
		{"--burst", w.Burst > 0},
		{"--iterations", w.Iterations > 0},
		{"--work", w.Work != workloads.WorkNone && !counts},
		{"--counter apart", counts && w.Counter == workloads.CounterApart},
		{"--fence " + string(w.Fence), counts && info.Claims.Fencing && w.Fence != workloads.FenceOff},
		{"--coalesce", w.Coalesce},
		{"--fault", len(w.Faults) > 0},
	} {
		if option.given {
			problems = append(problems, fmt.Errorf("%s is not supported with a driver (--strategy exec:)", option.flag))
		}
	}
	return problems
}

// driven is what drivers reported in a run, and the clients in this process that contend with theirs. Its records are
// made when the drivers have ended: what happened on a key can only be put in order when all have said what they did.
type driven struct {
	start int64 // when the clients start

	mu     sync.Mutex
	cycles []reported
	failed []error
	ended  bool // nothing more is reported

	notes []note
	ends  []int64 // until when it is known what each client did
	slack []int64 // ns, how much of its last think is not over
	// unended counts the waits of drivers' clients that were under way at the end, and may still be.
	unended int
	own     float64 // ns in the window in which clients neither waited, held, released, nor thought as long as asked
}

// reported is a Cycle with its place in the workload.
type reported struct {
	Cycle
	Step
}

// note is something to do with what had happened at an instant.
type note struct {
	at int64
	do func(now int64)
}

// note calls do with the present instant: at once, or if drivers run the clients, when it is known what they have done
// until then.
func (r *run) note(do func(now int64)) {
	if r.driven == nil {
		do(r.clock.Now())
		return
	}
	r.driven.notes = append(r.driven.notes, note{r.clock.Now(), do})
}

// drive lets the drivers run the clients of all instances.
func (r *run) drive() {
	if r.driven == nil {
		return
	}
	for number, i := range r.instances {
		a := r.assign(number)
		report := func(cycles []Cycle) error { return r.driven.report(a.Steps, cycles) }
		r.control.running.Go(func() {
			var err error
			if driver, ok := i.locker.(Driver); ok {
				err = driver.Drive(r.control.release, a, report)
			} else { // part of a mixed strategy
				err = DriveLocally(r.control.release, i.locker, a, r.localWork(i), report)
			}
			for _, client := range a.Clients {
				r.clients[client.ID].returned.Store(true)
			}
			if err != nil {
				r.end(r.driven.fail(fmt.Errorf("instance %d of %s: %w", number+1, i.strategy.Name(), err)))
			}
		})
	}
}

// assign returns what an instance's clients do.
func (r *run) assign(instance int) Assignment {
	w := r.Workload
	a := Assignment{
		Clock: r.clock, Start: r.driven.start, Stop: r.window.End() + int64(driverTail),
		Stopped: r.control.acquire.Done(), Keys: r.keys, Timeout: (*time.Duration)(w.Timeout),
		Count: w.Work == workloads.WorkCounter,
	}
	random := rand.New(rand.NewPCG(uint64(w.Seed), uint64(r.Round)<<32|uint64(instance)))
	for range mostSteps {
		a.Steps = append(a.Steps, Step{r.chooser.Choose(random), w.Hold.Draw(random), w.Think.Draw(random)})
	}
	if first := a.Steps[0]; !slices.ContainsFunc(a.Steps, func(s Step) bool { return s != first }) {
		a.Steps = a.Steps[:1]
	}
	for id := instance; id < w.Clients; id += w.Instances {
		a.Clients = append(a.Clients, AssignedClient{id, id * len(a.Steps) / w.Clients})
	}
	return a
}

// report keeps cycles.
func (d *driven) report(steps []Step, cycles []Cycle) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return errors.New("the run is over")
	}
	if len(d.cycles)+len(cycles) > mostCycles {
		return fmt.Errorf("it made more than %d cycles: a longer --hold or a shorter --duration makes fewer",
			mostCycles)
	}
	for _, c := range cycles {
		d.cycles = append(d.cycles, reported{c, steps[c.Step]})
	}
	return nil
}

// soFar returns how many cycles were reported; false without drivers, and when they have ended.
func (d *driven) soFar() (cycles int64, running bool) {
	if d == nil {
		return 0, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(len(d.cycles)), !d.ended
}

// fail notes why a driver did not go on.
func (d *driven) fail(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failed = append(d.failed, err)
	return err
}

// What happens at one instant happens in this order: a lease that ends when another begins does not overlap it. A
// lease of no length is over before another begins.
const (
	releases = iota
	givesUp
	asks
	grantedAndReleases
	granted
	noted
)

// event is something that a client did, or a note.
type event struct {
	at   int64
	kind int
	of   int // index of the cycle or note
}

// events returns what happened in the order in which it did.
func (d *driven) events() []event {
	all := make([]event, 0, 3*len(d.cycles)+len(d.notes))
	for i, c := range d.cycles {
		all = append(all, event{c.Asked, asks, i})
		switch {
		case c.Granted == 0:
			all = append(all, event{c.Done, givesUp, i})
		case c.Granted == c.Released:
			all = append(all, event{c.Granted, grantedAndReleases, i})
		default:
			all = append(all, event{c.Granted, granted, i}, event{c.Released, releases, i})
		}
	}
	for i, n := range d.notes {
		all = append(all, event{n.at, noted, i})
	}
	slices.SortFunc(all, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.of, b.of))
	})
	return all
}

// replay records what the drivers reported, as if their clients were doing it now. It returns the drivers' errors.
func (r *run) replay() error {
	d := r.driven
	if d == nil {
		return nil
	}
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.ends, d.slack = make([]int64, len(r.clients)), make([]int64, len(r.clients))
	for id := range d.ends {
		d.ends[id] = d.start
	}
	grants := make([]measure.Grant, len(r.clients))
	for _, e := range d.events() {
		if e.kind == noted {
			n := d.notes[e.of]
			n.do(n.at)
			continue
		}
		c := d.cycles[e.of]
		client, key := r.clients[c.Client], r.audit[c.Key]
		switch e.kind {
		case asks:
			d.own += float64(max(0, c.Asked-max(d.ends[c.Client], r.window.Open)-d.slack[c.Client]))
			client.record.Thought(d.ends[c.Client], c.Asked)
			key.Arrive(client.waiter, c.Asked, c.Asked)
		case givesUp:
			r.gaveUp(client, key, c)
		case granted, grantedAndReleases:
			grants[c.Client] = key.Enter(client.waiter, c.Granted, c.lease(r.clock))
		}
		if e.kind == releases || e.kind == grantedAndReleases {
			r.released(client, key, c, grants[c.Client])
		}
		if e.kind != granted && e.kind != asks {
			d.ends[c.Client], d.slack[c.Client] = c.Done, int64(c.Think)
		}
	}
	for id, end := range d.ends {
		r.clients[id].record.Thought(end, max(end, r.window.End()))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return errors.Join(d.failed...)
}

// gaveUp records a wait that ended without a lease.
func (r *run) gaveUp(client *client, key *measure.Key, c reported) {
	outcome := measure.Failed
	switch {
	case c.Error == CycleStopped && c.Done >= r.window.End():
		outcome = measure.Stopped
		if client.instance.strategy.Info().Driver {
			r.driven.unended++
		}
	case c.Error == CycleTimedOut && (r.Workload.Timeout != nil || !client.instance.strategy.Info().Driver):
		outcome = measure.TimedOut
	default:
		r.fail(errors.New(string(c.Error)))
	}
	r.waited(c.Asked, c.Done)
	client.record.Waited(outcome, c.Asked, c.Asked, c.Done, key.Leave(client.waiter, c.Done))
}

// released records a lease.
func (r *run) released(client *client, key *measure.Key, c reported, grant measure.Grant) {
	r.waited(c.Asked, c.Granted)
	key.Exit(client.waiter, c.Released)
	client.record.Acquired(Acquisition{
		Client: c.Client, Key: c.Key,
		Due: c.Asked, Asked: c.Asked, Granted: c.Granted, Released: c.Released, Done: c.Done,
		Grant: grant, Hold: int64(c.Hold), Counted: r.window.Contains(c.Granted),
	})
	driver := client.instance.strategy.Info().Driver
	if driver { // other clients have counted by themselves
		r.done[c.Key].Add(1)
	}
	switch c.Error {
	case "":
	case CycleNotHeld:
		key.Lost()
	default:
		if driver {
			r.uncertain.Add(1)
		}
		r.fail(errors.New(string(c.Error)))
	}
}

// localWork returns what the holders of DriveLocally do; nil if they only hold.
func (r *run) localWork(i *instance) LocalWork {
	if r.Workload.Work != workloads.WorkCounter {
		return nil
	}
	return func(key int, lease strategies.Lease, hold func()) error { return r.count(i, key, lease, hold) }
}

// lease returns the lease for the audit.
func (c Cycle) lease(clock measure.Clock) (held strategies.Lease) {
	held = heldElsewhere{}
	if c.Token != nil {
		held = fencedElsewhere{held, *c.Token}
	}
	if c.Until != nil {
		held = timedElsewhere{held, clock.Time(*c.Until)}
	}
	return held
}

// heldElsewhere is a lease that the client of a driver held.
type heldElsewhere struct{}

func (heldElsewhere) Release(context.Context) error { return errors.ErrUnsupported }

type fencedElsewhere struct {
	strategies.Lease
	token int64
}

func (f fencedElsewhere) FencingToken() int64      { return f.token }
func (f fencedElsewhere) Unwrap() strategies.Lease { return f.Lease }

type timedElsewhere struct {
	strategies.Lease
	until time.Time
}

func (t timedElsewhere) ValidUntil() time.Time    { return t.until }
func (t timedElsewhere) Unwrap() strategies.Lease { return t.Lease }

// silent counts the clients of which the driver did not say what they were doing when the window closed.
func (d *driven) silent(r *run) (clients int) {
	if d == nil {
		return 0
	}
	for id, end := range d.ends {
		if r.window.End()-end > d.slack[id]+int64(silence) {
			clients++
		}
	}
	return clients
}

// ownTime returns a label if a driver took much of its clients' time for itself, else "".
func (d *driven) ownTime(result *results.Run) string {
	if d == nil || result.WindowNS == 0 {
		return ""
	}
	share := d.own / float64(result.WindowNS) / float64(len(d.ends)) * 100
	if share <= ownTimeLimit {
		return ""
	}
	return fmt.Sprintf("the driver itself took %.0f%% of its clients' time", share)
}

// driverCPU returns the CPU time of the drivers' processes so far in seconds; nil if it is not known of all.
func (r *run) driverCPU() *float64 {
	if r.driven == nil {
		return nil
	}
	sum := 0.0
	for _, i := range r.instances {
		driver, ok := i.locker.(Driver)
		if !ok {
			if i.strategy.Info().Driver { // it is closed
				return nil
			}
			continue
		}
		used := driver.CPU()
		if used == nil {
			return nil
		}
		sum += *used
	}
	return &sum
}

// unseenTraffic removes what is not known of a driver's connections: it is counted at lockbench's own.
func (r *run) unseenTraffic(d *results.ServerDelta) {
	if r.driven != nil && d != nil {
		d.RoundTrips, d.ClientBytesIn, d.ClientBytesOut, d.OtherTraffic = nil, nil, nil, nil
	}
}
