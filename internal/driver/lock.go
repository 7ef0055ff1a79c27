package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/engine"
	"github.com/lockbench/lockbench/strategies"
)

// Acquire has the driver take the lock once, outside a run.
func (d *Driver) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	q := question{Do: "acquire", Key: key}
	if deadline, ok := ctx.Deadline(); ok {
		q.Timeout = new(max(0, int64(time.Until(deadline))))
	}
	return d.acquire(ctx, q)
}

// TryAcquire has it try once.
func (d *Driver) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return d.acquire(ctx, question{Do: "acquire", Key: key, Timeout: new(int64)})
}

func (d *Driver) acquire(ctx context.Context, q question) (strategies.Lease, error) {
	answers, forget, id, err := d.give(q)
	if err != nil {
		return nil, err
	}
	hear := func(until <-chan struct{}) (held strategies.Lease, over bool, err error) {
		select {
		case h := <-answers:
			forget()
			held, err = d.acquired(ctx, q, h)
			return held, true, err
		case <-d.ended:
			return nil, true, d.reason()
		case <-until:
			return nil, false, nil
		}
	}
	if held, over, err := hear(ctx.Done()); over {
		return held, err
	}
	if _, _, _, err := d.give(question{Do: "cancel", Lease: id}); err != nil {
		return nil, err
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelPatience)
	defer cancel()
	if held, over, err := hear(patience.Done()); over {
		return held, err
	}
	go func() { // until the library's wait is over: what it gets then is nobody's
		if late, _, err := hear(nil); err == nil {
			_ = late.Release(context.WithoutCancel(ctx)) // it ends with its TTL otherwise
		}
	}()
	return nil, strategies.WaitEnded(ctx)
}

// acquired returns what an answer says of a lock that was asked for.
func (d *Driver) acquired(ctx context.Context, q question, h heard) (strategies.Lease, error) {
	ended := strategies.WaitEnded(ctx)
	switch {
	case h.Error == "":
	case ended != nil:
		return nil, ended
	case h.Error != string(engine.CycleTimedOut):
		return nil, errors.New(short(h.Error))
	case q.Timeout != nil && *q.Timeout > 0: // its clock was a little faster
		return nil, context.DeadlineExceeded
	default:
		return nil, strategies.ErrHeld
	}
	l := lease{d, h.Lease}
	if h.Token != nil {
		return fencedLease{l, *h.Token}, nil
	}
	return l, nil
}

// lease is held in the driver's process.
type lease struct {
	driver *Driver
	id     int64
}

func (l lease) Release(ctx context.Context) error { return l.do(ctx, question{Do: "release"}) }

// Extend makes it valid for ttl from now on.
func (l lease) Extend(ctx context.Context, ttl time.Duration) error {
	return l.do(ctx, question{Do: "extend", TTL: ttl.Milliseconds()})
}

func (l lease) do(ctx context.Context, q question) error {
	q.Lease = l.id
	h, err := l.driver.ask(ctx, l.driver.patience.run, q)
	if h.Error == string(engine.CycleNotHeld) {
		return fmt.Errorf("%s: %w", q.Do, strategies.ErrNotHeld)
	}
	return err
}

type fencedLease struct {
	lease
	token int64
}

func (l fencedLease) FencingToken() int64 { return l.token }
