package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/results"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/workloads"
)

// Driver is the Locker of an instance whose clients run in another process, which may be written in another language.
type Driver interface {
	strategies.Locker
	// Drive makes the process run the clients, and calls report with their cycles, in order for each client. It returns
	// when the process has reported that all clients have stopped, or with an error if the process cannot continue.
	Drive(ctx context.Context, a Assignment, report func([]Cycle) error) error
	// CPU returns the CPU time of the process so far in seconds; nil if unknown.
	CPU() *float64
}

// Assignment describes the work of the clients of one instance in a run. Its instants are times of Clock.
type Assignment struct {
	Clock       measure.Clock
	Start, Stop int64
	Stopped     <-chan struct{} // closed if the clients must stop earlier
	Clients     []AssignedClient
	Keys        []string
	// Steps lists the cycles that a client executes in order. After the last step, the client continues with the first
	// one.
	Steps   []Step
	Timeout *time.Duration // as in workloads.Spec
	// Count makes each holder read the decimal counter KEY:counter, hold, and write the counter back incremented by one.
	Count bool
}

// AssignedClient is the number of a client and the index of its first cycle in Assignment.Steps.
type AssignedClient struct{ ID, First int }

// Step is one cycle of acquire, hold, release and think that the engine requests from a client of a driver.
type Step struct {
	Key         int
	Hold, Think time.Duration
}

// Cycle is a driver's report of one cycle of a client: its wait and, if it got the lock, its lease.
type Cycle struct {
	Client                         int
	Step                           int // in Assignment.Steps
	Asked, Granted, Released, Done int64
	Error                          CycleError // why the wait ended without a lease, or the error of Release
	Token                          *int64     // the lease's fencing token; nil without one
	// Until is the end of the lease's validity as the library reported it just before the release; nil if the library does
	// not report it. If Until is nil, the lease is certainly valid only from Granted until one TTL after Asked.
	Until *int64
}

// CycleError is the error of a Cycle; "" means success. A text that is not one of the constants below is an error of
// the lock.
type CycleError string

// A driver reports these texts for outcomes that are not errors of the lock.
const (
	CycleTimedOut CycleError = "timeout"  // or a try-lock that found the lock held
	CycleStopped  CycleError = "stopped"  // the end of the run ended the wait
	CycleNotHeld  CycleError = "not held" // the release found that the lease had been lost
)

// Error returns the text of the CycleError, so that it implements error.
func (e CycleError) Error() string { return string(e) }

// Is makes errors.Is match a CycleError with the corresponding error of a context or a lock.
func (e CycleError) Is(target error) bool {
	switch e {
	case CycleTimedOut:
		return target == context.DeadlineExceeded
	case CycleStopped:
		return target == context.Canceled
	case CycleNotHeld:
		return target == strategies.ErrNotHeld
	}
	return false
}

const (
	// driverLead is the time between the request to a driver and the start of its clients. It lets all drivers start their
	// clients at the same instant.
	driverLead = 100 * time.Millisecond
	// driverTail is how long the clients continue after the end of the window. It lets the run observe the waits that are
	// open at the end of the window.
	driverTail = 50 * time.Millisecond
	// mostSteps is the number of steps that the engine draws for an instance. The clients repeat these steps.
	mostSteps = 4096
	// silence is how long a driver may report nothing about a client before the client counts as silent.
	silence = time.Second
	// ownTimeLimit is the share of its clients' time, in percent, that a driver may spend outside the requested steps. A
	// run with a larger share gets a label.
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

// drive starts the clients of all instances if a driver takes part in the run.
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

// assign returns the Assignment for an instance's clients. It draws the steps with a source of random numbers that the
// seed, the round and the instance determine.
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

// localWork returns the work of holders in DriveLocally; nil if they only hold.
func (r *run) localWork(i *instance) LocalWork {
	if r.Workload.Work != workloads.WorkCounter {
		return nil
	}
	return func(key int, lease strategies.Lease, hold func()) error { return r.count(i, key, lease, hold) }
}

// silent returns the number of clients whose state at the end of the window is unknown, because the driver did not
// report it.
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

// ownTime returns a label if a driver spent more than ownTimeLimit of its clients' time between the requested steps.
func (d *driven) ownTime(result *results.Run) results.Remarks {
	if d == nil || result.WindowNS == 0 {
		return nil
	}
	share := d.own / float64(result.WindowNS) / float64(len(d.ends)) * 100
	if share <= ownTimeLimit {
		return nil
	}
	return results.Remarks{results.DriverTime.Remark(results.Measured(share, "%.0f%%"))}
}

// driverCPU returns the CPU time of the drivers' processes so far in seconds; nil if it is unknown for any of them.
func (r *run) driverCPU() *float64 {
	if r.driven == nil {
		return nil
	}
	sum := 0.0
	for _, i := range r.instances {
		driver, ok := i.locker.(Driver)
		if !ok {
			if i.strategy.Info().Driver { // the driver's process has ended
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

// unseenTraffic removes the figures of d that depend on the traffic of a driver's connections, because lockbench counts
// only the traffic of its own connections.
func (r *run) unseenTraffic(d *results.ServerDelta) {
	if r.driven != nil && d != nil {
		d.RoundTrips, d.ClientBytesIn, d.ClientBytesOut, d.OtherTraffic = nil, nil, nil, nil
	}
}
