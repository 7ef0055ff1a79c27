// Package semaphore is Redisson's RSemaphore, wire-compatible with it: an integer that says
// how many permits are free, and a channel on which their number is told when one is given
// back. With Expirable each permit runs out by itself.
//
// semaphore.md has the rest: what it guarantees, what breaks it, and what it costs.
package semaphore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
	"github.com/lockbench/lockbench/strategies/internal/validity"
	"github.com/lockbench/lockbench/strategies/lock"
)

//go:embed semaphore.md
var doc string

// Strategy describes the semaphore, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:         doc,
		Name:        "semaphore",
		Summary:     "Redisson RSemaphore: N permits, counted; their number is published",
		Claims:      strategies.Claims{Exclusion: true},
		Nodes:       1,
		Keys:        []string{"{key}", "{key}:timeout"},
		Libraries:   []strategies.Library{{Language: "Java", Package: "org.redisson:redisson", Call: "getSemaphore"}},
		Persistent:  []string{"{key}"},
		Connections: strategies.Connections{PerInstance: 1},
	}), Defaults(), Open)
}

// Options of the semaphore.
type Options struct {
	Permits int `opt:"permits" help:"how many may hold one key at a time"`
	// Expirable permits are laid out like those of RPermitExpirableSemaphore: each has an id
	// with a deadline in a sorted set, {key}:timeout. Whoever next acquires gives back those
	// that are overdue. The layout is that of Redisson 3's public sources; it has not been
	// tried against Redisson 4, and is not claimed to be compatible.
	Expirable bool   `opt:"expirable" help:"permits run out after the TTL, so that a dead holder's comes back"`
	Sharded   string `opt:"sharded" help:"on a cluster: tell releases by SPUBLISH (on), PUBLISH (off), or SPUBLISH where the servers know it (auto)"`
}

// Defaults are 4 permits that do not expire; sharded is auto, as in Redisson.
func Defaults() Options { return Options{Permits: 4, Sharded: redisson.ShardedAuto} }

// Validate rejects a semaphore without permits, and an unknown value of sharded.
func (o Options) Validate() error {
	var none error
	if o.Permits < 1 {
		none = fmt.Errorf("permits must be at least 1, not %d", o.Permits)
	}
	return errors.Join(none, redisson.ValidSharded(o.Sharded))
}

// Refine claims recovery for expirable permits, and says what the others lack.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.Capacity = o.Permits
	info.Claims.Recovery = o.Expirable
	info.Caveat = ""
	commands := []string{"get", "set", "incrby", "decr"}
	if o.Expirable {
		info.Libraries = nil
		commands = append(commands, "zadd", "zrange", "zrem", "zremrangebyscore", "zscore")
	} else {
		commands = append(commands, "exists")
	}
	info.Rights = redisson.Rights(commands...)
	info.Rights.Channels = []string{"redisson_sc:*{key}"}
	info.Limits = nil
	if !o.Expirable {
		info.Caveat = "a holder that crashes never gives its permit back"
		info.Limits = []strategies.Limit{{
			Check:   "cancelled release",
			Because: "a release without an answer may have been carried out, and one more would be a permit too many",
		}}
	}
	return info
}

// permits is one kind of permits, plain or expirable.
type permits interface {
	scripts() []*redis.Script
	// term returns how long a permit lasts that is asked for with that TTL, or why there is
	// none.
	term(ttl time.Duration) (time.Duration, error)
	// take returns nil if no permit is free, and then how long to park at most. The topic is
	// told what take frees, and when its lease is released. After validity.ErrLate the caller
	// may try again.
	take(ctx context.Context, name string, topic redisson.Topic, term time.Duration) (strategies.Lease, time.Duration,
		error)
	// close waits for what is still under way.
	close()
}

// Locker is one process's side of the semaphore.
type Locker struct {
	config  goredis.Config
	options Options
	client  redis.UniversalClient
	permits permits
	line    redisson.Line
	herald  *redisson.Herald
	closed  atomic.Bool
}

// New makes a semaphore with that many permits for a service, on one Redis or Redis Cluster.
// A permit runs out after its TTL (Expirable). New does not talk to Redis yet. Its error
// joins every error of the options. The caller closes the client, after the Locker.
func New(client redis.UniversalClient, permits int, options ...lock.Option) (*lock.Locker, error) {
	with := Defaults()
	with.Permits, with.Expirable = permits, true
	return NewWith(client, with, options...)
}

