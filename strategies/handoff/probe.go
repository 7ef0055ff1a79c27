package handoff

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// probe does once to a lock of its own what is done to those of others, so that a right
// that is missing shows at once.
func (l *Locker) probe(ctx context.Context, key string) error {
	l.mu.Lock()
	ln := l.line(key)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		ln.forget()
	}()
	if err := l.listen(ctx, ln); err != nil {
		return err
	}
	lock := ln.queue + ":" + l.ids.process // in the slot that it listens for
	on := &names{lock, lock + ":queue", ln.base}
	first, second, short := l.ids.next(), l.ids.next(), leastTTL.Milliseconds()
	if _, _, err := l.redis.take(ctx, on, l.ids.process, first, short); err != nil {
		return err
	}
	for _, step := range []struct {
		script
		args []any
	}{
		{queueScript, []any{second, short, "again"}},
		{checkScript, []any{"", l.entry(second)}},
		{extendScript, []any{first, short}},
		{releaseScript, []any{first, 0, ""}},
		{leaveScript, []any{first, l.entry(second)}},
	} {
		if _, err := l.redis.run(ctx, step.script, on, l.ids.process, step.args...); err != nil {
			return err
		}
	}
	_, err := l.redis.follow(ctx, on.queue, first)
	message := redis.NewIntCmd(ctx, "spublish", on.base+l.ids.process, "")
	return errors.Join(err, l.redis.conn.Send(ctx, message), message.Err())
}
