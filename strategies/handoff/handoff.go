// Package handoff implements a lock that a release hands to the next waiter. Waiters do not poll.
//
//	locker, err := handoff.New(client, lock.TTL(10*time.Second))
//	lease, err := locker.Acquire(ctx, "order:17", lock.Wait(2*time.Second))
//	defer lease.Release(context.WithoutCancel(ctx))
//
// The lock KEY is a string with the owner's id. The queue KEY:handoff (in a cluster {KEY}:handoff) is a list with one
// entry for each waiting process, or with Linger 0 for each waiter.
//
//  1. Acquire sends SET KEY ID NX GET PX, and TIME for the fencing token, in one round trip; in a cluster it runs one
//     script instead. If the lock is taken, the process subscribes to its own channel, and one script queues an
//     entry (RPUSH).
//  2. The waiters of a process wait in the order of arrival. When a message announces the turn of the process, the
//     process confirms that turn by one script, and its first waiter gets the lease.
//  3. Release passes the lease to the next waiter of the process without a command, within the bounds of Options.
//     Otherwise one script takes the first entry out of the queue (LPOP), makes it the owner with a fresh TTL (SET PX),
//     and publishes a message to the process of that entry (SPUBLISH). If the queue is empty, the script deletes the
//     lock (DEL).
//
// A release notifies only the process of the next waiter. When a holder's lease expires, a waiting process runs a
// script that hands the lock to the next waiting process.
//
// While callers wait, a process also sends periodic checks. Once a second it publishes a message to itself, to check
// that its subscription still receives messages. For each lock that it waits for, it runs one script a second that
// reads the lock's state: less often behind a long queue, at once when the subscription has ended, and at most a
// hundred times a second for all locks.
//
// The keys, messages and scripts that processes share have format 1. Versions of this package with the same number
// may run side by side, such as during a rollout. A version with another number needs another Prefix.
//
// handoff.md describes guarantees and failure modes, and README.md what the lock requires of the service's go-redis
// client. DESIGN.md explains the protocol and its design.
package handoff

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/pipeline"
	"github.com/lockbench/lockbench/strategies/lock"
)

//go:embed handoff.md
var doc string

// Strategy returns the Info, the options and the constructor of the lock, for registration as handoff.
func Strategy() strategies.Strategy {
	return strategies.Define(info("handoff", doc, "a release hands the lock to the next waiter: in the process for at "+
		"most linger, then in the process that has waited longest"), Defaults(), Open)
}

// since is the oldest version of Redis on which the lock works.
var since = strategies.Since{Redis: "7.0", For: "sharded channels"}

// info returns the description of the lock for one of its two names, handoff and cohort.
func info(name, doc, summary string) strategies.Info {
	return strategies.Info{
		Doc:         doc,
		Name:        name,
		Summary:     summary,
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Bounded: true, Fencing: true},
		Capacity:    1,
		Nodes:       1,
		Keys:        []string{"{key}", "{key}:handoff"},
		Since:       since,
		Connections: strategies.Connections{PerInstance: 1},
		Limits: []strategies.Limit{ // one for each direction in which the clock of Redis can jump
			strategies.ByRedisClock(),
			{Check: "clock set back", Because: "its tokens follow Redis's clock"},
		},
		Rights: strategies.Rights{ // in a cluster, keys and channels may also begin with {
			Keys:     []string{"{key}"},
			Channels: []string{"{key}"},
			Commands: []string{
				"get", "set", "del", "append", "pttl", "pexpire", "exists", "rpush", "rpushx", "lpush", "lpop", "lpos",
				"lrange", "lrem",
				"time", "ping", "eval", "evalsha", "spublish", "ssubscribe",
			},
			Newer: []string{"delifeq", "delex"},
		},
	}
}

// Options are the options of one process; other processes may have different ones.
//
// A process that has the lock passes it on to its own waiters before it releases the lock to other processes. It does
// so for at most Linger, and only to callers that were already waiting when the process got the lock. A pass sends no
// command. Within a process, callers that request the same TTL get the lock in the order of their calls. A client of
// another process can overtake a waiter once for each lease that the waiter's process gets until the waiter has its
// turn. The process gets only one such lease if the earlier waiters finish within Linger. Otherwise it gets at most one
// for each earlier waiter, plus one. With Linger 0 each waiter has a separate slot in Redis's queue, and all waiters
// get the lock in the order in which Redis received the requests.
//
// The order has three exceptions. A caller may take over the slot of a caller of the same process that has given up. A
// process that misses the message about its turn returns to the head of the queue. After a holder dies, the first
// process to send a request gets the lock.
type Options struct {
	// Linger is how long a process may pass a lease on among its own waiters before other processes get the lock. With 0 a
	// process never passes a lease on.
	Linger time.Duration `opt:"linger" help:"how long a process may pass the lock on to its own waiters; 0: never"`
	// Tokens enables fencing tokens. Without them, acquiring a free lock needs no TIME, and leases are not
	// strategies.Fenced. Processes with and without tokens may share a lock.
	Tokens bool `opt:"tokens" help:"fencing tokens; an acquire of a free lock then sends TIME"`
	// Turns is the largest number of turns that a process takes on one lease, at most MostTurns; 0 means MostTurns.
	Turns int
}

