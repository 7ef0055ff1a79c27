package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// lease is a session that holds the lock.
type lease struct {
	locker  *Locker
	session *session
	name    string
	token   int64          // with a fence
	until   validity.Until // with an end
	over    bool

	lost   chan struct{} // closed once the session is known to have ended; nil before Lost
	unhear func()        // ends the watch for that; nil if there is none
}

// Leases that can do more.
type (
	fenced   struct{ *lease }
	expiring struct{ *lease }
	both     struct{ expiring }
)

// as returns the lease with what it can do under these options.
func (held *lease) as(options Options) strategies.Lease {
	switch {
	case options.Fence && options.Expire:
		return both{expiring{held}}
	case options.Fence:
		return fenced{held}
	case options.Expire:
		return expiring{held}
	}
	return held
}

// FencingToken is larger than that of every earlier lease.
func (held fenced) FencingToken() int64 { return held.token }

// FencingToken is larger than that of every earlier lease.
func (held both) FencingToken() int64 { return held.token }

// ValidUntil returns the moment before the server last heard of the holder, as far as the
// holder knows, plus the TTL.
func (held expiring) ValidUntil() time.Time { return held.until.Get() }

// Extend makes the lease valid for ttl from now on, at least 1 ms.
func (held expiring) Extend(ctx context.Context, ttl time.Duration) error {
	ttl, err := validity.TTL(ttl)
	if err != nil {
		return fmt.Errorf("extend %q: %w", held.name, err)
	}
	if held.over {
		return strategies.ErrNotHeld
	}
	watched := held.unhear != nil
	held.deaf()
	err = held.silence(ctx, ttl)
	if ttl != held.locker.config.TTL && !held.locker.sql.transaction {
		held.session.altered = true // it lasts for the session
	}
	if held.gone() {
		held.tellLost()
	} else if watched {
		held.hear()
	}
	switch {
	case err == nil:
		return nil
	case held.gone():
		return fmt.Errorf("extend %q: %w: %w", held.name, strategies.ErrNotHeld, because(ctx, err))
	}
	return fmt.Errorf("extend %q: %w", held.name, because(ctx, err))
}

// gone says whether the lock is lost: with its session, or with its transaction, which ends
// with any error.
func (held *lease) gone() bool {
	conn := held.session.conn.PgConn()
	return conn.IsClosed() || held.locker.sql.transaction && conn.TxStatus() != 'T'
}

// silence has the server let the holder be silent for ttl from now on.
func (held *lease) silence(ctx context.Context, ttl time.Duration) error {
	sent := time.Now()
	if _, err := held.session.conn.Exec(ctx, held.locker.sql.silent(ttl)); err != nil {
		return err
	}
	held.until.Set(sent.Add(ttl))
	return nil
}

// Release gives the lock up. It ends the lease in any case: when it fails it ends the
// connection, and the server frees the lock when it notices that.
func (held *lease) Release(ctx context.Context) error {
	if held.over {
		return strategies.ErrNotHeld
	}
	held.over = true
	held.deaf()
	l, s := held.locker, held.session
	defer l.put(s)
	if held.gone() { // as the watch or an extension has found
		s.altered = true
		return strategies.ErrNotHeld
	}
	freed, err := held.unlock(ctx)
	switch {
	case err == nil && freed:
		return nil
	case err == nil, ended(err):
		s.altered = true
		return strategies.ErrNotHeld
	}
	s.altered = true
	return fmt.Errorf("unlock %q: %w", held.name, because(ctx, err))
}

func (held *lease) unlock(ctx context.Context) (freed bool, err error) {
	conn, sql := held.session.conn, held.locker.sql
	if sql.transaction {
		tag, err := conn.Exec(ctx, sql.unlock)
		return tag.String() == "COMMIT", err // of a transaction that failed it is ROLLBACK
	}
	err = conn.QueryRow(ctx, sql.unlock, held.argument()).Scan(&freed)
	return freed, err
}

// Lost returns a channel that is closed once the session is known to have ended without a
// release. It knows only what this side of the connection hears: nothing of a silent network
// until TCP gives up.
func (held *lease) Lost() <-chan struct{} {
	if held.lost == nil {
		held.lost = make(chan struct{})
		if !held.over {
			held.hear()
		}
	}
	return held.lost
}

// hear begins to watch for the session's end.
func (held *lease) hear() {
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), listening{}, true))
	heard := make(chan struct{})
	conn := held.session.conn.PgConn()
	go func() {
		defer close(heard)
		for ctx.Err() == nil {
			_ = conn.WaitForNotification(ctx) // the message does not matter
			if conn.IsClosed() {
				held.tellLost()
				return
			}
		}
	}()
	held.unhear = func() {
		cancel()
		<-heard
	}
}

// deaf ends the watch.
func (held *lease) deaf() {
	if held.unhear != nil {
		held.unhear()
		held.unhear = nil
	}
}

func (held *lease) tellLost() {
	if held.lost == nil {
		return
	}
	select {
	case <-held.lost:
	default:
		close(held.lost)
	}
}
