// Package spin is the lock most people know: SET with NX and PX takes it, a script that
// compares the owner's token deletes it, and whoever finds it taken sleeps and tries again.
//
//	locker, err := spin.New(client, lock.TTL(10*time.Second))
//	lease, err := locker.Acquire(ctx, "order:17", lock.Wait(2*time.Second))
//	defer lease.Release(context.WithoutCancel(ctx))
//
// It guarantees exclusion while a lease is valid, frees a dead holder's lock after the
// TTL, and lets nobody but the owner release or extend. It is not fair: a waiter may starve.
//
// What breaks it: a holder that works on past ValidUntil; a failover to a replica that had
// not seen the SET, a gap that WaitReplicas narrows and does not close, and WaitAnyway leaves
// open. With a client that
// retries by itself (MaxRetries other than -1), a SET whose reply was lost is sent again,
// finds the caller's own token and waits for it to expire.
//
// With release=native the server's own compare-and-delete takes the script's place: DELIFEQ of
// Valkey 9 or DELEX … IFEQ of Redis 8.4, whichever the server has, and SET … IFEQ extends. The
// server is asked once, before the first acquire, by trying the commands where they do nothing. On
// one that has none, acquiring fails, and lockbench leaves the strategy out: scripts in their place
// would be measured under the wrong name. A user then needs +set and +delifeq or +delex, and no
// right to scripts.
//
// An uncontended acquire is one SET, a release one EVALSHA (GET, DEL inside) or one native
// command: one round trip each. A waiter pays one SET for each try. Nobody is woken: after a
// release the lock lies idle until some waiter's sleep ends, and the one that happens to try
// first gets it. With tries=N an acquire that has failed N times ends with ErrHeld.
package spin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/owner"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/internal/validity"
	"github.com/lockbench/lockbench/strategies/lock"
)

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Name:     "spin",
		Summary:  "SET NX PX, polled with backoff",
		Claims:   strategies.Claims{Exclusion: true, Recovery: true},
		Capacity: 1,
		Nodes:    1,
		Limits:   []strategies.Limit{strategies.ByRedisClock()},
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Commands: []string{"set", "eval", "evalsha", "get", "del", "pexpire", "script|load"},
		},
	}, Defaults(), Open)
}

// Refine fits the rights to the commands, adds the pipeline's connection, and names the
// library that polls with a fixed sleep.
func (o Options) Refine(info strategies.Info) strategies.Info {
	if o.Backoff == Fixed && o.WaitReplicas == 0 && o.Release != Native {
		info.Libraries = []strategies.Library{{Language: "Python", Package: "redis", Call: "redis.lock.Lock"}}
	}
	info.Rights = o.releases(info.Rights)
	if o.WaitReplicas > 0 {
		info.Rights.Commands = append(slices.Clone(info.Rights.Commands), "wait")
	}
	return pipeline.Refine(info, o.Pipeline)
}

// Locker polls one Redis node.
type Locker struct {
	config  goredis.Config
	options Options
	client  redis.UniversalClient
	hangUp  func() error // ends the pipeline
	owners  *owner.Names
	native  atomic.Pointer[token.Commands] // nil until the server has been asked
	closed  atomic.Bool

	sleepers pause.Sleepers
}

// New makes a lock for a service, on one Redis or Redis Cluster, with Defaults. It does not
// talk to Redis yet. Its error joins every error of the options. The caller closes the
// client, after the Locker.
func New(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return NewWith(client, Defaults(), options...)
}

// NewWith is New with other Options than Defaults.
func NewWith(client redis.UniversalClient, options Options, more ...lock.Option) (*lock.Locker, error) {
	return lock.Open([]redis.UniversalClient{client}, Open, options, more)
}

// Open returns a Locker on the first node. It does not talk to Redis yet.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("spin: %w", err)
	}
	if options.WaitReplicas > 0 && config.Nodes[0].Options.IsClusterMode {
		return nil, errors.New("spin: wait-replicas cannot be had in a cluster, where WAIT may go to another node than the lock")
	}
	config, hangUp, err := pipeline.Over(config, options.Pipeline)
	if err != nil {
		return nil, fmt.Errorf("spin: %w", err)
	}
	return &Locker{config: config, options: options, client: config.Nodes[0].Client, hangUp: hangUp, owners: owner.New()}, nil
}

// Prepare loads the release script, or asks the server for its own commands. The error of a
// server that has none is an errors.ErrUnsupported.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	if l.options.Release != Native {
		return token.Load(ctx, l.client)
	}
	_, err := l.commands(ctx)
	return err
}

// Acquire tries, and sleeps between tries, until the lock is held or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.AcquireFor(ctx, key, l.config.TTL)
}

// AcquireFor is Acquire for a lease of ttl, at least 1 ms.
func (l *Locker) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	a, err := l.begin(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	got, err := l.tryAgain(ctx, a)
	if err == nil && !got {
		err = l.wait(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	return a.lease, nil
}

// TryAcquire tries once.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.TryAcquireFor(ctx, key, l.config.TTL)
}

// TryAcquireFor tries once for a lease of ttl, at least 1 ms.
func (l *Locker) TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	a, err := l.begin(ctx, key, ttl)
	if err != nil {
		return nil, err
	}
	got, err := l.try(ctx, a)
	if err != nil {
		return nil, err
	}
	if !got {
		return nil, strategies.ErrHeld
	}
	return a.lease, nil
}

// Close refuses further calls; leases can still be released.
func (l *Locker) Close() error {
	l.closed.Store(true)
	l.sleepers.Close()
	return l.hangUp()
}

// acquisition is what a caller asks for.
type acquisition struct {
	lease *token.Lease
	ttl   time.Duration // in whole milliseconds
}

func (l *Locker) begin(ctx context.Context, key string, ttl time.Duration) (acquisition, error) {
	if l.closed.Load() {
		return acquisition{}, strategies.ErrClosed
	}
	name := l.config.Key(key)
	ttl, err := validity.TTL(ttl)
	if err != nil {
		return acquisition{}, fmt.Errorf("set %q: %w", name, err)
	}
	by, err := l.commands(ctx)
	if err != nil {
		return acquisition{}, err
	}
	return acquisition{&token.Lease{Client: l.client, Name: name, Token: l.owners.Next(), By: by}, ttl}, nil
}

// wait polls until the lock is the caller's.
func (l *Locker) wait(ctx context.Context, a acquisition) error {
	sleep := l.options.Sleeps(rand.Int64N)
	for failed := 1; ; failed++ {
		if failed == l.options.Tries {
			return fmt.Errorf("poll %q: %w after %d tries", a.lease.Name, strategies.ErrHeld, failed)
		}
		d := sleep()
		if d > 0 {
			l.sleepers.Sleep(ctx.Done(), d)
			if ctx.Err() != nil {
				return fmt.Errorf("poll %q: %w", a.lease.Name, strategies.WaitEnded(ctx))
			}
		}
		got, err := l.tryAgain(ctx, a)
		if d > 0 {
			l.config.Probe.Wake(got)
		}
		if got || err != nil {
			return err
		}
	}
}

// tryAgain makes one attempt for a caller that makes more.
func (l *Locker) tryAgain(ctx context.Context, a acquisition) (bool, error) {
	got, err := l.try(ctx, a)
	return got, validity.UnlessLate(err)
}

// try makes one attempt. After an error the lock is not held.
func (l *Locker) try(ctx context.Context, a acquisition) (bool, error) {
	l.config.Probe.Attempt()
	return a.lease.Try(ctx, a.ttl, func() (bool, error) { return l.set(ctx, a) })
}