// Defaults returns the Options with the lowest load on Redis: passing on for up to 200 ms, and fencing tokens.
func Defaults() Options { return Options{Linger: 200 * time.Millisecond, Tokens: true} }

// Refine adapts the Info to these Options: with Linger 0 the lock is FIFO, and without Tokens it has no fencing.
func (o Options) Refine(info strategies.Info) strategies.Info {
	if info.Claims.FIFO = o.Linger == 0; info.Claims.FIFO {
		info.Summary = "a release hands the lock to the client that has waited longest"
	}
	if info.Claims.Fencing = o.Tokens; !o.Tokens {
		info.Limits = info.Limits[:1] // the second limit concerns tokens
	}
	return info
}

// Validate returns one error for all values that are out of range: a negative Linger, or Turns not from 0 to MostTurns.
func (o Options) Validate() error {
	var problems []error
	if o.Linger < 0 {
		problems = append(problems, errors.New("linger must be at least 0"))
	}
	if o.Turns < 0 || o.Turns > MostTurns {
		err := fmt.Errorf("turns must be between 0 and %d, not %d", MostTurns, o.Turns)
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// MostTurns is the largest number of turns that a process can take on one lease. Each lease uses one microsecond of
// Redis's clock, which provides 1024 fencing tokens, one for each turn.
const MostTurns = 1024

// leastTTL is the shortest TTL that Open, Acquire and Extend accept. A shorter one would leave no time for clock drift
// and the round trip to Redis.
const leastTTL = 10 * time.Millisecond

// Locker gives the clients of one process access to the locks. It implements strategies.Locker, Trier and Preparer.
type Locker struct {
	config goredis.Config
	linger time.Duration // 0 means that the process passes nothing on
	tokens bool
	turns  int // the largest number of turns on one lease
	ids    *ids
	base   string // the prefix of a process's channel name outside a cluster
	redis  *node

	attention time.Duration // the longest time between two checks of a lock's state

	ctx   context.Context // for background tasks
	stop  context.CancelFunc
	tasks sync.WaitGroup
	hears bounded.Calls // calls for subscriptions, which may wait for a connection for as long as go-redis does

	mu              sync.Mutex
	closed          bool
	hungUp          bool                          // the Locker is closed, and addPending adds nothing
	localQueues     map[localQueueKey]*localQueue // one for each lock that a caller of this process wants or holds
	slots           map[string]*slot              // this process's slots in Redis's queues, by id
	held            map[string]*lease             // the leases granted to slots, by id
	pendingReleases map[string]*pendingRelease    // by id
	sendingFor      map[string]bool               // locks for which a task is sending pending releases

	subscribers  map[redis.UniversalClient]*subscriber
	listenAfter  time.Time // when the next subscription connection may be opened
	failures     int       // consecutive failures of subscription connections
	unsubscribed error     // the error of the last failure
	refusing     bool      // Redis has refused one of several channels, so they are subscribed one by one
	strays       int       // number of messages about ids without a slot since straysFrom
	straysFrom   time.Time
	echoed       time.Time // when the process last checked that it receives messages
	keeper       keeper
}

// New returns a Locker for a service, with the Defaults. It sends no command to Redis.
//
// The client is a go-redis client: the result of NewClient, NewFailoverClient, NewClusterClient,
// NewFailoverClusterClient or NewUniversalClient, not a Ring. Commands go through this client. Concurrent callers share
// pipelines, which use up to four connections of the client's pool at a time; in a cluster each caller sends its own
// commands. The Locker adds one subscription connection, or in a cluster one for each node. Close the Locker before the
// client. README.md has details.
func New(client redis.UniversalClient, options ...lock.Option) (*lock.FencedLocker, error) {
	return NewWith(client, Defaults(), options...)
}

// NewWith returns a Locker for a service, with the given Options. The lock has tokens even if Options.Tokens is false.
// New describes the requirements for the client.
func NewWith(client redis.UniversalClient, own Options, options ...lock.Option) (*lock.FencedLocker, error) {
	own.Tokens = true
	return lock.OpenFenced([]redis.UniversalClient{client}, Open, own, options)
}

// NewUnfenced returns a Locker for a service, with the given Options but without fencing tokens. New describes the
// requirements for the client.
func NewUnfenced(client redis.UniversalClient, own Options, options ...lock.Option) (*lock.Locker, error) {
	own.Tokens = false
	return lock.Open([]redis.UniversalClient{client}, Open, own, options)
}

// Open returns a Locker on the only node of config. It is for lockbench; a service calls New. Open sends no command to
// Redis.
func Open(config goredis.Config, options Options) (*Locker, error) {
	problems := []error{config.Validate(1), options.Validate(), validTTL(config.TTL)}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("handoff: %w", err)
	}
	if options.Turns == 0 {
		options.Turns = MostTurns
	}
	conn, err := pipeline.Dial(config.Nodes[0], patience, freeScript.hash)
	if err != nil {
		return nil, fmt.Errorf("handoff: %w", err)
	}
	node := &node{conn: conn, client: config.Nodes[0].Client, cluster: config.Nodes[0].Cluster()}
	l := &Locker{
		config: config, linger: options.Linger, tokens: options.Tokens, turns: options.Turns, ids: newIDs(),
		base:        config.Prefix + "handoff:",
		attention:   time.Second,
		localQueues: map[localQueueKey]*localQueue{}, slots: map[string]*slot{}, held: map[string]*lease{},
		subscribers:     map[redis.UniversalClient]*subscriber{},
		pendingReleases: map[string]*pendingRelease{}, sendingFor: map[string]bool{},
	}
	node.ids, node.demoted = l.ids, l.demoted
	l.redis = node
	l.keeper.wake = make(chan struct{}, 1)
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// validTTL rejects a TTL below leastTTL.
func validTTL(ttl time.Duration) error {
	if ttl < leastTTL {
		return fmt.Errorf("the TTL must be at least %v, not %v", leastTTL, ttl)
	}
	return nil
}

// milliseconds returns a TTL in ms, limited to the range from 1 ms to longest.
func milliseconds(ttl time.Duration) int64 { return max(1, min(ttl, longest).Milliseconds()) }

// longest is the longest TTL of a lease: 10 years.
const longest = 10 * 365 * 24 * time.Hour

// end returns the time until which a holder may rely on a lease of length ttl. The parameter after is a time, by this
// process's clock, at which Redis had not yet granted the lease. end subtracts 1 % of ttl for clock drift, and 2 ms
// because Redis rounds TTLs.
func end(after time.Time, ttl time.Duration) time.Time {
	ttl = min(ttl, longest)
	return after.Add(ttl - ttl/100 - 2*time.Millisecond)
}

// Prepare connects to Redis and runs each command of the lock once, on a key that no lock uses. In a cluster it does so
// once for each of keys, in the key's hash slot. Prepare returns an error if the user lacks a right or the server is
// too old.
func (l *Locker) Prepare(ctx context.Context, keys []string) error {
	if l.redis.cluster == nil || len(keys) == 0 {
		keys = []string{""}
	}
	for _, key := range keys {
		if err := l.probe(ctx, key); err != nil {
			return fmt.Errorf("prepare: %w", l.explained(ctx, err))
		}
	}
	return nil
}

// explained returns err. If the server is too old for the lock, it adds to err which version the lock needs.
func (l *Locker) explained(ctx context.Context, err error) error {
	return goredis.TooOld(ctx, l.redis.client, err, "handoff", since)
}

// Acquire waits until the caller gets the lock, ctx ends or the Locker is closed. While Redis does not serve the lock,
// Acquire keeps trying for two seconds and then returns Redis's error.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.AcquireFor(ctx, key, l.config.TTL)
}

// AcquireFor acquires the lock as Acquire does, but with the given TTL instead of the configured one. Callers of this
// process that request different TTLs wait in separate local queues, like callers of different processes.
func (l *Locker) AcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	held, err := l.acquire(ctx, key, ttl)
	if err != nil {
		return nil, fmt.Errorf("acquire %q: %w", key, l.explained(ctx, err))
	}
	return l.shown(held), nil
}

