package locktest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// quorumLock asks all nodes at a time until a majority is its.
type quorumLock struct {
	faults
	config   goredis.Config
	instance string
	last     atomic.Int64
	closed   atomic.Bool
}

func newQuorumLock(f faults, config goredis.Config) *quorumLock {
	return &quorumLock{faults: f, config: config, instance: uuid.NewString()}
}

func (l *quorumLock) needed() int {
	n := len(l.config.Nodes) / 2
	if l.faults["half"] {
		return n
	}
	return n + 1
}

// each counts the nodes for which do is true.
func (l *quorumLock) each(do func(goredis.Client) bool) int {
	var count atomic.Int64
	var all sync.WaitGroup
	for _, node := range l.config.Nodes {
		all.Go(func() {
			if do(node.Client) {
				count.Add(1)
			}
		})
	}
	all.Wait()
	return int(count.Load())
}

func (l *quorumLock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	lease := &quorumLease{lock: l, name: l.config.Key(key)}
	for {
		l.config.Probe.Attempt()
		// A token of its own for each round, since what is late of one could else count
		// in another.
		lease.token, lease.freed, lease.released = fmt.Sprint(l.instance, l.last.Add(1)), 0, false
		lease.until = time.Now().Add(l.config.TTL)
		votes := l.each(func(client goredis.Client) bool {
			return client.SetNX(ctx, lease.name, lease.token, l.config.TTL).Val()
		})
		if votes >= l.needed() && time.Now().Before(lease.until) {
			return lease, nil
		}
		_ = lease.Release(context.WithoutCancel(ctx))
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d nodes: %w", votes, len(l.config.Nodes), ctx.Err())
		case <-time.After(time.Duration(1+rand.IntN(10)) * time.Millisecond):
		}
	}
}

func (l *quorumLock) Close() error {
	l.closed.Store(true)
	return nil
}

var quorumRelease = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

type quorumLease struct {
	lock        *quorumLock
	name, token string
	until       time.Time
	freed       int // nodes
	released    bool
}

func (lease *quorumLease) ValidUntil() time.Time { return lease.until }

// Release may be repeated: what it has freed before counts.
func (lease *quorumLease) Release(ctx context.Context) error {
	var failed atomic.Int64
	lease.freed += lease.lock.each(func(client goredis.Client) bool {
		n, err := quorumRelease.Run(ctx, client, []string{lease.name}, lease.token).Int()
		if err != nil {
			failed.Add(1)
		}
		return n == 1
	})
	switch needed := lease.lock.needed(); {
	case lease.freed+int(failed.Load()) < needed || lease.released:
		return strategies.ErrNotHeld
	case lease.freed < needed:
		return fmt.Errorf("%d of %d nodes freed it, and %d failed", lease.freed, len(lease.lock.config.Nodes),
			failed.Load())
	}
	lease.released = true
	return nil
}
