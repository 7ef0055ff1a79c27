package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
)

// reporting is the interval between two reports of DriveLocally.
const reporting = 50 * time.Millisecond

// LocalWork does a holder's work on a key and calls hold between reading and writing. DriveLocally reports an error of
// the work as the error of the cycle.
type LocalWork func(key int, lease strategies.Lease, hold func()) error

// DriveLocally is like Driver.Drive, but runs the clients in this process with locker. If work is nil, they only hold.
func DriveLocally(
	ctx context.Context, locker strategies.Locker, a Assignment, work LocalWork, report func([]Cycle) error,
) (failed error) {
	going, stop := context.WithCancel(ctx) // no deadline, because a lock would treat it as the client's timeout
	defer stop()
	defer time.AfterFunc(time.Duration(a.Stop-a.Clock.Now()), stop).Stop()
	sleepers := pause.Sleepers{Exact: true}
	defer sleepers.Close()
	var mu sync.Mutex
	var made []Cycle
	var clients sync.WaitGroup
	for _, client := range a.Clients {
		c := &localClient{Assignment: a, going: going, locker: locker, work: work, sleepers: &sleepers}
		clients.Go(func() {
			sleepers.Sleep(going.Done(), time.Duration(a.Start-a.Clock.Now()))
			for step := client.First; going.Err() == nil; step = (step + 1) % len(a.Steps) {
				cycle := c.cycle(ctx, a.Steps[step])
				cycle.Client, cycle.Step = client.ID, step
				mu.Lock()
				made = append(made, cycle)
				mu.Unlock()
				sleepers.Sleep(going.Done(), a.Steps[step].Think)
			}
		})
	}
	returned := make(chan struct{})
	go func() { // ends with the clients
		clients.Wait()
		close(returned)
	}()
	for done, stopped := false, a.Stopped; !done; {
		select {
		case <-returned:
			done = true
		case <-stopped:
			stopped = nil
			stop()
		case <-time.After(reporting):
		}
		mu.Lock()
		all := made
		made = nil
		mu.Unlock()
		if failed = errors.Join(failed, report(all)); failed != nil {
			stop()
		}
	}
	return failed
}

// localClient is one client that DriveLocally runs in this process.
type localClient struct {
	Assignment
	going    context.Context // ends with the run
	locker   strategies.Locker
	work     LocalWork // may be nil
	sleepers *pause.Sleepers
	last     int64
}

// now returns the time of the clock. Two calls never return the same instant, so that the events of a client have an
// order.
func (c *localClient) now() int64 {
	c.last = max(c.last+1, c.Clock.Now())
	return c.last
}

// cycle acquires, holds and releases once, and returns the Cycle to report.
func (c *localClient) cycle(ctx context.Context, step Step) Cycle {
	made := Cycle{Asked: c.now()}
	lease, err := Acquire(c.going, c.locker, c.Keys[step.Key], c.Timeout)
	at := c.now()
	if err != nil {
		made.Done, made.Error = at, ErrorOf(c.going, err, c.Timeout != nil)
		if made.Error != CycleTimedOut {
			c.sleepers.Sleep(c.going.Done(), retryPause)
		}
		return made
	}
	if fenced, ok := strategies.As[strategies.Fenced](lease); ok {
		made.Token = new(fenced.FencingToken())
	}
	hold := func() {
		if step.Hold > 0 {
			c.sleepers.Sleep(c.going.Done(), time.Duration(at+int64(step.Hold)-c.Clock.Now()))
		}
	}
	if c.work != nil {
		err = c.work(step.Key, lease, hold)
	} else {
		hold()
	}
	if timed, ok := strategies.As[strategies.Timed](lease); ok {
		made.Until = new(c.Clock.At(timed.ValidUntil()))
	}
	made.Granted, made.Released = at, c.now()
	switch freed := lease.Release(ctx); {
	case err != nil:
		made.Error = CycleError(errors.Join(err, freed).Error())
	case freed != nil:
		made.Error = ErrorOf(ctx, freed, false)
	}
	made.Done = c.now()
	return made
}

// ErrorOf converts err, the error of a lock operation that was called with ctx, to a CycleError. limited means that the
// operation also had a timeout.
func ErrorOf(ctx context.Context, err error, limited bool) CycleError {
	if ctx.Err() != nil { // regardless of the error that the lock returned
		err = context.Canceled
	}
	switch outcomeOf(err, limited, true) {
	case measure.Stopped:
		return CycleStopped
	case measure.TimedOut:
		return CycleTimedOut
	case measure.Granted, measure.Failed:
	}
	if errors.Is(err, strategies.ErrNotHeld) {
		return CycleNotHeld
	}
	return CycleError(err.Error())
}
