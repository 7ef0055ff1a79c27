package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/strategies/internal/validity"
)

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