// NewWith is New with any Options. Permits that are not Expirable have no end: they ignore
// the TTL, and their ValidUntil is the zero time.
func NewWith(client redis.UniversalClient, options Options, more ...lock.Option) (*lock.Locker, error) {
	return lock.Open([]redis.UniversalClient{client}, Open, options, more)
}

// Open returns a Locker on the first node. It does not talk to Redis yet.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("semaphore: %w", err)
	}
	config.TTL = config.TTL.Truncate(time.Millisecond)
	client := config.Nodes[0].Client
	l := &Locker{
		config: config, options: options, client: client,
		line: redisson.NewLine(client, wakes), herald: redisson.NewHerald(client, options.Sharded),
	}
	if options.Expirable {
		l.permits = newExpirable(client, options.Permits, config.TTL)
	} else {
		l.permits = &plain{client: client, permits: options.Permits, look: config.TTL}
	}
	return l, nil
}

// topic is where the number of free permits is told.
func (l *Locker) topic(name string) redisson.Topic {
	return l.herald.Topic(name, redisson.Prefixed("redisson_sc", name))
}

// wakes is how many waiters can take what is free; all, if the number is not known.
func wakes(free string) int {
	n, err := strconv.Atoi(free)
	if err != nil {
		return math.MaxInt
	}
	return n
}

// Prepare loads the scripts, opens the subscription connection and sets the
// semaphores up.
func (l *Locker) Prepare(ctx context.Context, keys []string) error {
	if err := goredis.Load(ctx, l.client, l.permits.scripts()...); err != nil {
		return err
	}
	if err := l.herald.Open(ctx, l.line); err != nil {
		return err
	}
	for _, key := range keys {
		name := l.config.Key(key)
		topic := l.topic(name)
		if err := prepareScript.Run(ctx, l.client, []string{name},
			l.options.Permits, topic.Channel, topic.Command()).Err(); err != nil {
			return fmt.Errorf("set up %q: %w", name, err)
		}
	}
	return nil
}

// Acquire waits until a permit is held or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.AcquireFor(ctx, key, l.config.TTL)
}

// AcquireFor is Acquire for a permit that lasts ttl, at least 1 ms. Permits that are not
// expirable do not run out; for them the ttl is ignored.
func (l *Locker) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	name := l.config.Key(key)
	held, err := l.acquire(ctx, name, ttl)
	if err != nil {
		return nil, fmt.Errorf("acquire %q: %w", name, indeterminate.Because(ctx, err))
	}
	return held, nil
}

func (l *Locker) acquire(ctx context.Context, name string, ttl time.Duration) (held strategies.Lease, err error) {
	topic, term, err := l.begin(ctx, name, ttl)
	if err != nil {
		return nil, err
	}
	try := func() (taken bool, left time.Duration, err error) {
		held, left, err = l.permits.take(ctx, name, topic, term)
		l.config.Probe.Attempt() // counted after the answer: it saw all that was done before
		return held != nil, left, validity.UnlessLate(err)
	}
	taken, _, err := try()
	if err == nil && !taken {
		err = redisson.Wait(ctx, l.line, topic, l.config.Probe, l.options.Expirable && term < l.config.TTL, try)
	}
	return held, err
}

// TryAcquire tries once.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.TryAcquireFor(ctx, key, l.config.TTL)
}

// TryAcquireFor tries once for a permit like AcquireFor's.
func (l *Locker) TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	name := l.config.Key(key)
	topic, term, err := l.begin(ctx, name, ttl)
	var held strategies.Lease
	if err == nil {
		held, _, err = l.permits.take(ctx, name, topic, term)
		l.config.Probe.Attempt()
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("acquire %q: %w", name, indeterminate.Because(ctx, err))
	case held == nil:
		return nil, strategies.ErrHeld
	}
	return held, nil
}

// begin prepares the first try.
func (l *Locker) begin(ctx context.Context, name string, ttl time.Duration) (topic redisson.Topic, term time.Duration,
	err error,
) {
	if l.closed.Load() {
		return topic, 0, strategies.ErrClosed
	}
	if term, err = l.permits.term(ttl); err != nil {
		return topic, 0, err
	}
	if err := l.herald.Learn(ctx); err != nil {
		return topic, 0, err
	}
	return l.topic(name), term, nil
}

// Close ends the subscriptions. Permits can still be released.
func (l *Locker) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.permits.close()
	return l.line.Close()
}
