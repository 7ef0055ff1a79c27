package polled

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/lock"
)

// SpinOptions are the options of spin: how waiters poll, how many replicas must have received the lock, and how a
// release deletes the lock.
type SpinOptions struct {
	Backoff string        `opt:"backoff" help:"none, fixed, exponential, full-jitter, added-jitter or redisson"`
	Base    time.Duration `opt:"base" help:"first sleep; every sleep with backoff=fixed"`
	Cap     time.Duration `opt:"cap" help:"longest sleep of a growing backoff; added-jitter may add half of it"`

	// Tries is the number of failed attempts after which Acquire returns ErrHeld. 0 means no limit.
	Tries int `opt:"tries" help:"failed attempts after which an acquire ends with an error; 0: no limit"`

	// WaitReplicas adds a WAIT after the SET, in the same round trip. If fewer than WaitReplicas replicas have the lock
	// within WaitTimeout, the lock is released. A failover may still promote a replica that does not have the lock.
	WaitReplicas int `opt:"wait-replicas" help:"replicas that must have the lock before it counts as acquired (WAIT); 0: no WAIT"`

	WaitTimeout time.Duration `opt:"wait-timeout" help:"how long WAIT waits for the replicas before the lock is released again"`
	WaitAnyway  bool          `opt:"wait-anyway" help:"keep the lock even if too few replicas have it after wait-timeout"`

	Token string `opt:"token" help:"value of the lock: a new one for each request (request), or one for all requests of an instance (client: as in published samples; unsafe, only for measurements)"`

	// Release is byScript or byCommand; "" means byScript.
	Release string `opt:"release" help:"delete the lock by a script that compares the value (script), or by DELEX of Redis 8.4 or DELIFEQ of Valkey 9.0 (delex), which older servers refuse"`
}

// These are the values of the option release, which determines how a release deletes the lock.
const (
	byScript  = "script"
	byCommand = "delex"
)

// native names the first versions of Redis and Valkey that support a command for release=delex.
var native = strategies.Since{
	Redis: "8.4", Valkey: "9.0", For: "DELEX or DELIFEQ", Instead: "release=" + byScript,
}

// These are the values of the option token, which determines which leases share one token.
const (
	perRequest = "request"
	perClient  = "client"
)

// SpinDefaults returns the default options: full jitter within the bounds of Redisson's RSpinLock.
func SpinDefaults() SpinOptions {
	return SpinOptions{
		Backoff: FullJitter, Base: time.Millisecond, Cap: 128 * time.Millisecond, WaitTimeout: 100 * time.Millisecond,
		Token: perRequest, Release: byScript,
	}
}

// Validate returns all errors in the options, joined. An empty Token means request, and an empty Release means script.
func (o SpinOptions) Validate() error {
	var problems []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	known := strings.Join(backoffs, ", ")
	refuse(!slices.Contains(backoffs, o.Backoff), "no backoff %q (there are: %s)", o.Backoff, known)
	refuse(o.Base <= 0, "base must be positive, not %v", o.Base)
	refuse(o.Cap <= 0, "cap must be positive, not %v", o.Cap)
	grows := o.Backoff != None && o.Backoff != Fixed
	refuse(grows && o.Cap > 0 && o.Cap < o.Base, "cap %v is smaller than base %v", o.Cap, o.Base)
	refuse(o.Tries < 0, "tries must be at least 0, not %d", o.Tries)
	refuse(o.WaitAnyway && o.WaitReplicas == 0, "wait-anyway needs wait-replicas")
	refuse(o.WaitReplicas < 0, "wait-replicas must be at least 0, not %d", o.WaitReplicas)
	// WAIT accepts only whole milliseconds, and 0 would mean to wait forever.
	refuse(o.WaitReplicas > 0 && o.WaitTimeout < time.Millisecond,
		"wait-timeout must be at least 1ms, not %v", o.WaitTimeout)
	refuse(o.Token != "" && o.Token != perRequest && o.Token != perClient, "token must be %s or %s, not %q",
		perRequest, perClient, o.Token)
	refuse(o.Release != "" && o.Release != byScript && o.Release != byCommand, "release must be %s or %s, not %q",
		byScript, byCommand, o.Release)
	return errors.Join(problems...)
}

