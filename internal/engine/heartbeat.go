package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/store"
)

// A server that is stopped refuses nothing: its clients would wait until they time out.
// So the run sends it a Ping all the time, and ends about 4 s after its last answer. If
// this process itself was stopped, one Ping may fail; then the next one is answered.
const (
	// beat is the time between two checks.
	beat = 500 * time.Millisecond
	// A check fails after this many Pings in a row without an answer, each limited to answer.
	questions = 3
	answer    = time.Second
	// breath is the pause after each of them, for a server that refuses connections while it
	// starts.
	breath = 200 * time.Millisecond
)

// live begins the heartbeat and returns a function that ends it.
func (r *run) live(ctx context.Context) (rest func()) {
	r.life, r.end = context.WithCancelCause(ctx)
	listening, stop := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() { r.heartbeat(listening) })
	var own *measure.Heartbeat
	if !r.VirtualTime { // in which no process stands still
		own = measure.NewHeartbeat(r.window)
	}
	return func() {
		stop()
		beating.Wait()
		if own != nil {
			r.stood = new(int64(own.End()))
		}
		r.end(nil)
	}
}

// heartbeat checks the servers until ctx ends. If the servers do not answer, or errors
// stop all progress, it ends the run.
func (r *run) heartbeat(ctx context.Context) {
	beats := time.NewTicker(beat)
	defer beats.Stop()
	grants, since := r.grants(), time.Now() // the last time at which there were new grants
	for {
		select {
		case <-beats.C:
		case <-ctx.Done():
			return
		}
		if now := r.grants(); now > grants || r.faults.excuses() {
			grants, since = now, time.Now()
		}
		err := r.stillThere(ctx)
		if err == nil {
			err = r.progress(since)
		}
		if err != nil {
			r.end(err)
			return
		}
	}
}

// progress returns an error if clients meet errors and none of them has got a lock for too
// long.
func (r *run) progress(since time.Time) error {
	select {
	case <-r.control.trouble:
	default:
		return nil
	}
	if silent := time.Since(since); silent > lifeless {
		return fmt.Errorf("no acquisition for %v, only errors: %s", silent.Round(time.Second),
			r.errors.list()[0].Error)
	}
	return nil
}

// lifeless is how long clients may have errors without one acquisition.
const lifeless = 30 * time.Second

// stillThere returns an error if the servers do not answer and no fault explains it.
func (r *run) stillThere(ctx context.Context) error {
	if r.remote() {
		if err := r.silent(ctx, r.Target, &r.unanswered); err != nil {
			r.dead.Store(true)
			return err
		}
	}
	if r.Transactor == nil || r.rowsWithLocks() {
		return nil
	}
	return r.silent(ctx, r.Transactor, new(atomic.Bool))
}

// silent returns an error if a server does not answer and no fault explains it. unanswered is whether the last Ping
// failed.
func (r *run) silent(ctx context.Context, server store.Target, unanswered *atomic.Bool) error {
	var err error
	for range questions {
		if r.faults.excuses() {
			unanswered.Store(false)
			return nil
		}
		attempt, cancel := context.WithTimeout(ctx, answer)
		err = server.Ping(attempt)
		cancel()
		unanswered.Store(err != nil)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		time.Sleep(breath)
	}
	if r.faults.excuses() {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrServerGone, err)
}
