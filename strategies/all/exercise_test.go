package all_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// exercise has a strategy do whatever a run may have it do: prepare, wait,
// give up, renew, find its lease lost, its holder dead and its scripts flushed.
type exercise struct {
	variant strategies.Variant
	connect func() ([]goredis.Node, error)
	admin   []*redis.Client // one a node
	times   time.Duration   // that its times are multiplied by
	waiting *sync.WaitGroup // whoever waits: nobody does when a Locker is closed
}

const (
	exerciseTTL = 300 * time.Millisecond
	parking     = 50 * time.Millisecond // until a waiter has parked
	exerciseKey = "{rights:1:0}"
	anotherKey  = "{rights:1:1}"
)

func (e exercise) ttl() time.Duration { return e.times * exerciseTTL }

// process is an application instance.
type process struct {
	strategies.Locker
	nodes []goredis.Node
}

func (p process) hangUp() {
	for _, n := range p.nodes {
		_ = n.Client.Close()
	}
}

func (e exercise) start(ctx context.Context) (p process, err error) {
	if p.nodes, err = e.connect(); err != nil {
		return p, fmt.Errorf("connect: %w", err)
	}
	p.Locker, err = goredis.Open(e.variant, goredis.Config{
		Nodes: p.nodes, Prefix: "lockbench:", TTL: e.ttl(),
		Callers: 4,
	})
	if err != nil {
		return p, err
	}
	if preparer, ok := strategies.As[strategies.Preparer](p.Locker); ok {
		if err := preparer.Prepare(ctx, []string{exerciseKey}); err != nil {
			return p, fmt.Errorf("prepare: %w", err)
		}
	}
	return p, nil
}

// run returns the first error that is not one of the lock's own.
func (e exercise) run(ctx context.Context) error {
	var a, b process
	var err error
	for _, p := range []*process{&a, &b} {
		if *p, err = e.start(ctx); err != nil {
			return err
		}
		defer p.hangUp()
		defer func() { _ = p.Close() }()
	}
	ctx, cancel := context.WithCancel(ctx)
	e.waiting = new(sync.WaitGroup)
	defer e.waiting.Wait()
	defer cancel()
	if counter, ok := strategies.As[strategies.Incrementer](a.Locker); ok {
		return counter.Increment(ctx, "lockbench:"+exerciseKey)
	}
	for _, step := range []func(context.Context, process, process) error{
		e.renewed, e.givenUp, e.dead, e.lost, e.flushed, e.several,
	} {
		if err := step(ctx, a, b); err != nil && !errors.Is(err, strategies.ErrNotHeld) {
			return err
		}
	}
	return nil
}

// hold has a process hold the lock while others wait for it, of whom meanwhile returns the end.
func (e exercise) hold(ctx context.Context, p process, key string,
	meanwhile func(strategies.Lease) (waited func() error, err error),
) error {
	lease, err := p.Acquire(ctx, key)
	if err != nil {
		return err
	}
	waited, err := meanwhile(lease)
	if err != nil {
		return err
	}
	return errors.Join(lease.Release(ctx), waited())
}

// wait has processes acquire at the same time, each releasing at once, and returns when they are parked. waited
// returns when they have had the lock.
func (e exercise) wait(ctx context.Context, key string, processes ...process) (waited func() error) {
	problems := make([]error, len(processes))
	var all sync.WaitGroup
	for i, p := range processes {
		e.waiting.Add(1)
		all.Go(func() {
			defer e.waiting.Done()
			lease, err := p.Acquire(ctx, key)
			if err == nil {
				err = lease.Release(ctx)
			}
			if !errors.Is(err, strategies.ErrNotHeld) {
				problems[i] = err
			}
		})
	}
	time.Sleep(e.times * parking)
	return func() error { all.Wait(); return errors.Join(problems...) }
}

// renewed is a lease that others wait for, that is renewed by hand and by watchdog, and given back.
func (e exercise) renewed(ctx context.Context, a, b process) error {
	return e.hold(ctx, a, exerciseKey, func(lease strategies.Lease) (func() error, error) {
		waited := e.wait(ctx, exerciseKey, b, b, a)
		for _, p := range []process{a, b} {
			if trier, ok := strategies.As[strategies.Trier](p.Locker); ok {
				if tried, err := trier.TryAcquire(ctx, exerciseKey); err == nil { // a semaphore's second permit
					_ = tried.Release(ctx)
				} else if !errors.Is(err, strategies.ErrHeld) {
					return nil, fmt.Errorf("try: %w", err)
				}
			}
		}
		time.Sleep(e.ttl() / 2)
		if extender, ok := strategies.As[strategies.Extender](lease); ok {
			if err := extender.Extend(ctx, e.ttl()); err != nil && !errors.Is(err, strategies.ErrNotHeld) {
				return nil, fmt.Errorf("extend: %w", err)
			}
		}
		return waited, nil
	})
}

// givenUp are waits that end, one of them before another.
func (e exercise) givenUp(ctx context.Context, a, b process) error {
	return e.hold(ctx, a, exerciseKey, func(strategies.Lease) (func() error, error) {
		short, cancel := context.WithTimeout(ctx, 3*e.times*parking)
		defer cancel()
		impatient := e.wait(short, exerciseKey, b, b)
		patient := e.wait(ctx, exerciseKey, b, b)
		if err := impatient(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		return patient, nil
	})
}

// dead is a holder, and a waiter, whose process dies.
func (e exercise) dead(ctx context.Context, a, b process) error {
	if !e.variant.Info().Claims.Recovery { // nobody would ever get it again
		return nil
	}
	victim, err := e.start(ctx)
	if err != nil {
		return err
	}
	if _, err := victim.Acquire(ctx, exerciseKey); err != nil {
		return err
	}
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	buried := e.wait(short, exerciseKey, victim)
	waited := e.wait(ctx, exerciseKey, a, b, b)
	victim.hangUp()
	cancel()
	_ = buried()
	_ = victim.Close()
	return waited()
}

// lost is a lease that Redis forgets, and a release and a renewal of it.
func (e exercise) lost(ctx context.Context, a, b process) error {
	return e.hold(ctx, a, exerciseKey, func(lease strategies.Lease) (func() error, error) {
		waited := e.wait(ctx, exerciseKey, b)
		for _, admin := range e.admin {
			if err := admin.FlushAll(ctx).Err(); err != nil {
				return nil, err
			}
		}
		if extender, ok := strategies.As[strategies.Extender](lease); ok {
			_ = extender.Extend(ctx, e.ttl())
		}
		return waited, nil
	})
}

// flushed is a turn after Redis has forgotten all scripts.
func (e exercise) flushed(ctx context.Context, a, b process) error {
	flush := func() error {
		for _, admin := range e.admin {
			if err := admin.ScriptFlush(ctx).Err(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := flush(); err != nil {
		return err
	}
	return e.hold(ctx, a, exerciseKey, func(strategies.Lease) (func() error, error) {
		return e.wait(ctx, exerciseKey, b), flush()
	})
}

// several are two locks that a process waits for, for the second while it waits for the first.
func (e exercise) several(ctx context.Context, a, b process) error {
	return e.hold(ctx, a, exerciseKey, func(strategies.Lease) (func() error, error) {
		waited := e.wait(ctx, exerciseKey, b)
		return waited, e.hold(ctx, a, anotherKey, func(strategies.Lease) (func() error, error) {
			return e.wait(ctx, anotherKey, b), nil
		})
	})
}
