package postgres

import (
	"context"
	"net"
	"time"

	"github.com/lockbench/lockbench/strategies"
)

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
