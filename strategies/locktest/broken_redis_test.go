package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	within "github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pending"
)

const (
	// acquireText is the script of an acquisition. The KEYS are the lock and the counter of the fencing tokens. The ARGV
	// are the owner, the TTL in ms, and "again" if the owner may already hold the lock.
	acquireText = `
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and (owner ~= ARGV[1] or ARGV[3] ~= 'again') then
  return {0, redis.call('PTTL', KEYS[1])}
end
redis.call('HSET', KEYS[1], 'owner', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'count', 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {1, redis.call('INCR', KEYS[2])}`
	// releaseText is the script of a release. KEYS[1] is the lock. The ARGV are the owner and the channel that announces
	// the release.
	releaseText = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
if redis.call('HINCRBY', KEYS[1], 'count', -1) > 0 then return 1 end
redis.call('PUBLISH', ARGV[2], '')
return redis.call('DEL', KEYS[1])`
	// renewText is the script of a renewal. KEYS[1] is the lock. The ARGV are the owner and the TTL in ms.
	renewText = `
if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`
)

// edits maps the name of a fault to the change that plants it in the scripts: the first text is replaced by the second.
var edits = map[string][2]string{
	"noTTL":          {"redis.call('PEXPIRE', KEYS[1], ARGV[2])\nreturn {1", "return {1"},
	"halfTTL":        {"ARGV[2])\nreturn {1", "ARGV[2] / 2)\nreturn {1"},
	"extendsNothing": {"return redis.call('PEXPIRE', KEYS[1], ARGV[2])", "return 1"},
	"extendsBlindly": {
		"if redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then return 0 end\nreturn redis.call('PEXPIRE'",
		"return redis.call('PEXPIRE'",
	},
	"tokensGoBack":  {"redis.call('INCR', KEYS[2])", "redis.call('INCR', KEYS[2]) % 7"},
	"tokensAreTime": {"redis.call('INCR', KEYS[2])", "redis.call('TIME')[1] * 1000000 + redis.call('TIME')[2]"},
	"writesFirst":   {"local owner", "redis.call('INCRBY', KEYS[2], 0) local owner"}, // so that even the check is refused
	"addsUp": {
		"return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
		"return redis.call('PEXPIRE', KEYS[1], ARGV[2] + redis.call('PTTL', KEYS[1]))",
	},
	"expiresLater": {"redis.call('PEXPIRE', KEYS[1], ARGV[2])\nreturn {1", "return {1"},
	// namesIt is not a fault: the message that announces a release may contain the lock's name.
	"namesIt": {"ARGV[2], ''", "ARGV[2], KEYS[1]"},
}

// redisLock is a lock in a Redis hash, with the planted defects. A release is announced on a channel, to which each
// waiter subscribes separately.
type redisLock struct {
	defects
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
	releases    pending.Releases

	mu        sync.Mutex
	toClose   []io.Closer // closed by Close
	forgotten []redis.UniversalClient
	address   string // the address to which the server's name resolved first
	names     map[string]bool
}

func newRedisLock(f defects, watches bool, config goredis.Config) (*redisLock, error) {
	if err := config.Validate(1); err != nil {
		return nil, err
	}
	l := &redisLock{
		defects: f, config: config, client: config.Nodes[0].Client,
		instance: uuid.NewString(), watches: watches, names: map[string]bool{},
	}
	l.closing, l.close = context.WithCancel(context.Background())
	l.connect()
	script := func(text string) *redis.Script {
		for name, edit := range edits {
			if f[name] {
				text = strings.Replace(text, edit[0], edit[1], 1)
			}
		}
		return redis.NewScript(text)
	}
	l.acquire, l.release, l.renew = script(acquireText), script(releaseText), script(renewText)
	return l, nil
}

func (l *redisLock) Prepare(ctx context.Context, _ []string) error {
	return errors.Join(l.acquire.Load(ctx, l.client).Err(), l.release.Load(ctx, l.client).Err())
}

func (l *redisLock) name(key string) string {
	if l.defects["ignoresPrefix"] {
		return key
	}
	if l.defects["hashTag"] {
		key = hashTag(key)
	}
	if l.defects["tags"] {
		return "{" + l.config.Key(key) + "}"
	}
	return l.config.Key(key)
}

func (l *redisLock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.get(ctx, l.lease(key, l.config.TTL))
}

func (l *redisLock) lease(key string, ttl time.Duration) *redisLease {
	token := l.instance
	if !l.defects["sameToken"] {
		token = fmt.Sprint(l.instance, ":", l.last.Add(1))
	}
	return &redisLease{lock: l, name: l.name(key), token: token, ttl: ttl, began: time.Now()}
}

// termed returns a lease of key that has not been requested yet. Its TTL is ttl, unless a fault replaces it. A TTL
// below a millisecond is an error.
func (l *redisLock) termed(key string, ttl time.Duration) (*redisLease, error) {
	switch {
	case l.defects["lockersTTL"] || l.defects["anyTTL"] && ttl < time.Millisecond:
		ttl = l.config.TTL
	case ttl < time.Millisecond:
		return nil, fmt.Errorf("acquire %q: a TTL of %v is below a millisecond", key, ttl)
	case l.defects["neverShorter"]:
		ttl = max(ttl, l.config.TTL)
	}
	lease := l.lease(key, ttl)
	lease.unwatched = !l.defects["renewsAll"]
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
	for n := 0; l.defects["tryWaits"] && n < 3 && !got && err == nil; n++ {
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
	if !l.defects["outlivesClose"] {
		l.close()
		l.renewing.Wait()
	}
	l.close()
	l.releases.Close()
	l.forget()
	if l.defects["leavesGoroutine"] {
		go func() { time.Sleep(time.Minute) }()
	}
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

// wait subscribes to the lock's channel and tries the lock after each message and each confirmation of the
// subscription. go-redis subscribes again after a reconnect, which causes another confirmation. left is the remaining
// time of the holder's lease.
func (l *redisLock) wait(ctx context.Context, lease *redisLease, left time.Duration) error {
	if l.defects["everyFifth"] && l.waits.Add(1)%5 == 0 {
		lease.planted = true
		lease.renewed(time.Now().Add(l.config.TTL)) // the validity that the lease reports
		return nil
	}
	if l.defects["polls"] {
		return l.poll(ctx, lease)
	}
	if l.defects["registers"] {
		l.client.SAdd(ctx, lease.name+":waiters", lease.token)
	}
	sub := l.client.Subscribe(ctx, lease.name+":freed")
	defer func() {
		if ctx.Err() == nil || !l.leaves(sub, lease) {
			_ = sub.Close()
		}
	}()
	events := sub.ChannelWithSubscriptions()
	timer := time.NewTimer(l.sleeps(left))
	defer timer.Stop()
	for begun := false; ; {
		select {
		case event := <-events:
			if l.believed(ctx, event, lease) {
				return nil
			}
			_, isNews := event.(*redis.Subscription)
			ignored := isNews && (l.defects["noRecheck"] && !begun || l.defects["noResubscribe"] && begun)
			begun = true
			if ignored {
				continue
			}
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %q: %w", lease.name, ctx.Err())
		}
		got, left, err := l.try(ctx, lease)
		if got && l.defects["registers"] {
			l.client.SRem(ctx, lease.name+":waiters", lease.token)
		}
		if got || err != nil {
			return err
		}
		timer.Reset(l.sleeps(left))
	}
}

// sleeps returns how long a waiter sleeps without a message. left is the remaining time of the holder's lease. A
// correct waiter sleeps for at most a second, because its subscription may be at a former primary.
func (l *redisLock) sleeps(left time.Duration) time.Duration {
	switch {
	case l.defects["trustsMessages"]:
		return time.Hour
	case l.defects["noRecheck"] || l.defects["noResubscribe"] || l.defects["staysBehind"]:
		return left
	}
	return min(left, time.Second)
}

func (l *redisLock) poll(ctx context.Context, lease *redisLease) error {
	for {
		select {
		case <-time.After(time.Duration(5+rand.IntN(15)) * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("poll %q: %w", lease.name, ctx.Err())
		}
		if got, _, err := l.try(ctx, lease); got || err != nil {
			return err
		}
	}
}

// leaves applies the faults of a cancelled wait, such as a connection that it leaves open. It reports whether sub must
// stay open because of a fault.
func (l *redisLock) leaves(sub *redis.PubSub, lease *redisLease) bool {
	switch {
	case l.defects["keepsSubscribed"]:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.toClose = append(l.toClose, sub)
		return true
	case l.defects["keepsConnection"]:
		forgotten := redis.NewUniversalClient(l.config.Nodes[0].Options)
		forgotten.Ping(context.Background())
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forgotten = append(l.forgotten, forgotten) // otherwise the garbage collector would close its connections
	case l.defects["keepsGoroutine"]:
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
	reply, err := answered(ctx, l, func() ([]int64, error) {
		return l.acquire.Run(ctx, l.client, []string{lease.name, lease.name + ":fence"},
			lease.token, lease.ttl.Milliseconds(), mode).Int64Slice()
	})
	if l.isYes(err) {
		reply, err = []int64{1, 0}, nil
	}
	if l.defects["expiresLater"] && err == nil && reply[0] == 1 {
		if err := l.client.PExpire(ctx, lease.name, lease.ttl).Err(); err != nil && !l.defects["forgives"] {
			return false, 0, fmt.Errorf("acquire %q: %w", lease.name, err)
		}
	}
	if err != nil {
		switch {
		case !indeterminate.MayHaveRun(err):
		case l.defects["watchesDoubt"]:
			lease.watch()
		case lease.again:
			settle, done := indeterminate.Settle(ctx)
			defer done()
			_, _ = lease.give(settle)
		case !l.defects["noSettling"]:
			l.releases.GiveBack(ctx, &pending.Release{Send: lease.back().Send, Asked: pending.Asked(err), TTL: lease.ttl})
		}
		return false, 0, fmt.Errorf("acquire %q: %w", lease.name, indeterminate.Because(ctx, err))
	}
	if reply[0] == 0 {
		return false, time.Duration(max(reply[1], 1)) * time.Millisecond, nil
	}
	switch {
	case l.defects["validFromReply"]:
		asked = time.Now()
	case l.defects["validFromWait"]:
		asked = lease.began
	}
	if !l.defects["handsOutLate"] && !time.Now().Before(asked.Add(lease.ttl)) {
		return false, time.Millisecond, nil
	}
	lease.fence = reply[1]
	lease.renewed(asked.Add(lease.ttl))
	if l.watches && !lease.unwatched && (!l.defects["renewsFirstOnly"] || l.watching.CompareAndSwap(false, true)) {
		lease.watch()
	}
	l.remember(ctx, lease.name)
	return true, 0, nil
}

// answered returns the result of call. If ctx ends first, it returns at once with an error. With the faults
// waitsForAnswers and tellsLoss, it always waits for the result.
func answered[T any](ctx context.Context, l *redisLock, call func() (T, error)) (T, error) {
	if l.defects["waitsForAnswers"] || l.defects["tellsLoss"] {
		return call()
	}
	return within.Get(ctx, &l.releases.Calls, call)
}

// hashTag returns the part of key from which a cluster computes the slot.
func hashTag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			return tag
		}
	}
	return key
}