// Refine adapts the Info to the options. It adds WAIT to the rights, names the library that polls with a fixed sleep,
// removes the claim of exclusion if requests share a value, and sets the server version that release=delex needs.
func (o SpinOptions) Refine(info strategies.Info) strategies.Info {
	if o.Token == perClient {
		info.Claims.Exclusion = false
		info.Caveat = "as in published sample code, all requests of an instance share one value, so that a late release " +
			"deletes the lock of another request of the instance"
	}
	if o.Release == byCommand {
		info.Since = native
		info.Rights.Commands = []string{"set", "eval", "evalsha", "get", "pexpire"}
		info.Rights.Newer = []string{"delifeq", "delex"}
	}
	if o.Backoff == Fixed && o.WaitReplicas == 0 && o.Token != perClient && o.Release != byCommand {
		info.Libraries = []strategies.Library{{Language: "Python", Package: "redis", Call: "redis.lock.Lock"}}
	}
	if o.WaitReplicas > 0 {
		info.Rights.Commands = append(slices.Clone(info.Rights.Commands), "wait")
	}
	return info
}

// SpinLocker is a Locker whose leases can be extended and can have different TTLs.
type SpinLocker struct{ *Locker }

// NewSpin returns a spin lock with SpinDefaults for a service, on a single Redis or a Redis Cluster. It sends no
// command to Redis. Its error joins all errors of the options. The caller must close the client after the Locker.
func NewSpin(client redis.UniversalClient, options ...lock.Option) (*lock.Locker, error) {
	return lock.Open([]redis.UniversalClient{client}, OpenSpin, SpinDefaults(), options)
}

// OpenSpin returns a Locker on the first node. It sends no command to Redis. It returns an error for wait-replicas in a
// cluster.
func OpenSpin(config goredis.Config, o SpinOptions) (SpinLocker, error) {
	if o.WaitReplicas > 0 && len(config.Nodes) > 0 && config.Nodes[0].Clustered() {
		return SpinLocker{}, errors.New(
			"spin: wait-replicas is not supported in a cluster, where WAIT may go to another node than the SET")
	}
	l, err := open(config, protocol{
		name: "spin", options: o.Validate(), backoff: o, tries: o.Tries,
		scripted: true, native: o.Release == byCommand,
		try: func(ctx context.Context, held *token.Lease, ttl time.Duration) (bool, error) {
			return held.Try(ctx, ttl, func() (bool, error) { return o.set(ctx, held, ttl) })
		},
		granted: func(held *token.Lease) strategies.Lease { return held },
		shared:  o.Token == perClient,
	})
	return SpinLocker{l}, err
}

// AcquireFor is like Acquire, but the lease has the TTL ttl, which must be at least 1 ms.
func (l SpinLocker) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	return l.acquire(ctx, key, ttl, false)
}

// TryAcquireFor makes one attempt to get a lease with the TTL ttl, which must be at least 1 ms.
func (l SpinLocker) TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	return l.acquire(ctx, key, ttl, true)
}

// set takes the key if the key is free. It reports whether it took the key, in some cases together with an error. With
// wait-replicas, set releases the key again if too few replicas have received the key within wait-timeout, unless
// wait-anyway is set.
func (o SpinOptions) set(ctx context.Context, held *token.Lease, ttl time.Duration) (bool, error) {
	if o.WaitReplicas == 0 {
		return held.Client.SetNX(ctx, held.Name, held.Token, ttl).Result()
	}
	// WAIT waits for the writes of its own connection, so both commands must use the same connection.
	var taken *redis.BoolCmd
	var replicas *redis.Cmd
	if _, err := held.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		taken = pipe.SetNX(ctx, held.Name, held.Token, ttl)
		replicas = pipe.Do(ctx, "WAIT", o.WaitReplicas, o.WaitTimeout.Milliseconds())
		return nil
	}); err != nil {
		return taken.Val(), err
	}
	reached, err := replicas.Int()
	if err != nil {
		return taken.Val(), fmt.Errorf("wait for replicas: %w", err)
	}
	if !taken.Val() || reached >= o.WaitReplicas || o.WaitAnyway {
		return taken.Val(), nil
	}
	if _, err := held.Free(ctx); err != nil {
		return true, fmt.Errorf("release the lock, which too few replicas acknowledged: %w", err)
	}
	return false, nil
}
