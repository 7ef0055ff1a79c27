package cohort

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// Lease is somebody's turn of a batch. It is a strategies.Lease, Extender, Fenced, Timed
// and Watched.
type Lease struct {
	cohort *cohort
	batch  *batch
	fence  int64
	until  validity.Until

	// Once it is released, who sees to that if Redis has to be asked:
	handover *handover // an agent
	alone    bool      // the caller, for whom nobody waits

	// Guarded by the Locker's mutex.
	gone chan struct{} // nil until it is asked for
	lost bool
}

// FencingToken is larger than that of every earlier lease on the same lock.
func (held *Lease) FencingToken() int64 { return held.fence }

// ValidUntil is when the process's lease from Redis is over, as far as the holder has it.
func (held *Lease) ValidUntil() time.Time {
	until := held.until.Get()
	if all := held.batch.block.ValidUntil(); all.Before(until) { // it is being shortened
		return all
	}
	return until
}

// Lost is closed when the lease is over before it is released, or found to be lost.
func (held *Lease) Lost() <-chan struct{} {
	mu := &held.cohort.locker.mu
	mu.Lock()
	defer mu.Unlock()
	if held.gone == nil {
		held.gone = make(chan struct{})
		if held.lost {
			close(held.gone)
		}
		if held.batch.holder == held {
			held.cohort.watch(held.batch)
		}
	}
	return held.gone
}

// isLost is told under the Locker's mutex.
func (held *Lease) isLost() {
	held.lost = true
	if held.gone != nil {
		close(held.gone)
	}
}

// Release passes the lock to the next in the process, or gives it up. It may be called
// again after an error other than ErrNotHeld. If ctx ends while others of the process
// wait, that holds up none of them.
func (held *Lease) Release(ctx context.Context) error {
	c, b := held.cohort, held.batch
	mu := &c.locker.mu
	mu.Lock()
	switch left := b.left(); {
	case b.holder != held: // it is lost, or was released before
	case left <= 0:
		c.lose(b)
	case c.goesOn(b) && c.fits(b, left):
		c.give(b, true)
		mu.Unlock()
		return nil
	case c.waiters.Len() > 0:
		b.holder = nil
		held.handover = c.start(b)
	default:
		b.holder = nil
		b.stop()
		c.forget()
		held.alone = true
	}
	mu.Unlock()
	return held.finish(ctx)
}

// finish has the agent say what became of a release, or asks Redis.
func (held *Lease) finish(ctx context.Context) error {
	err := strategies.ErrNotHeld
	switch h := held.handover; {
	case held.alone:
		err = held.batch.block.Release(ctx)
	case h != nil:
		select {
		case <-h.done:
			err = h.err
		case <-ctx.Done():
			return fmt.Errorf("release %q: %w", held.cohort.key, ctx.Err())
		}
	}
	held.handover = nil
	held.alone = err != nil && !errors.Is(err, strategies.ErrNotHeld) // it may be repeated
	return err
}

// Extend makes the lease valid for ttl from now on. Until it has returned, and after an
// error other than ErrNotHeld, it is valid until when it was, or for ttl if that ends
// sooner.
func (held *Lease) Extend(ctx context.Context, ttl time.Duration) error {
	c, b := held.cohort, held.batch
	mu := &c.locker.mu
	mu.Lock()
	defer mu.Unlock()
	if b.holder == held && b.left() <= 0 {
		c.lose(b)
	}
	if b.holder != held {
		return strategies.ErrNotHeld
	}
	var err error
	c.unlocked(func() { err = b.block.Extend(ctx, ttl) })
	switch {
	case b.holder != held: // it was over before Redis answered
		return strategies.ErrNotHeld
	case errors.Is(err, strategies.ErrNotHeld):
		c.lose(b)
	default:
		b.extended()
		held.until.Set(b.block.ValidUntil())
	}
	return err
}
