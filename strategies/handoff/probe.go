package handoff

import (
	"context"
	"time"
)

// probe runs each command of the lock once, on a separate lock, so that a missing right is found before the first
// Acquire.
func (l *Locker) probe(ctx context.Context, key string) error {
	l.mu.Lock()
	lq := l.localQueue(key, l.config.TTL)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		lq.forget()
	}()
	if err := l.listen(ctx, lq); err != nil {
		return err
	}
	lock := lq.lock + ":" + l.ids.process
	if l.redis.cluster != nil && !tagged(lq.lock) {
		lock = lq.queue + ":" + l.ids.process // a name in the hash slot of the channel
	}
	probe := namesOf(lock, lq.base, false)
	probe.base = lq.base
	const short = 10 * time.Second // the TTL of the probe's lock, in case the probe does not finish
	on, ttl := &probe, milliseconds(short)
	first, second, third := l.ids.next(on.lock), l.ids.next(on.lock), l.ids.next(on.lock)
	run := func(s *script, args ...any) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := l.redis.run(ctx, s, on, args...)
			return err
		}
	}
	do := func(words ...any) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := l.redis.do(ctx, words...)
			return err
		}
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { _, _, err := l.redis.take(ctx, on, &first, ttl, l.tokens); return err },
		run(queueScript, second, ttl, "again"),
		run(queueScript, third, ttl, "front"),
		run(leaveScript, nearEnds, entry(third, short)),
		run(checkScript, "", entry(second, short)),
		run(extendScript, first, ttl),
		run(releaseScript, first, 0, ""),
		run(leaveScript, wholeQueue, second),
		func(ctx context.Context) error { _, err := l.redis.free(ctx, on, &second); return err },
		do("rpushx", on.queue, first),
		do("lrange", on.queue, 0, -1),
		do("del", on.lock, on.queue),
		do("ping"),
		do("spublish", on.base+l.ids.process, ""),
	} {
		if _, err := l.persist(ctx, step); err != nil {
			return err
		}
	}
	return nil
}
