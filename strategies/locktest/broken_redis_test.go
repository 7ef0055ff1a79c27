package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// fault is what is wrong with a redisLock. The zero fault is nothing: that lock is
// correct, and small enough to be read at once.
type fault struct {
	polls  bool      // no fault: waiters poll instead of subscribing, which is quicker to test
	script [2]string // this text of a script is replaced by that

	everyNth        int64 // of the waits is granted what another holds
	sameToken       bool  // all holders of an instance have one token
	ownRecord       bool  // a lease remembers by itself that it was released
	lateIsFine      bool  // a release of what is lost returns nil
	validFromReply  bool  // validity is counted from the reply
	tryWaits        bool  // a try-lock tries for a while
	noRecheck       bool  // no look after subscribing
	noResubscribe   bool  // no look after a reconnection
	registers       bool  // waiters stand in a set, which they leave when granted
	keepsSubscribed bool  // a wait that is cancelled stays subscribed until Close
	keepsConnection bool  // a wait that is cancelled leaves its connection open
	keepsGoroutine  bool  // a wait that is cancelled leaves a goroutine
	noSettling      bool  // an acquire without an answer is not taken back
	blind           bool  // a release deletes whatever is there
	firstRelease    bool  // the first release of a re-entrant owner frees
	noRenewal       bool  // the watchdog sleeps
	renewsForEver   bool  // the watchdog goes on after Release
	renewsBlindly   bool  // the watchdog does not ask whose lock it renews
	renewsFirstOnly bool  // the watchdog knows an instance's first lease only
	outlivesClose   bool  // the watchdog goes on after Close
	lockersTTL      bool  // a call's TTL is ignored
	anyTTL          bool  // a call's TTL below a millisecond means the Locker's
	neverShorter    bool  // a call's TTL counts only where it is longer than the Locker's
	renewsAll       bool  // the watchdog renews leases with a TTL of their own too
	evalsha         bool  // a release relies on the script cache
	key             func(string) string

	serverFault
}

const (
	// KEYS: lock, fence   ARGV: owner, TTL in ms, "again" if the owner may hold already
	acquireText = `
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and (owner ~= ARGV[1] or ARGV[3] ~= 'again') then
  return {0, redis.call('PTTL', KEYS[1])}
end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'count', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {1, redis.call('INCR', KEYS[2])}`
	// KEYS: lock   ARGV: owner, channel
	releaseText = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
if redis.call('HINCRBY', KEYS[1], 'count', -1) > 0 then return 1 end
redis.call('PUBLISH', ARGV[2], '')
return redis.call('DEL', KEYS[1])`
	// KEYS: lock   ARGV: owner, TTL in ms
	renewText = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`
)

// redisLock is a hash and a channel on which its release is told; each waiter has
// a subscription of its own.
type redisLock struct {
	fault
	config                  goredis.Config
	client                  redis.UniversalClient
	instance                string
	acquire, release, renew *redis.Script
	watches                 bool

	last, waits atomic.Int64
	watching    atomic.Bool
	closing     context.Context
	close       context.CancelFunc
	renewing    sync.WaitGroup
	mu          sync.Mutex
	kept        []*redis.PubSub
	forgotten   []redis.UniversalClient
}

func newRedisLock(f fault, watches bool, config goredis.Config) (*redisLock, error) {
	if err := config.Validate(1); err != nil {
		return nil, err
	}
	l := &redisLock{fault: f, config: config, client: config.Nodes[0].Client, instance: uuid.NewString(), watches: watches}
	l.closing, l.close = context.WithCancel(context.Background())
	l.connect()
	edited := f.script == [2]string{}
	script := func(text string) *redis.Script {
		if from := f.script[0]; from != "" && strings.Contains(text, from) {
			text, edited = strings.Replace(text, from, f.script[1], 1), true
		}
		return redis.NewScript(text)
	}
	l.acquire, l.release, l.renew = script(acquireText), script(releaseText), script(renewText)
	if !edited {
		return nil, fmt.Errorf("no script contains %q", f.script[0])
	}
	return l, nil
}

func (l *redisLock) Prepare(ctx context.Context, _ []string) error {
	return errors.Join(l.acquire.Load(ctx, l.client).Err(), l.release.Load(ctx, l.client).Err())
}

func (l *redisLock) name(key string) string {
	if l.key != nil {
		key = l.key(key)
	}
	if l.tags {
		return "{" + l.config.Key(key) + "}"
	}
	return l.config.Key(key)
}

func (l *redisLock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.get(ctx, l.lease(key, l.config.TTL))
}

func (l *redisLock) lease(key string, ttl time.Duration) *redisLease {
	token := l.instance
	if !l.sameToken {
		token = fmt.Sprint(l.instance, ":", l.last.Add(1))
	}
	return &redisLease{lock: l, name: l.name(key), token: token, ttl: ttl}
}

// termed returns a lease with a TTL of its own, or by some fault with another.
func (l *redisLock) termed(key string, ttl time.Duration) (*redisLease, error) {
	switch {
	case l.lockersTTL || l.anyTTL && ttl < time.Millisecond:
		ttl = l.config.TTL
	case ttl < time.Millisecond:
		return nil, fmt.Errorf("acquire %q: a TTL of %v is below a millisecond", key, ttl)
	case l.neverShorter:
		ttl = max(ttl, l.config.TTL)
	}
	lease := l.lease(key, ttl)
	lease.unwatched = !l.renewsAll
	return lease, nil
}

func (l *redisLock) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	lease, err := l.termed(key, ttl)
	if err != nil {
		return nil, err
	}
	return l.get(ctx, lease)
}

