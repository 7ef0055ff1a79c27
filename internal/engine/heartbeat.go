package engine

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A server that stands still refuses nothing: clients would wait for their answers until
// they time out. So it is asked for a sign of life all the time, and within 4 s of its
// last one the run is over. A single question may go unanswered for as long as this
// process itself stands still; then the next one is answered.
const (
	// beat is between two questions.
	beat = 500 * time.Millisecond
	// questions in a row are to go unanswered, each for up to answer.
	questions = 3
	answer    = time.Second
	// breath follows each, for a server that refuses connections while it starts.
	breath = 200 * time.Millisecond
)

// live begins the heartbeat; what it returns ends it.
func (r *run) live(ctx context.Context) (rest func()) {
	r.life, r.end = context.WithCancelCause(ctx)
	listening, stop := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() { r.heartbeat(listening) })
	return func() {
		stop()
		beating.Wait()
		r.end(nil)
	}
}

// heartbeat asks after the servers until ctx ends, or until they, or any progress, are
// gone: that ends the run.
func (r *run) heartbeat(ctx context.Context) {
	beats := time.NewTicker(beat)
	defer beats.Stop()
	pulse := pulse{grants: r.grants(), at: time.Now()}
	for {
		select {
		case <-beats.C:
		case <-ctx.Done():
			return
		}
		if grants := r.grants(); grants > pulse.grants || r.disturbance.halted() {
			pulse.grants, pulse.at = grants, time.Now()
		}
		err := r.stillThere(ctx)
		if err == nil {
			err = r.progress(pulse)
		}
		if err != nil {
			r.end(err)
			return
		}
	}
}

// progress says whether clients that meet errors get any locks.
func (r *run) progress(last pulse) error {
	select {
	case <-r.control.trouble:
	default:
		return nil
	}
	if silent := time.Since(last.at); silent > lifeless {
		return fmt.Errorf("errors and not one acquisition for %v: %s", silent.Round(time.Second), r.errors.list()[0].Error)
	}
	return nil
}

// pulse is when the lock was last seen to be granted.
type pulse struct {
	grants int64
	at     time.Time
}

// lifeless is how long clients may meet nothing but errors.
const lifeless = 30 * time.Second

// stillThere asks the servers whether they live. What keeps everybody from the locks on
// purpose excuses them.
func (r *run) stillThere(ctx context.Context) error {
	if !r.remote() {
		return nil
	}
	var err error
	for range questions {
		if r.disturbance.halted() {
			return nil
		}
		attempt, cancel := context.WithTimeout(ctx, answer)
		err = r.Target.Ping(attempt)
		cancel()
		r.unanswered.Store(err != nil)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		time.Sleep(breath)
	}
	if r.disturbance.halted() {
		return nil
	}
	r.dead.Store(true)
	return fmt.Errorf("%w: %w", ErrServerGone, err)
}
