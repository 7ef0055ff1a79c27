// Package rueidislock adapts the lock of rueidis, through its public interface, for comparison. The lock is a
// majority of 2×majority−1 keys on one Redis.
//
//  1. Acquire runs one script for each key, with SET NX PXAT and GET.
//  2. A waiter waits for a message that a key has changed, which Redis sends by client-side caching because of the
//     GET. It then tries again. The adapter starts each wait over every two seconds.
//  3. Release runs one script for each key, which deletes the key if it has the owner's token.
//
// Each change of a key wakes one waiter of each process.
//
// rueidislock.md describes guarantees, costs and failure modes.
package rueidislock

import (
	"context"
	"crypto/tls"
	_ "embed" // the text
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	peer "github.com/redis/rueidis/rueidislock"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

const (
	// prefix is rueidislock's default; our own prefix follows it.
	prefix = "rueidislock"
	// againAfter is how long a waiter can sleep at most on a lock that is free.
	againAfter = 2 * time.Second
)

//go:embed rueidislock.md
var doc string

// Strategy describes the lock, for registration under its name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc: doc, Name: "rueidislock", Capacity: 1, Nodes: 1, BlackBox: true,
		Summary:     "redis/rueidis rueidislock: SET NX PXAT on 3 keys, woken by client-side caching",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Watchdog: true},
		Keys:        []string{prefix + ":0:{key}", prefix + ":1:{key}", prefix + ":2:{key}"},
		Since:       strategies.Since{Redis: "6.2", For: "SET PXAT"},
		Connections: strategies.Connections{PerInstance: 1},
		Library:     "github.com/redis/rueidis",
		Libraries: []strategies.Library{{
			Language: "Go", Package: "github.com/redis/rueidis/rueidislock", Call: "Locker.WithContext",
		}},
		Limits: []strategies.Limit{
			strategies.ByRedisClock(),
			{Check: "closed", Because: "its Close ends all leases without releasing them: " +
				"the keys stay until their TTL"},
			{Check: "sentinel", Because: "its client cannot find the server through Sentinel"},
			{Check: "late commands", Because: "a command that rueidis sends again during Close may keep a connection open"},
			{Check: "renewal and release", Because: "the context that reports a loss ends at each release too"},
			{
				Check:   "refused writes",
				Because: "a release that Redis refuses is neither reported nor repeated: the keys stay until their TTL",
			},
			{
				Check:   "killed connections",
				Because: "a release whose connection is cut is not repeated: the keys stay until their TTL",
			},
			{Check: "failover", Because: "rueidis stays with a server that is no longer the primary"},
		},
		Rights: strategies.Rights{
			Keys:     []string{prefix + ":?:{key}"},
			Commands: []string{"set", "get", "del", "pexpireat", "eval", "evalsha", "client|tracking", "ping"},
		},
	}, Options{}, Open)
}

// errAgain ends a wait that starts over.
var errAgain = errors.New("wait again")

// Options tune rueidislock.
type Options struct {
	Tuned bool `opt:"tuned" help:"as documented for one Redis: one key instead of three, no messages about own changes (Redis 7.0.5), no limit of 20 ms for a try"`
}

// Refine adapts the summary to one key.
func (o Options) Refine(info strategies.Info) strategies.Info {
	if o.Tuned {
		info.Summary = "redis/rueidis rueidislock: SET NX PXAT, woken by client-side caching"
	}
	return info
}

// Locker has one rueidis client.
type Locker struct {
	config goredis.Config
	locks  peer.Locker
	closed atomic.Bool
}

// Open returns a Locker on the first node, and connects to it.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("rueidislock: %w", err)
	}
	l := &Locker{config: config}
	client, err := l.client(config.Nodes[0].Options)
	if err != nil {
		return nil, fmt.Errorf("rueidislock: %w", err)
	}
	set := peer.LockerOption{
		KeyPrefix:    prefix,
		KeyValidity:  config.TTL,
		KeyMajority:  2,
		ClientOption: client,
	}
	if options.Tuned {
		set.KeyMajority, set.NoLoopTracking, set.TryNextAfter = 1, true, config.TTL
	}
	if l.locks, err = peer.NewLocker(set); err != nil {
		return nil, fmt.Errorf("connect rueidis: %w", err)
	}
	return l, nil
}

