// Package semaphore implements Redisson's RSemaphore, wire-compatible with it. The integer KEY counts the free permits.
// With Expirable the sorted set {KEY}:timeout contains the deadline of each permit.
//
//  1. Acquire runs one script, which decrements KEY by DECR if a permit is free. The first acquire sets KEY to the
//     number of permits. With Expirable the script first frees the permits that have expired (ZREMRANGEBYSCORE and
//     INCRBY), and adds the deadline of the new permit (ZADD).
//  2. A waiter subscribes to the channel redisson_sc:{KEY}, tries again, and parks until a message arrives, for at most
//     the TTL. With Expirable it parks no longer than until the next deadline.
//  3. Release runs one script, which increments KEY by INCRBY and publishes the result. With Expirable it first removes
//     the deadline of the permit (ZREM).
//
// A message wakes as many waiters of each process as it reports free permits, the longest parked first.
//
// semaphore.md describes guarantees, costs and failure modes.
package semaphore

import (
	"context"
	"crypto/rand"
	_ "embed" // the text
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/pending"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/internal/validity"
	"github.com/lockbench/lockbench/strategies/lock"
)

//go:embed semaphore.md
var doc string

// Strategy describes the semaphore, for registration under its name.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:         doc,
		Name:        "semaphore",
		Format:      "Redisson RSemaphore",
		Summary:     "Redisson RSemaphore: a counter of N permits; a release publishes the free ones",
		Claims:      strategies.Claims{Exclusion: true},
		Nodes:       1,
		Keys:        []string{"{key}", "{key}:timeout"},
		Libraries:   []strategies.Library{{Language: "Java", Package: "org.redisson:redisson", Call: "getSemaphore"}},
		Persistent:  []string{"{key}"},
		Connections: strategies.Connections{PerInstance: 1},
	}), Defaults(), Open)
}

// Options are the options of the semaphore, as in semaphore:permits=4.
type Options struct {
	Permits int `opt:"permits" help:"number of clients that may hold one key at a time"`
	// Expirable permits have the data layout of Redisson's RPermitExpirableSemaphore: each permit has an id with a
	// deadline in a sorted set, {key}:timeout. The next acquire frees permits that are past their deadlines. The layout
	// follows the public sources of Redisson 3. It has not been tested with Redisson 4 and is not claimed to be
	// compatible.
	Expirable bool   `opt:"expirable" help:"permits expire after the TTL, so that the permit of a dead holder becomes free again"`
	Sharded   string `opt:"sharded" help:"on a cluster: publish releases by SPUBLISH (on), by PUBLISH (off), or by SPUBLISH where the servers support it (auto)"`
}

// Defaults returns the default options: 4 permits that do not expire, and sharded is auto, as in Redisson.
func Defaults() Options { return Options{Permits: 4, Sharded: redisson.ShardedAuto} }

// Validate rejects a semaphore without permits, and an unknown value of sharded.
func (o Options) Validate() error {
	var none error
	if o.Permits < 1 {
		none = fmt.Errorf("permits must be at least 1, not %d", o.Permits)
	}
	return errors.Join(none, redisson.ValidSharded(o.Sharded))
}

// Refine adapts the Info to the options. It sets the claim recovery only for expirable permits, and adds a caveat for
// all others.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Capacity = o.Permits
	info.Claims.Recovery = o.Expirable
	info.Caveat = ""
	commands := []string{"get", "set", "incrby", "decr"}
	if o.Expirable {
		info.Libraries, info.Format = nil, ""
		info.Summary = "N permits that expire after the TTL, in the data layout of RPermitExpirableSemaphore"
		commands = append(commands, "zadd", "zrange", "zrem", "zremrangebyscore", "zscore")
	} else {
		commands = append(commands, "exists")
	}
	info.Rights = redisson.Rights(commands...)
	info.Rights.Channels = []string{"redisson_sc:*{key}"}
	info.Limits = nil
	if !o.Expirable {
		info.Caveat = "the permit of a holder that crashes stays taken for ever"
		info.Limits = []strategies.Limit{{
			Check:   "cancelled release",
			Because: "Redis may have executed a release that got no reply, and a second release would add an extra permit",
		}}
	}
	return info
}

// Locker gives the clients of one process access to the semaphores. It implements strategies.Locker, Trier, Termed and
// Preparer.
type Locker struct {
	config   goredis.Config
	options  Options
	client   redis.UniversalClient
	notifier redisson.Notifier
	herald   *redisson.Herald
	releases pending.Releases
	closed   atomic.Bool

	instance [8]byte       // the random part of the permits' ids
	last     atomic.Uint64 // the number in the last id
}

