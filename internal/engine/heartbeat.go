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

// A stopped server (SIGSTOP) accepts connections and commands but does not reply, so its clients would wait until they
// time out. The run therefore sends a Ping at short intervals and ends about 4 s after the last reply. If this process
// itself was stopped, one Ping may fail, but the next one gets a reply.
const (
	// beat is the time between two checks of the servers.
	beat = 500 * time.Millisecond
	// questions is the number of consecutive Pings without a reply after which a check fails. Each Ping waits for at most
	// answer.
	questions = 3
	answer    = time.Second
	// breath is the pause after a failed Ping. It gives time to a server that refuses connections while it starts.
	breath = 200 * time.Millisecond
)

// live starts the heartbeat and returns a function that stops it.
func (r *run) live(ctx context.Context) (rest func()) {
	r.life, r.end = context.WithCancelCause(ctx)
	listening, stop := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() { r.heartbeat(listening) })
	var own *measure.Heartbeat
	if !r.VirtualTime { // in virtual time no server can hang
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

// heartbeat checks the servers until ctx ends. It ends the run if a server does not reply, or if clients report errors
// and no client acquires a lock.
func (r *run) heartbeat(ctx context.Context) {
	beats := time.NewTicker(beat)
	defer beats.Stop()
	grants, since := r.grants(), time.Now() // since is when grants last increased
	for {
		select {
		case <-beats.C:
		case <-ctx.Done():
			return
		}
		if now := r.grants(); now > grants || r.faults.explainsSilence() {
			grants, since = now, time.Now()
		}
		err := r.checkServersAlive(ctx)
		if err == nil {
			err = r.progress(since)
		}
		if err != nil {
			r.end(err)
			return
		}
	}
}

// progress returns an error if clients report errors and the last acquisition was more than lifeless ago. since is the
// instant of that acquisition.
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

// lifeless is how long clients may report errors without a single acquisition.
const lifeless = 30 * time.Second

// checkServersAlive returns an ErrServerGone if a server does not reply and no fault explains its silence.
func (r *run) checkServersAlive(ctx context.Context) error {
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

// silent returns an ErrServerGone if a server does not reply to several Pings and no fault explains its silence. It
// stores in unanswered whether the last Ping failed.
func (r *run) silent(ctx context.Context, server store.Target, unanswered *atomic.Bool) error {
	var err error
	for range questions {
		if r.faults.explainsSilence() {
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
	if r.faults.explainsSilence() {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrServerGone, err)
}
