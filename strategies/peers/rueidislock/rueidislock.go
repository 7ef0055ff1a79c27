// Package rueidislock adapts github.com/redis/rueidis/rueidislock, through its public
// interface and on a rueidis client of its own, to compare with.
//
// rueidislock.md has the rest: what it guarantees, what breaks it, and what it costs.
package rueidislock

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	peer "github.com/redis/rueidis/rueidislock"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

//go:embed rueidislock.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:         doc,
		Name:        "rueidislock",
		Summary:     "redis/rueidis rueidislock: SET NX PXAT on 3 keys, woken by client-side caching",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Watchdog: true},
		Capacity:    1,
		Nodes:       1,
		Keys:        []string{prefix + ":0:{key}", prefix + ":1:{key}", prefix + ":2:{key}"},
		Since:       strategies.Since{Redis: "6.2", For: "SET PXAT"},
		Connections: strategies.Connections{PerInstance: 1},
		BlackBox:    true,
		Library:     "github.com/redis/rueidis",
		Libraries:   []strategies.Library{{Language: "Go", Package: "github.com/redis/rueidis/rueidislock", Call: "Locker.WithContext"}},
		Limits: []strategies.Limit{
			strategies.ByRedisClock(),
			{Check: "late commands", Because: "what rueidis sends again while it is closed may keep a connection"},
			{Check: "renewal and release", Because: "the context that tells of a loss ends at each release too"},
			{Check: "refused writes", Because: "a release that Redis refuses is not told and not repeated: the keys stay until their TTL"},
			{Check: "failover", Because: "rueidis stays with a server that is a primary no more"},
		},
		Rights: strategies.Rights{
			Keys:     []string{"rueidislock:?:{key}"},
			Commands: []string{"set", "get", "del", "pexpireat", "eval", "evalsha", "client|tracking", "ping"},
		},
	}, Defaults(), Open)
}

// Options tune rueidislock.
type Options struct {
	Tuned bool `opt:"tuned" help:"as documented for one Redis: one key instead of three, no messages about own changes (Redis 7.0.5), no limit of 20 ms for a try"`
}

// Defaults are rueidislock's own.
func Defaults() Options { return Options{} }

// Refine adapts the summary to one key.
func (o Options) Refine(info strategies.Info) strategies.Info {
	if o.Tuned {
		info.Summary = "redis/rueidis rueidislock: SET NX PXAT, woken by client-side caching"
	}
	return info
}

// prefix is rueidislock's default; our own prefix follows it.
const prefix = "rueidislock"

// Locker has one rueidis client.
type Locker struct {
	config goredis.Config
	line   *line
	peer   peer.Locker
	keys   int // per lock
	watch  *watch

	mu      sync.Mutex
	closed  bool
	held    map[*lease]struct{}
	running sync.WaitGroup // calls of rueidislock's that may outlast their caller
}

// Open returns a Locker on the first node, and connects to it.
func Open(config goredis.Config, options Options) (*Locker, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("rueidislock: %w", err)
	}
	l := &Locker{config: config, held: map[*lease]struct{}{}}
	var err error
	if l.line, err = newLine(config.Nodes[0].Options); err != nil {
		return nil, fmt.Errorf("rueidislock: %w", err)
	}
	set := peer.LockerOption{
		KeyPrefix:    prefix,
		KeyValidity:  config.TTL,
		KeyMajority:  2,
		ClientOption: l.line.option,
	}
	if options.Tuned {
		set.KeyMajority, set.NoLoopTracking, set.TryNextAfter = 1, true, config.TTL
	}
	l.keys = int(set.KeyMajority)*2 - 1
	if l.peer, err = peer.NewLocker(set); err != nil {
		return nil, fmt.Errorf("connect rueidis: %w", err)
	}
	l.watch = newWatch(l.peer.Client())
	return l, nil
}

// Acquire waits with rueidislock's WithContext.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		held, err := l.lock(ctx, key, l.peer.WithContext)
		if !errors.Is(err, errAgain) {
			return held, err
		}
	}
}

// TryAcquire tries once, with rueidislock's TryWithContext.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		held, err := l.lock(ctx, key, l.peer.TryWithContext)
		switch {
		case errors.Is(err, peer.ErrNotLocked):
			return nil, strategies.ErrHeld
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil, errors.Is(err, errAgain):
			continue // its own limit for a try, which says nothing of the lock
		}
		return held, err
	}
}

func (l *Locker) lock(ctx context.Context, key string, lock lockFunc) (strategies.Lease, error) {
	name := l.config.Key(key)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("lock %q: %w", name, err)
	}
	// rueidislock keeps the lock until the context of its wait ends; a lease outlives its
	// Acquire.
	lasting, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := l.watch.until(ctx, end)
	c := &call{lasting: lasting, end: end, result: make(chan result), abandoned: make(chan struct{})}
	if !l.begin(func() { c.run(name, lock) }) {
		stop()
		end(nil)
		return nil, strategies.ErrClosed
	}
	got := c.wait()
	inTime := stop()
	switch {
	case got.err == nil && inTime:
		return l.grant(&lease{locker: l, name: name, ctx: got.ctx, release: func() { got.release(); end(nil) }}), nil
	case got.err == nil:
		<-lasting.Done() // a function that stop did not prevent may not have ended it yet
		got.release()
	}
	if cause := context.Cause(lasting); cause != nil {
		got.err = cause // rueidislock says only that the context has ended
	}
	end(nil)
	return nil, fmt.Errorf("lock %q: %w", name, got.err)
}

// begin starts do, and Close waits for it; false means that the Locker is closed.
func (l *Locker) begin(do func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.running.Go(do)
	}
	return !l.closed
}

func (l *Locker) grant(held *lease) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[held] = struct{}{}
	return held
}

// Close closes the connections. rueidislock's own Close would release the leases, which only
// their holders may do: it is called when it can no longer do that.
func (l *Locker) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	held := l.held
	l.held = nil
	l.mu.Unlock()

	l.watch.stop()
	for lease := range held {
		lease.remember()
	}
	l.line.cut()
	l.peer.Client().Close()
	l.peer.Close()
	for lease := range held {
		lease.release() // waits for its goroutines
	}
	l.running.Wait()
	return nil
}
