package cohort

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/doubt"
)

// handover is what an agent does with a batch whose holder has released it.
type handover struct {
	done chan struct{} // closed when it is known …
	err  error         // … what became of the release
}

func (h *handover) end(err error) {
	if h != nil {
		h.err = err
		close(h.done)
	}
}

// start has an agent see to a cohort, and to a batch that nobody holds; nil for none.
func (c *cohort) start(b *batch) *handover {
	h := &handover{done: make(chan struct{})}
	c.working = true
	c.batch = nil
	c.locker.agents.Go(func() {
		c.locker.mu.Lock()
		defer c.locker.mu.Unlock()
		c.work(b, h)
		c.working = false
	})
	return h
}

// work goes on until the lock is in somebody's hands, or nobody wants it.
func (c *cohort) work(b *batch, h *handover) {
	if b != nil {
		if c.pass(b) {
			h.end(nil)
			return
		}
		b.stop()
	}
	for {
		switch {
		case c.waiters.Len() > 0:
			if next := c.find(b, h); next != nil {
				c.give(next, false)
				return
			}
		case b != nil:
			h.end(c.giveUp(b.block))
		default:
			c.forget()
			return
		}
		b, h = nil, nil
	}
}

// fits says whether a batch with that much left can be passed without asking Redis: not
// with less than half a TTL, nor with more than a whole one, as a holder may have
// extended it and a process that dies would keep it for as long.
func (c *cohort) fits(b *batch, left time.Duration) bool {
	ttl := c.locker.config.TTL
	return left >= ttl/2 && left <= ttl && b.block.Unbroken()
}

// pass extends a batch, and gives its next turn if it has one. If Redis does not say
// whether it has extended it, less than half a TTL will do, but not next to nothing.
func (c *cohort) pass(b *batch) bool {
	left, ttl := b.left(), c.locker.config.TTL
	if !c.goesOn(b) || left <= 0 {
		return false
	}
	c.unlocked(func() {
		ctx, cancel := context.WithTimeout(context.Background(), left/2)
		defer cancel()
		b.lost = errors.Is(b.block.Extend(ctx, ttl), strategies.ErrNotHeld)
	})
	b.extended()
	if !c.goesOn(b) || b.left() < ttl/8 || !b.block.Unbroken() {
		return false
	}
	c.give(b, true)
	return true
}

// find waits for the lock among the processes, until nobody here wants it, and gives up
// what this process had of it, if anything. Nobody gets anything but those who wait, who
// may get an error.
func (c *cohort) find(b *batch, h *handover) *batch {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &search{cancel, make(chan struct{})}
	defer close(s.over)
	c.search = s
	var next block
	var err error
	c.unlocked(func() { next, err = c.seek(ctx, b, h) })
	c.search = nil
	switch {
	case err == nil && c.waiters.Len() > 0:
		return newBatch(next, c.came)
	case err == nil:
		_ = c.giveUp(next) // it frees by itself
	case ctx.Err() == nil:
		c.fail(err)
	}
	return nil
}

func (c *cohort) seek(ctx context.Context, b *batch, h *handover) (block, error) {
	if b == nil {
		return c.locker.lock.acquire(ctx, c.key, c.locker.size)
	}
	turn, err := b.block.requeue(ctx, c.locker.size)
	if err == nil || errors.Is(err, strategies.ErrNotHeld) {
		h.end(err)
		return turn(ctx)
	}
	// Whether it is held still is not known, and it must not be: the process would wait
	// for itself.
	h.end(release(b.block))
	return c.locker.lock.acquire(ctx, c.key, c.locker.size)
}

// giveUp releases what nobody here wants.
func (c *cohort) giveUp(b block) (err error) {
	c.unlocked(func() { err = release(b) })
	return err
}

func release(b block) error {
	ctx, done := doubt.Settle(context.Background())
	defer done()
	return b.Release(ctx)
}

// unlocked does what takes time.
func (c *cohort) unlocked(do func()) {
	c.locker.mu.Unlock()
	defer c.locker.mu.Lock()
	do()
}