// New returns a semaphore with the given number of permits for a service, on one Redis or Redis Cluster. Its permits
// are Expirable: they expire after the TTL. New sends no command to Redis. Its error joins the errors of all options.
// The caller must close the Locker before the client.
func New(client redis.UniversalClient, permits int, options ...lock.Option) (*lock.Locker, error) {
	with := Defaults()
	with.Permits, with.Expirable = permits, true
	return NewWith(client, with, options...)
}

// NewWith returns a semaphore for a service as New does, but with the given Options. Permits that are not Expirable
// never expire: the TTL has no effect, and their ValidUntil is the zero time.
func NewWith(client redis.UniversalClient, options Options, more ...lock.Option) (*lock.Locker, error) {
	return lock.Open([]redis.UniversalClient{client}, Open, options, more)
}

// Open returns a Locker on the only node of config, for use by lockbench. It sends no command to Redis.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("semaphore: %w", err)
	}
	config.TTL = config.TTL.Truncate(time.Millisecond)
	node := config.Nodes[0]
	l := &Locker{
		config: config, options: options, client: node.Client,
		notifier: redisson.NewNotifier(node, wakes, redisson.Flaws{}), herald: redisson.NewHerald(node, options.Sharded),
	}
	_, _ = rand.Read(l.instance[:]) // never fails
	return l, nil
}

// topic returns the topic on which the number of free permits is published.
func (l *Locker) topic(name string) redisson.Topic {
	return l.herald.Topic(name, redisson.Prefixed("redisson_sc", name))
}

// wakes returns how many waiters a message wakes: as many as it reports free permits. A message without a number wakes
// all waiters.
func wakes(free string) int {
	n, err := strconv.Atoi(free)
	if err != nil {
		return math.MaxInt
	}
	return n
}

// Prepare loads the scripts, opens the subscription connection, and creates each key's semaphore with its number of
// permits, if the semaphore does not exist yet.
func (l *Locker) Prepare(ctx context.Context, keys []string) error {
	load := func() error { return goredis.Load(ctx, l.client, prepareScript, acquireScript, releaseScript) }
	if err := l.releases.Calls.Do(ctx, load); err != nil {
		return err
	}
	if err := l.herald.Open(ctx, l.notifier); err != nil {
		return err
	}
	for _, key := range keys {
		name := l.config.Key(key)
		topic := l.topic(name)
		if err := l.releases.Calls.Do(ctx, func() error {
			_, err := redisson.Integer(prepareScript.Run(ctx, l.client, []string{name},
				l.options.Permits, topic.Channel, topic.Command()))
			return err
		}); err != nil {
			return fmt.Errorf("set up %q: %w", name, err)
		}
	}
	return nil
}

// Acquire waits until the caller has a permit, ctx ends or the Locker is closed.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.AcquireFor(ctx, key, l.config.TTL)
}

// TryAcquire makes one attempt and does not wait. It returns ErrHeld if no permit is free.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.TryAcquireFor(ctx, key, l.config.TTL)
}

// AcquireFor waits like Acquire for a permit that expires after ttl. If permits are not Expirable, ttl has no effect. A
// ttl below 1 ms is an error.
func (l *Locker) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	return l.acquire(ctx, key, ttl, false)
}

// TryAcquireFor makes one attempt to get a permit that expires after ttl, and does not wait.
func (l *Locker) TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	return l.acquire(ctx, key, ttl, true)
}

func (l *Locker) acquire(ctx context.Context, key string, ttl time.Duration, once bool) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	name := l.config.Key(key)
	held, err := l.take(ctx, name, ttl, once)
	switch {
	case err != nil:
		return nil, fmt.Errorf("acquire %q: %w", name, indeterminate.Because(ctx, err))
	case held == nil:
		return nil, strategies.ErrHeld
	}
	return held, nil
}

