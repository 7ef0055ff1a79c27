package driver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/strategies"
)

// Acquire makes the driver acquire the lock on a key. It serves calls that belong to no run. The deadline of ctx, if
// any, becomes the timeout of the driver's call.
func (d *Driver) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	q := question{Do: "acquire", Key: &key}
	if deadline, ok := ctx.Deadline(); ok {
		q.Timeout = new(max(0, int64(time.Until(deadline))))
	}
	return d.acquire(ctx, q)
}

// TryAcquire makes the driver try to acquire the lock on a key without waiting.
func (d *Driver) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return d.acquire(ctx, question{Do: "acquire", Key: &key, Timeout: new(int64)})
}

func (d *Driver) acquire(ctx context.Context, q question) (strategies.Lease, error) {
	c, err := d.begin(q)
	if err != nil {
		return nil, err
	}
	h, over, err := c.wait(ctx, q.Timeout != nil)
	if over {
		return d.acquired(ctx, q, h, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.late.Go(func() { // the call has returned, so a lease that arrives now has no client and must be released
			ctx := context.WithoutCancel(ctx)
			h, _, err := c.wait(ctx, false)
			if late, err := d.acquired(ctx, q, h, err); err == nil {
				_ = late.Release(ctx) // if that fails, the lease ends by its TTL
			}
		})
	}
	return nil, strategies.WaitEnded(ctx)
}

// errNoLease is the error for a response to acquire that contains neither a lease nor an error. A driver that does not
// implement the request acquire may send such a response.
var errNoLease = errors.New("the driver's response to acquire has neither a lease nor an error")

// acquired converts a response to acquire to a lease or an error.
func (d *Driver) acquired(ctx context.Context, q question, h heard, err error) (strategies.Lease, error) {
	ended := strategies.WaitEnded(ctx)
	switch {
	case err != nil:
		return nil, err
	case h.Error == "" && h.Lease == 0:
		return nil, errNoLease
	case h.Error == "":
	case ended != nil:
		return nil, ended
	case h.Error != string(engine.CycleTimedOut):
		return nil, errors.New(short(h.Error))
	case q.Timeout != nil && *q.Timeout > 0: // the driver's timeout ended just before the deadline of ctx
		return nil, context.DeadlineExceeded
	default:
		return nil, strategies.ErrHeld
	}
	l := &lease{driver: d, id: h.Lease, going: map[string]*call{}}
	l.note(h)
	var held strategies.Lease = l
	if d.extends {
		held = extendedLease{l}
	}
	if h.Token != nil {
		held = fencedLease{held, *h.Token}
	}
	if h.Until != nil {
		held = timedLease{held, l}
	}
	if h.Watched {
		d.mu.Lock()
		lost := d.watched[h.ID]
		d.mu.Unlock()
		held = watchedLease{held, lost}
	}
	return held, nil
}

// call is a call of the driver's library that has not returned yet.
type call struct {
	driver  *Driver
	answers <-chan heard
	forget  func()
	id      int64
}

// begin sends the request that makes the driver call its library.
func (d *Driver) begin(q question) (*call, error) {
	answers, forget, id, err := d.give(q)
	return &call{d, answers, forget, id}, err
}

// wait waits for the response. When ctx has ended, wait sends a cancel request. over is false if the call has not ended
// within cancelPatience after that request. A call with a timeout should end by itself at the deadline of ctx.
// Therefore wait cancels it only if it continues for more than overtime after that deadline.
func (c *call) wait(ctx context.Context, timeout bool) (h heard, over bool, err error) {
	hear := func(until <-chan struct{}) bool {
		select {
		case h = <-c.answers:
			c.forget()
		case <-c.driver.ended:
			err = c.driver.reason()
		case <-until:
			return false
		}
		return true
	}
	within := func(patience time.Duration) bool {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return hear(limited.Done())
	}
	if hear(ctx.Done()) || timeout && errors.Is(ctx.Err(), context.DeadlineExceeded) && within(overtime) {
		return h, true, err
	}
	_, forget, _, err := c.driver.give(question{Do: "cancel", Call: c.id})
	if err != nil {
		return h, true, err
	}
	forget()
	over = within(cancelPatience)
	return h, over, err
}

type lease struct {
	driver *Driver
	id     int64

	mu    sync.Mutex
	going map[string]*call // calls that continue after the end of their contexts, by the name of the request
	until time.Time
}

// Release releases the lock. If an earlier call of Release returned while the driver was still releasing, this call
// waits for that release instead of sending another request.
func (l *lease) Release(ctx context.Context) error { return l.do(ctx, question{Do: "release"}) }

func (l *lease) do(ctx context.Context, q question) error {
	q.Lease = l.id
	l.mu.Lock()
	c := l.going[q.Do]
	delete(l.going, q.Do)
	l.mu.Unlock()
	if c == nil {
		var err error
		if c, err = l.driver.begin(q); err != nil {
			return err
		}
	}
	h, over, err := c.wait(ctx, false)
	switch {
	case !over:
		l.mu.Lock()
		l.going[q.Do] = c
		l.mu.Unlock()
		return ctx.Err()
	case err != nil:
		return err
	case h.Error == string(engine.CycleNotHeld):
		return fmt.Errorf("%s: %w", q.Do, strategies.ErrNotHeld)
	case h.Error == string(engine.CycleStopped) && ctx.Err() != nil:
		return ctx.Err()
	case h.Error != "":
		return fmt.Errorf("%s: %s", q.Do, short(h.Error))
	}
	l.note(h)
	return nil
}

// note stores the time until which the lease is valid, if the response contains that time.
func (l *lease) note(h heard) {
	if h.Until == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Now().Add(time.Duration(*h.Until - monotonic()))
}

type extendedLease struct{ *lease }

// Extend makes the driver extend the lease, so that it stays valid for ttl from now.
func (l extendedLease) Extend(ctx context.Context, ttl time.Duration) error {
	return l.do(ctx, question{Do: "extend", TTL: ttl.Milliseconds()})
}

type fencedLease struct {
	strategies.Lease
	token int64
}

func (l fencedLease) FencingToken() int64      { return l.token }
func (l fencedLease) Unwrap() strategies.Lease { return l.Lease }

type timedLease struct {
	strategies.Lease
	of *lease
}

func (l timedLease) ValidUntil() time.Time {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.of.until
}
func (l timedLease) Unwrap() strategies.Lease { return l.Lease }

type watchedLease struct {
	strategies.Lease
	lost chan struct{}
}

func (l watchedLease) Lost() <-chan struct{}    { return l.lost }
func (l watchedLease) Unwrap() strategies.Lease { return l.Lease }
