package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gopgx"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// settleLimit bounds the clean-up after a wait has ended.
const settleLimit = 5 * time.Second

// opening is how many connections Prepare opens at a time.
const opening = 8

// Locker is one process's side of the lock.
type Locker struct {
	config  gopgx.Config
	options Options
	sql     statements
	ready   atomic.Bool // the schema has what the lock needs
	sockets sockets

	mu       sync.Mutex
	idle     []*session
	held     map[*session]struct{} // those that leases have
	closed   bool
	cleaning sync.WaitGroup // clean-ups after broken connections
}

// Open returns a Locker on the first node. It does not talk to PostgreSQL yet.
func Open(config gopgx.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if config.Nodes[0].Config == nil {
		return nil, errors.New("postgres: the node has no Config")
	}
	return &Locker{
		config: config, options: options, sql: options.statements(config.Nodes[0].Schema),
		held: map[*session]struct{}{},
	}, nil
}

// Prepare makes what the lock needs in its schema, and opens a connection for each expected
// caller.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	if err := l.setUp(ctx); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, opening)
	opened, problems := make([]*session, l.config.Callers), make([]error, l.config.Callers)
	for n := range opened {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			opened[n], problems[n] = l.take(ctx)
		})
	}
	all.Wait()
	var problem error // the first one is enough
	for n, s := range opened {
		if s != nil {
			l.put(s)
		} else if problem == nil {
			problem = fmt.Errorf("postgres: %w", problems[n])
		}
	}
	return problem
}

// Acquire waits at the server until the lock is held or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, false)
}

// TryAcquire tries once.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, true)
}

func (l *Locker) acquire(ctx context.Context, key string, try bool) (strategies.Lease, error) {
	name := l.config.Key(key)
	for {
		held, again, err := l.attempt(ctx, name, try)
		switch {
		case again, errors.Is(err, validity.ErrLate) && !try:
		case err == nil:
			return held.as(l.options), nil
		case errors.Is(err, strategies.ErrHeld), errors.Is(err, strategies.ErrClosed):
			return nil, err
		default:
			return nil, fmt.Errorf("lock %q: %w", name, because(ctx, err))
		}
	}
}

// attempt asks for the lock on one connection. again means that a kept connection turned out
// to be dead: it locked nothing, or what it locked is free again.
func (l *Locker) attempt(ctx context.Context, name string, try bool) (held *lease, again bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	if err := l.setUp(ctx); err != nil {
		return nil, false, err
	}
	s, err := l.take(ctx)
	if err != nil {
		return nil, false, err
	}
	held = &lease{locker: l, session: s, name: name}
	l.config.Probe.Attempt()
	got, err := held.ask(ctx, try)
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && got {
		if l.hold(s) {
			return held, false, nil
		}
		err = strategies.ErrClosed
	}
	if err == nil && !l.sql.transaction { // held by another: there is nothing to forget
		l.put(s)
		return nil, false, strategies.ErrHeld
	}
	lost := s.conn.IsClosed()
	l.forget(ctx, s)
	switch {
	case lost && s.used && ctx.Err() == nil:
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case l.options.Mode != Row:
		return nil, false, strategies.ErrHeld
	}
	// The row is locked, or there is none.
	made, err := l.makeRow(ctx, name)
	if err == nil && !made && try {
		err = strategies.ErrHeld
	}
	return nil, err == nil, err
}

// makeRow makes a key's row. It says whether there was none.
func (l *Locker) makeRow(ctx context.Context, name string) (made bool, err error) {
	s, err := l.take(ctx)
	if err != nil {
		return false, err
	}
	tag, err := s.conn.Exec(ctx, "INSERT INTO "+within(l.config.Nodes[0].Schema, tableName)+" VALUES ($1) ON CONFLICT DO NOTHING", []byte(name))
	if err != nil {
		l.forget(ctx, s)
		return false, fmt.Errorf("make its row: %w", err)
	}
	l.put(s)
	return tag.RowsAffected() > 0, nil
}

// forget makes a session hold nothing and keeps it, or ends it.
func (l *Locker) forget(ctx context.Context, s *session) {
	if s.usable() {
		ctx, done := context.WithTimeout(context.WithoutCancel(ctx), settleLimit)
		defer done()
		if _, err := s.conn.Exec(ctx, l.sql.forget); err != nil {
			s.altered = true
		}
	}
	l.put(s)
}