// If once is true, take makes one attempt, and returns nil if no permit is free. Otherwise it waits for a permit.
func (l *Locker) take(
	ctx context.Context, name string, ttl time.Duration, once bool,
) (held strategies.Lease, err error) {
	if ttl, err = validity.TTL(ttl); err != nil {
		return nil, err
	}
	if err := l.herald.Learn(ctx); err != nil {
		return nil, err
	}
	topic := l.topic(name)
	try := func() (taken bool, left time.Duration, err error) {
		held, left, err = l.try(ctx, name, topic, ttl)
		l.config.Probe.Attempt() // after the reply, so that tests know that Redis has executed each counted attempt
		return held != nil, left, err
	}
	taken, left, err := try()
	if once {
		return held, err
	}
	if err = validity.UnlessLate(err); err == nil && !taken {
		w := redisson.Waiting{
			Notifier: l.notifier, Topic: topic, Probe: l.config.Probe, Left: left,
			Brief: l.options.Expirable && ttl < l.config.TTL,
		}
		err = w.Wait(ctx, func() (bool, time.Duration, error) {
			taken, left, err := try()
			return taken, left, validity.UnlessLate(err)
		})
	}
	return held, err
}

// try makes one attempt. If no permit is free, it returns nil and the longest time to park: at most the TTL, because a
// permit that is taken later may expire sooner than the present ones. After validity.ErrLate the caller may try again.
func (l *Locker) try(ctx context.Context, name string, topic redisson.Topic, ttl time.Duration) (
	strategies.Lease, time.Duration, error,
) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if !l.options.Expirable {
		held := newLasting(permit{locker: l, name: name, topic: topic})
		got, err := l.askLasting(ctx, held)
		if err != nil || !got {
			return nil, l.config.TTL, err
		}
		return held, 0, nil
	}
	now := time.Now()
	ms, until := deadline(now, ttl)
	held := &expirable{permit: permit{locker: l, name: name, topic: topic, id: l.id()}, longest: ttl}
	held.until.Set(until)
	next, err := bounded.Get(ctx, &l.releases.Calls, func() (int64, error) {
		return l.ask(ctx, &held.permit, held.id, now.UnixMilli(), ms)
	})
	open := pending.Asked(err)
	switch {
	case err == nil && next == granted && time.Now().Before(until):
		return held, 0, nil
	case err == nil && next == granted:
		l.releases.GiveBack(ctx, held.release(nil))
		err = validity.ErrLate
	case err == nil && next < 0: // all permits are taken and none of them expires
		return nil, l.config.TTL, nil
	case err == nil:
		return nil, min(max(time.Until(time.UnixMilli(next)), time.Millisecond), l.config.TTL), nil
	case open != nil:
		l.releases.GiveBack(ctx, held.release(open))
	}
	return nil, time.Millisecond, err // after ErrLate the caller tries again after a millisecond
}

// askLasting requests a permit that does not expire, and reports whether it was granted. The command does not end with
// ctx, because without its reply nothing in Redis would show whether the permit was granted. If the reply grants the
// permit after the caller has given up, the permit is released.
func (l *Locker) askLasting(ctx context.Context, held *lasting) (bool, error) {
	type answer struct {
		got bool
		err error
	}
	answers := make(chan answer, 1)
	var settled atomic.Bool // set by the reply or by the end of the call, whichever comes first
	err := l.releases.Calls.Do(ctx, func() error {
		next, err := l.ask(context.WithoutCancel(ctx), &held.permit)
		got := err == nil && next == granted
		answers <- answer{got, err}
		if !settled.CompareAndSwap(false, true) && got {
			held.unlessGiven(held.once(context.Background(), nil))
		}
		return err
	})
	if settled.CompareAndSwap(false, true) {
		return false, err
	}
	first := <-answers
	return first.got, first.err
}

// granted is the result of ask if the caller got a permit.
const granted = 0

// ask sends one request for a permit. It returns granted if the caller got one. If no permit is free, it returns the
// time in epoch ms at which the next permit expires, or -1 if none expires.
func (l *Locker) ask(ctx context.Context, held *permit, expirable ...any) (next int64, err error) {
	args := append([]any{l.options.Permits, held.topic.Channel, held.topic.Command()}, expirable...)
	return redisson.Integer(acquireScript.Run(ctx, l.client, held.keys(), args...))
}

// id returns a unique id for a new permit: 8 random bytes of this Locker and 8 bytes with a counter.
func (l *Locker) id() string {
	return string(binary.BigEndian.AppendUint64(l.instance[:], l.last.Add(1)))
}

// Close ends the subscriptions, and repeats the releases to which Redis has not replied. Permits can still be released.
// If Redis does not reply, Close returns after two seconds.
func (l *Locker) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	var closing sync.WaitGroup // concurrent, because each may take two seconds
	closing.Go(l.releases.Close)
	closing.Go(l.herald.Close)
	err := l.notifier.Close()
	closing.Wait()
	return err
}
