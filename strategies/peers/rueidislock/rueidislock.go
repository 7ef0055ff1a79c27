// Package rueidislock adapts the lock of rueidis, through its public interface, for comparison. The lock is a majority
// of the keys rueidislock:0:KEY, rueidislock:1:KEY and rueidislock:2:KEY on one Redis. With the option tuned, the lock
// is the first key alone.
//
//  1. Acquire runs one script for each key, with SET NX PXAT and GET.
//  2. A waiter waits for the message that a key has changed, and then tries again. Because of the GET, Redis sends this
//     message by client-side caching. The adapter restarts each wait every two seconds.
//  3. Release runs one script for each key, which deletes the key if GET returns the owner's token.
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
	// prefix is rueidislock's default prefix. In a key, the prefix of the Config comes after this prefix.
	prefix = "rueidislock"
	// againAfter is the interval at which Acquire restarts a wait. It is also the longest time for which a waiter sleeps
	// although the lock is free.
	againAfter = 2 * time.Second
)

//go:embed rueidislock.md
var doc string

// Strategy returns the Info, the options and the constructor of the lock, for registration as rueidislock.
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
			{Check: "renewal and release", Because: "the context that reports a lost lease also ends at each release"},
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

// errAgain is the cause with which a wait ends after againAfter. Acquire then waits again.
var errAgain = errors.New("wait again")

// Options are the options that a user can set, as in rueidislock:tuned=true.
type Options struct {
	Tuned bool `opt:"tuned" help:"as documented for one Redis: one key instead of three, no messages about own changes (Redis 7.0.5), no limit of 20 ms for a try"`
}

// Refine changes the summary if the option tuned is set, because the lock then has only one key.
func (o Options) Refine(info strategies.Info) strategies.Info {
	if o.Tuned {
		info.Summary = "redis/rueidis rueidislock: SET NX PXAT, woken by client-side caching"
	}
	return info
}

// Locker acquires locks for all goroutines of one process, with one rueidis client.
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

// client returns the options of a rueidis client for a node. The options contain the client name, the user and the
// dialler of the node's options, so that the traffic of rueidis is also counted.
func (l *Locker) client(o *redis.UniversalOptions) (rueidis.ClientOption, error) {
	switch {
	case o == nil:
		return rueidis.ClientOption{}, errors.New("the node has no connection options")
	case o.MasterName != "":
		return rueidis.ClientOption{}, errors.New("a connection through Sentinel is not supported")
	case len(o.Addrs) == 0:
		return rueidis.ClientOption{}, errors.New("the node has no address")
	}
	dial := o.Dialer
	if dial == nil {
		simple := o.Simple()
		if simple.DialTimeout == 0 {
			simple.DialTimeout = 5 * time.Second // the default of go-redis
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
		// The function ignores the TLS config, because the dialler itself uses TLS if the options require it.
		DialCtxFn: func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if l.closed.Load() { // because a closed rueidis client dials again when it is called with an ended context
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

// Acquire waits with rueidislock's WithContext. It restarts the wait every two seconds, because a waiter of rueidislock
// may keep sleeping although the lock is free.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		held, err := l.lock(ctx, key, l.locks.WithContext)
		if !errors.Is(err, errAgain) {
			return held, err
		}
	}
}

// TryAcquire makes one try by rueidislock's TryWithContext, and returns ErrHeld if another client holds the lock.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		held, err := l.lock(ctx, key, l.locks.TryWithContext)
		switch {
		case errors.Is(err, peer.ErrNotLocked):
			return nil, strategies.ErrHeld
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil, errors.Is(err, errAgain):
			continue // rueidislock's own limit for a try, which does not mean that the lock is held
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
	// rueidislock holds the lock until the context of its wait ends. The lease outlives ctx, so the wait gets a separate
	// context.
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
		<-lasting.Done() // wait for an AfterFunc that could not be stopped
		release()
	}
	if cause := context.Cause(lasting); cause != nil {
		err = cause // rueidislock only reports that the context has ended
	}
	end(nil)
	return nil, fmt.Errorf("lock %q: %w", name, err)
}

// Close closes the connections. rueidislock's own Close would release the leases, which only their holders may do. The
// adapter therefore closes the client first, so that rueidislock's Close cannot release them.
func (l *Locker) Close() error {
	if !l.closed.Swap(true) {
		l.locks.Client().Close()
		l.locks.Close()
	}
	return nil
}

// lease is a lock that rueidislock renews until it is released or lost.
type lease struct {
	ctx     context.Context // rueidislock ends it when it finds that the lock is lost
	release func()          // returns when all goroutines of the lock have ended
}

// Lost returns a channel that is closed when the lease no longer has a majority of the keys, or is released.
func (held *lease) Lost() <-chan struct{} { return held.ctx.Done() }

// Release makes rueidislock delete the keys. It returns ErrNotHeld if the lock was already lost. rueidislock ignores
// ctx and does not report an error of the deletion.
func (held *lease) Release(context.Context) error {
	lost := held.ctx.Err() != nil
	held.release()
	if lost {
		return strategies.ErrNotHeld
	}
	return nil
}
