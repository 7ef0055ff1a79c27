package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	answers, forget, err := d.give(q)
	if err != nil {
		return nil, err
	}
	defer forget()
	given := ctx.Done()
	for {
		select {
		case h := <-answers:
			switch {
			case h.Error == string(strategies.ErrHeld.Error()), h.Error == "timeout", h.Error == "stopped":
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				return nil, strategies.ErrHeld
			case h.Error != "":
				return nil, errors.New(short(h.Error))
			}
			l := lease{d, h.Lease}
			if h.Token != nil {
				return fencedLease{l, *h.Token}, nil
			}
			return l, nil
		case <-d.ended:
			return nil, d.reason()
		case <-given:
			given = nil
		}
	}
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
	if h.Error == "not held" {
		return fmt.Errorf("%s: %w", q.Do, strategies.ErrNotHeld)
	}
	return err
}

type fencedLease struct {
	lease
	token int64
}

func (l fencedLease) FencingToken() int64 { return l.token }
