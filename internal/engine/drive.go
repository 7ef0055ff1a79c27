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

// Driver is the Locker of an instance whose clients run in a process of another program.
type Driver interface {
	strategies.Locker
	// Drive has the program run the clients, and reports their cycles, those of one client in their order. It
	// returns once the program has said that all clients have stopped, or with the reason why it cannot go on.
	Drive(ctx context.Context, a Assignment, report func([]Cycle) error) error
	// CPU returns the CPU time of the process so far in seconds; nil if not known.
	CPU() *float64
}

// Assignment is what the clients of one instance do in a run. Its instants are times of Clock.
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

// Error makes a CycleError an error.
func (e CycleError) Error() string { return string(e) }

// Is maps a CycleError to the error of a lock or a context that it stands for.
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
	// driverLead is the time between the question and the start of the clients.
	driverLead = 100 * time.Millisecond
	// driverTail is how much longer than the window the clients run, so that waits are seen to be under way at its
	// end.
	driverTail = 50 * time.Millisecond
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

// localWork returns what the holders of DriveLocally do; nil if they only hold.
func (r *run) localWork(i *instance) LocalWork {
	if r.Workload.Work != workloads.WorkCounter {
		return nil
	}
	return func(key int, lease strategies.Lease, hold func()) error { return r.count(i, key, lease, hold) }
}

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

// ownTime returns a label if a driver took much of its clients' time for itself.
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