// TryAcquire requests the lock once. It returns ErrHeld without sending a command if a caller of this process holds the
// lock, or waits for it behind another holder. If another caller of this process is already trying, TryAcquire waits
// for the result of that try.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.TryAcquireFor(ctx, key, l.config.TTL)
}

// TryAcquireFor requests the lock once, as TryAcquire does, but with the given TTL instead of the configured one.
func (l *Locker) TryAcquireFor(ctx context.Context, key string, ttl time.Duration) (strategies.Lease, error) {
	held, err := l.try(ctx, key, ttl)
	if err != nil {
		return nil, fmt.Errorf("try to acquire %q: %w", key, l.explained(ctx, err))
	}
	return l.shown(held), nil
}

// Close removes the process's slots from Redis's queues and closes the subscriptions. Waiters get ErrClosed at once.
// Close stops sending releases when Redis does not reply; a lease that it could not release ends when its TTL expires.
// Leases that callers hold can still be released after Close.
func (l *Locker) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	for _, lq := range l.localQueues {
		lq.fail(strategies.ErrClosed)
	}
	l.mu.Unlock()
	err := l.sendRest(false)
	l.mu.Lock()
	subscribers := maps.Clone(l.subscribers)
	l.mu.Unlock()
	l.stop()
	for _, e := range subscribers {
		l.hears.Go(e.hangUp)
	}
	l.tasks.Wait()
	l.hears.Close()
	l.mu.Lock()
	for _, d := range l.pendingReleases {
		if d.indeterminate { // the lost command may have arrived after the release
			l.addPending(d.names, d.entry, true)
		}
	}
	l.hungUp = err != nil // Redis has not replied to the releases above
	l.mu.Unlock()
	if err == nil {
		_ = l.sendRest(true)
	}
	return l.redis.conn.Close()
}
