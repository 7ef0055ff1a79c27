package handoff

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// probe runs each command of the lock once, on a lock of its own, so that a missing right
// shows at once.
func (l *Locker) probe(ctx context.Context, key string) error {
	l.mu.Lock()
	ln := l.line(key, l.config.TTL)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		ln.forget()
	}()
	if err := l.listen(ctx, ln); err != nil {
		return err
	}
	lock := ln.lock + ":" + l.ids.process
	if _, tagged := tagOf(ln.lock); l.redis.cluster != nil && !tagged {
		lock = ln.queue + ":" + l.ids.process // in the slot of the channel
	}
	probe := namesOf(lock, ln.base, false)
	probe.base = ln.base
	const short = 10 * time.Second // as long as this may take
	on, ttl := &probe, milliseconds(short)
	first, second, third := l.ids.next(on.lock), l.ids.next(on.lock), l.ids.next(on.lock)
	if _, _, err := l.redis.take(ctx, on, l.ids.process, first, ttl); err != nil {
		return err
	}
	for _, step := range []struct {
		script
		args []any
	}{
		{queueScript, []any{second, ttl, "again"}},
		{queueScript, []any{third, ttl, "front"}},
		{leaveScript, []any{entry(third, short)}},
		{checkScript, []any{"", entry(second, short)}},
		{extendScript, []any{first, ttl}},
		{releaseScript, []any{first, 0, ""}},
		{leaveScript, []any{second}},
	} {
		if _, err := l.redis.run(ctx, step.script, on, l.ids.process, step.args...); err != nil {
			return err
		}
	}
	if _, err := l.redis.follow(ctx, on.queue, first); err != nil {
		return err
	}
	for _, words := range [][]any{
		{"lrange", on.queue, 0, -1}, {"del", on.lock, on.queue}, {"ping"}, {"spublish", on.base + l.ids.process, ""},
	} {
		command := redis.NewCmd(ctx, words...)
		if err := errors.Join(l.redis.conn.Send(ctx, command), command.Err()); err != nil {
			return err
		}
	}
	return nil
}
