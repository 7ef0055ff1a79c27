package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// refusal is a setting under which a server refuses writes.
type refusal struct {
	setting, value string
	every          bool // refuses every write, not only those that need memory
}

// refusedWrites makes the servers refuse writes while a lock is passed on: once as if replicas
// were missing, once as if memory were full.
func refusedWrites(s *stage) {
	s.expiring = true
	b, all := s.book(), s.several(3, s.lasting())
	s.release(s.acquire(all[0], "key"))
	for _, r := range []refusal{{"min-replicas-to-write", "9", true}, {"maxmemory", "1", false}} {
		s.refuse(b, all, r)
	}
	s.recovers(all...)
}

func (s *stage) refuse(b *book, all []*instance, r refusal) {
	leases := b.fill(all[0], s.lasting())
	waiting := b.queue(all[1:], 4, time.Millisecond, s.lasting())
	relieve := s.set(r.setting, r.value)
	defer relieve()
	before := b.count()
	b.leave(leases[0])
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	err := leases[0].Release(ctx)
	cancel()
	time.Sleep(50 * time.Millisecond)
	if n := b.count() - before; n > 0 && r.every && err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		s.errorf("servers refused all writes, a release returned %q, and %d others were granted the lock", err, n)
	}
	relieve()
	if err != nil && !errors.Is(err, strategies.ErrNotHeld) {
		b.free(leases[0])
	}
	b.free(leases[1:]...)
	b.all(waiting, "writes are no longer refused")
}

// set changes a setting of the servers until undo is called.
func (s *stage) set(setting, value string) (undo func()) {
	type usual struct {
		redis.UniversalClient
		value string
	}
	var changed []usual
	undo = func() {
		for _, c := range changed {
			if err := c.ConfigSet(context.Background(), setting, c.value).Err(); err != nil {
				s.notJudged("set %s back: %w", setting, err)
			}
		}
		changed = nil
	}
	for _, o := range s.outside {
		was, err := o.ConfigGet(context.Background(), setting).Result()
		if err == nil {
			err = o.ConfigSet(context.Background(), setting, value).Err()
		}
		if err != nil {
			undo()
			s.notTried("the servers' settings cannot be changed: %v", err)
		}
		changed = append(changed, usual{o.UniversalClient, was[setting]})
	}
	return undo
}