// client returns how a rueidis client connects to a node: with the name, the rights and the dialler of
// the node's own client, so that what it sends is counted too.
func (l *Locker) client(o *redis.UniversalOptions) (rueidis.ClientOption, error) {
	switch {
	case o == nil:
		return rueidis.ClientOption{}, errors.New("the node has no options to dial with")
	case o.MasterName != "":
		return rueidis.ClientOption{}, errors.New("a client by way of Sentinel is not supported")
	case len(o.Addrs) == 0:
		return rueidis.ClientOption{}, errors.New("the node has no address")
	}
	dial := o.Dialer
	if dial == nil {
		simple := o.Simple()
		if simple.DialTimeout == 0 {
			simple.DialTimeout = 5 * time.Second // as go-redis
		}
		dial = redis.NewDialer(simple)
	}
	option := rueidis.ClientOption{
		InitAddress:       o.Addrs,
		ForceSingleClient: !o.IsClusterMode,
		Username:          o.Username,
		Password:          o.Password,
		ClientName:        o.ClientName,
		SelectDB:          o.DB,
		Dialer:            net.Dialer{Timeout: o.DialTimeout},
		// The dialler itself encrypts if the options say so.
		DialCtxFn: func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if l.closed.Load() { // a closed rueidis client dials again if it is called with a context that has ended
				return nil, net.ErrClosed
			}
			if strings.HasPrefix(address, "/") {
				return dial(ctx, "unix", address)
			}
			return dial(ctx, "tcp", address)
		},
	}
	if o.DisableIdentity {
		option.ClientSetInfo = rueidis.DisableClientSetInfo
	}
	return option, nil
}

// Acquire waits with rueidislock's WithContext. It starts the wait over every two seconds, because
// rueidislock may sleep on.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		held, err := l.lock(ctx, key, l.locks.WithContext)
		if !errors.Is(err, errAgain) {
			return held, err
		}
	}
}

// TryAcquire tries once, with rueidislock's TryWithContext.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		held, err := l.lock(ctx, key, l.locks.TryWithContext)
		switch {
		case errors.Is(err, peer.ErrNotLocked):
			return nil, strategies.ErrHeld
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil, errors.Is(err, errAgain):
			continue // its own limit for a try, which says nothing of the lock
		}
		return held, err
	}
}

type lockCall func(context.Context, string) (context.Context, context.CancelFunc, error)

func (l *Locker) lock(ctx context.Context, key string, call lockCall) (strategies.Lease, error) {
	name := l.config.Key(key)
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock %q: %w", name, err)
	}
	// rueidislock keeps the lock until the context of its wait ends; a lease outlives its Acquire.
	lasting, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ended := context.AfterFunc(ctx, func() { end(ctx.Err()) })
	again := time.AfterFunc(againAfter, func() { end(errAgain) })
	held, release, err := call(lasting, name)
	inTime := again.Stop()
	inTime = ended() && inTime
	if err == nil && inTime {
		return &lease{held, release}, nil
	}
	if err == nil {
		<-lasting.Done() // a function that could not be stopped may not have ended it yet
		release()
	}
	if cause := context.Cause(lasting); cause != nil {
		err = cause // rueidislock says only that the context has ended
	}
	end(nil)
	return nil, fmt.Errorf("lock %q: %w", name, err)
}

// Close closes the connections. rueidislock's own Close would release the leases, which only
// their holders may do: it is called when it can no longer do that.
func (l *Locker) Close() error {
	if !l.closed.Swap(true) {
		l.locks.Client().Close()
		l.locks.Close()
	}
	return nil
}

// lease is a lock that rueidislock keeps until it is released.
type lease struct {
	ctx     context.Context // rueidislock ends it when it knows the lock to be lost
	release func()          // returns when all of its goroutines have ended
}

// Lost returns a channel that is closed when a key was lost that the majority needs, and at
// the release.
func (held *lease) Lost() <-chan struct{} { return held.ctx.Done() }

// Release has rueidislock delete the keys, which ignores ctx and does not say whether it could.
func (held *lease) Release(context.Context) error {
	lost := held.ctx.Err() != nil
	held.release()
	if lost {
		return strategies.ErrNotHeld
	}
	return nil
}
