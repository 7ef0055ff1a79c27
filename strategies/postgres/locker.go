package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

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

// take returns a session that was kept, or a new one.
func (l *Locker) take(ctx context.Context) (*session, error) {
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return nil, strategies.ErrClosed
		}
		last := len(l.idle) - 1
		if last < 0 {
			l.mu.Unlock()
			return l.connect(ctx)
		}
		s := l.idle[last]
		l.idle = l.idle[:last]
		l.mu.Unlock()
		if l.options.Expire && time.Since(s.since) > l.config.TTL/2 { // the server may be ending it
			l.end(s)
			continue
		}
		return s, nil
	}
}

// put keeps a session for the next caller, or ends it.
func (l *Locker) put(s *session) {
	l.mu.Lock()
	delete(l.held, s)
	keep := !l.closed && s.usable()
	if keep {
		s.used = true
		if l.options.Expire {
			s.since = time.Now()
		}
		l.idle = append(l.idle, s)
	}
	l.mu.Unlock()
	if !keep {
		l.end(s)
	}
}

// hold records that a lease has the session; false means that the Locker was closed
// meanwhile.
func (l *Locker) hold(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.held[s] = struct{}{}
	}
	return !l.closed
}

// end ends a session and what it holds: at once on this side, and at the server as soon as
// the server notices.
func (l *Locker) end(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if s.conn.IsClosed() { // it broke, and pgx is cleaning up
		_ = s.raw().Close()
	}
	_ = s.conn.Close(ctx)
	l.cleaning.Go(func() { <-s.conn.PgConn().CleanupDone() })
}

// Close closes the connections that hold no lock. Leases can still be released.
func (l *Locker) Close() error {
	l.mu.Lock()
	idle, held := l.idle, map[net.Conn]bool{}
	l.idle, l.closed = nil, true
	for s := range l.held {
		held[s.raw()] = true
	}
	l.mu.Unlock()
	for _, s := range idle {
		l.end(s)
	}
	l.sockets.close(held)
	l.cleaning.Wait()
	return nil
}

// ask sends the request, and returns when it is answered.
func (held *lease) ask(ctx context.Context, try bool) (got bool, err error) {
	l, s := held.locker, held.session
	sent := time.Now()
	if got, err = held.lock(ctx, try); err != nil || !got || !l.options.Expire {
		return got, err
	}
	held.until.Set(sent.Add(l.config.TTL))
	// After a wait it is not known how long ago the lock was granted.
	if time.Since(sent) > l.config.TTL/10 {
		if err := held.silence(ctx, l.config.TTL); err != nil {
			return false, err
		}
	}
	if !time.Now().Before(held.until.Get()) {
		s.altered = true
		return false, validity.ErrLate
	}
	return true, nil
}

// lock runs the mode's statements, in one round trip.
func (held *lease) lock(ctx context.Context, try bool) (got bool, err error) {
	l := held.locker
	var batch pgx.Batch
	if l.sql.transaction {
		batch.Queue(begin)
	}
	if l.options.Expire && l.options.Mode == Xact { // in other modes the session has the setting
		batch.Queue(l.sql.silent(l.config.TTL))
	}
	switch {
	case l.options.Mode == Row:
		batch.Queue(l.sql.lock, held.argument()).QueryRow(found(&got))
		if try {
			batch.QueuedQueries[len(batch.QueuedQueries)-1].SQL = l.sql.try
		}
	case try && l.options.Fence:
		var token *int64
		batch.Queue(l.sql.try, held.argument()).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&token)
			if got = token != nil; got {
				held.token = *token
			}
			return err
		})
	case try:
		batch.Queue(l.sql.try, held.argument()).QueryRow(func(row pgx.Row) error { return row.Scan(&got) })
	default:
		batch.Queue(l.sql.lock, held.argument())
		if l.options.Fence {
			batch.Queue(l.sql.token).QueryRow(func(row pgx.Row) error { return row.Scan(&held.token) })
		}
		got = true
	}
	if err := held.session.conn.SendBatch(ctx, &batch).Close(); err != nil {
		return false, err
	}
	return got, nil
}

// found records whether there was a row.
func found(got *bool) func(pgx.Row) error {
	return func(row pgx.Row) error {
		err := row.Scan(got)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	}
}

// argument is what the mode locks: the key, or its number.
func (held *lease) argument() any {
	if held.locker.options.Mode == Row {
		return []byte(held.name)
	}
	return number(held.name)
}