func (l *redisLock) TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	lease, err := l.termed(key, ttl)
	if err != nil {
		return nil, err
	}
	return l.tryOnce(ctx, lease)
}

func (l *redisLock) AcquireAs(ctx context.Context, key, owner string) (strategies.Lease, error) {
	lease := l.lease(key, l.config.TTL)
	lease.token, lease.again = l.instance+":as:"+owner, true
	return l.get(ctx, lease)
}

func (l *redisLock) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.tryOnce(ctx, l.lease(key, l.config.TTL))
}

func (l *redisLock) tryOnce(ctx context.Context, lease *redisLease) (strategies.Lease, error) {
	got, _, err := l.try(ctx, lease)
	for n := 0; l.tryWaits && n < 3 && !got && err == nil; n++ {
		time.Sleep(time.Millisecond)
		got, _, err = l.try(ctx, lease)
	}
	if err == nil && !got {
		err = strategies.ErrHeld
	}
	if err != nil {
		return nil, err
	}
	return lease, nil
}

func (l *redisLock) Close() error {
	if !l.outlivesClose {
		l.close()
		l.renewing.Wait()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sub := range l.kept {
		_ = sub.Close()
	}
	l.kept = nil
	l.close()
	l.forget()
	return nil
}

func (l *redisLock) get(ctx context.Context, lease *redisLease) (strategies.Lease, error) {
	got, left, err := l.try(ctx, lease)
	if err == nil && !got {
		err = l.wait(ctx, lease, left)
	}
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// wait parks, and tries again for each event of its subscription: a message, and
// that it has begun, or begun anew on another connection.
func (l *redisLock) wait(ctx context.Context, lease *redisLease, left time.Duration) error {
	if l.everyNth > 0 && l.waits.Add(1)%l.everyNth == 0 {
		lease.planted = true
		lease.renewed(time.Now().Add(l.config.TTL)) // so it says
		return nil
	}
	if l.polls {
		return l.poll(ctx, lease)
	}
	if l.registers {
		l.client.SAdd(ctx, lease.name+":waiters", lease.token)
	}
	sub := l.client.Subscribe(ctx, lease.name+":freed")
	defer func() {
		if ctx.Err() == nil || !l.leaves(sub, lease) {
			_ = sub.Close()
		}
	}()
	events := sub.ChannelWithSubscriptions()
	timer := time.NewTimer(left)
	defer timer.Stop()
	for begun := false; ; {
		select {
		case event := <-events:
			if l.believed(ctx, event, lease) {
				return nil
			}
			_, isNews := event.(*redis.Subscription)
			ignored := isNews && (l.noRecheck && !begun || l.noResubscribe && begun)
			begun = true
			if ignored {
				continue
			}
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %q: %w", lease.name, ctx.Err())
		}
		got, left, err := l.try(ctx, lease)
		if got && l.registers {
			l.client.SRem(ctx, lease.name+":waiters", lease.token)
		}
		if got || err != nil {
			return err
		}
		timer.Reset(left)
	}
}

func (l *redisLock) poll(ctx context.Context, lease *redisLease) error {
	for {
		select {
		case <-time.After(time.Duration(1+rand.IntN(5)) * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("poll %q: %w", lease.name, ctx.Err())
		}
		if got, _, err := l.try(ctx, lease); got || err != nil {
			return err
		}
	}
}

// leaves says whether a wait that was cancelled leaves its subscription open, by
// some fault.
func (l *redisLock) leaves(sub *redis.PubSub, lease *redisLease) bool {
	switch {
	case l.keepsSubscribed:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.kept = append(l.kept, sub)
		return true
	case l.keepsConnection:
		forgotten := redis.NewUniversalClient(l.config.Nodes[0].Options)
		forgotten.Ping(context.Background())
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forgotten = append(l.forgotten, forgotten) // else the collector closes it
	case l.keepsGoroutine:
		go func() { time.Sleep(time.Minute) }()
	}
	return false
}

func (l *redisLock) try(ctx context.Context, lease *redisLease) (got bool, left time.Duration, err error) {
	if l.closing.Err() != nil {
		return false, 0, strategies.ErrClosed
	}
	l.config.Probe.Attempt()
	asked := time.Now()
	mode := ""
	if lease.again {
		mode = "again"
	}
	reply, err := l.acquire.Run(ctx, l.client, []string{lease.name, lease.name + ":fence"},
		lease.token, lease.ttl.Milliseconds(), mode).Int64Slice()
	if l.isYes(err) {
		reply, err = []int64{1, 0}, nil
	}
	if err != nil {
		switch {
		case !indeterminate.MayHaveRun(err):
		case l.watchesDoubt:
			lease.watch()
		case !l.noSettling:
			settle, done := indeterminate.Settle(ctx)
			defer done()
			_, _ = lease.give(settle)
		}
		return false, 0, fmt.Errorf("acquire %q: %w", lease.name, indeterminate.Because(ctx, err))
	}
	if reply[0] == 0 {
		return false, time.Duration(max(reply[1], 1)) * time.Millisecond, nil
	}
	if l.validFromReply {
		asked = time.Now()
	}
	if !l.handsOutLate && !time.Now().Before(asked.Add(lease.ttl)) {
		return false, time.Millisecond, nil
	}
	lease.fence = reply[1]
	lease.renewed(asked.Add(lease.ttl))
	if l.watches && !lease.unwatched && (!l.renewsFirstOnly || l.watching.CompareAndSwap(false, true)) {
		lease.watch()
	}
	l.remember(ctx, lease.name)
	return true, 0, nil
}
