// Package stream is a lock whose releases are told on a stream, so that whoever was
// not listening reads them later: no wake-up is lost, and one that was trimmed away
// is missed by its number.
//
// An uncontended acquire is one EVALSHA (a SET inside), a release another (GET, DEL,
// PTTL): one round trip each. A waiter's first try also notes that it waits (SADD)
// and learns the holder's PTTL and the stream's last entry; then it parks, and
// tries once more for each wake-up, one EVALSHA each. It need not try again between
// the look and the wait: a release in between stands in the stream, behind the entry
// that it has seen.
//
// A release adds an entry only when somebody waits. All waiters of a Locker share
// one connection that blocks in an XREAD of all the locks they wait for, from the
// last entries seen on; a CLIENT UNBLOCK makes it read one lock more. An entry wakes
// one waiter of each Locker, the longest waiting: P processes make P attempts for
// each release, of which one succeeds. Newcomers may barge in between. An expired
// lock is told to nobody: every waiter looks for itself when its PTTL is over.
//
// When the reader's connection breaks it reads on from where it was, and one waiter
// of each lock looks, in case the server has lost its memory. Entries that were
// trimmed away meanwhile, or a server that does not know the waiters any more, make
// all of them look.
//
// It guarantees exclusion while a lease is valid, frees a dead holder's lock after
// the TTL, and lets nobody but the owner release or extend. Lock, waiters and stream
// are three keys of one hash slot; of the last two nothing is left when nobody
// waits, and what a dead waiter leaves expires.
//
// What breaks it: a holder that works on past ValidUntil; a failover to a replica
// that had not seen the SET. A reader's connection that is dead without being closed
// costs a PTTL for each wake-up until XREAD times out. Where CLIENT UNBLOCK is not
// allowed the wake-ups of a lock that nobody in the process waited for before may
// come a second late. With a client that retries by itself (MaxRetries other than
// -1), an acquire whose reply was lost waits for its own token to expire.
package stream

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
	"github.com/lockbench/lockbench/strategies/internal/owner"
	"github.com/lockbench/lockbench/strategies/internal/token"
	"github.com/lockbench/lockbench/strategies/internal/validity"
)

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Name:        "stream",
		Summary:     "a release is added to a stream that each process reads with XREAD BLOCK",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true},
		Capacity:    1,
		Nodes:       1,
		NoCluster:   noCluster,
		Connections: strategies.Connections{PerInstance: 1},
		Limits:      []strategies.Limit{strategies.ByRedisClock()},
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Commands: []string{"set", "sadd", "srem", "xadd", "xread", "xrevrange", "exists", "pttl", "client|id", "client|unblock", "ping", "eval", "evalsha", "get", "del", "pexpire", "script|load"},
		},
	}, Options{}, Open)
}

const noCluster = "one XREAD cannot read from all nodes of a cluster"

var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed release.lua
	releaseSource string

	acquireScript = redis.NewScript(acquireSource)
	releaseScript = redis.NewScript(releaseSource)
)

// Options are none.
type Options struct{}

// Locker is one process's side of the lock.
type Locker struct {
	config goredis.Config
	client redis.UniversalClient
	owners *owner.Names
	reader *reader
	closed atomic.Bool
}

// Open returns a Locker on the first node, which must not be a cluster. It does not
// talk to Redis yet.
func Open(config goredis.Config, _ Options) (*Locker, error) {
	node, err := goredis.Server(config, "stream", noCluster)
	if err != nil {
		return nil, err
	}
	return &Locker{config: config, client: node.Client, owners: owner.New(), reader: newReader(node)}, nil
}

// Prepare loads the scripts and opens the reader's connection.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	if err := goredis.Load(ctx, l.client, acquireScript, releaseScript); err != nil {
		return err
	}
	if err := l.reader.connect(ctx); err != nil {
		return fmt.Errorf("open the reader's connection: %w", err)
	}
	return nil
}

// Acquire waits until the lock is held or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, found, err := l.begin(ctx, key, "first")
	if err == nil && !found.taken {
		err = l.wait(ctx, held, found)
	}
	if err != nil {
		return nil, err
	}
	return held, nil
}

// TryAcquire tries once.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, found, err := l.begin(ctx, key, "try")
	if err != nil {
		return nil, err
	}
	if !found.taken {
		return nil, strategies.ErrHeld
	}
	return held, nil
}

// Close ends the reader. Leases can still be released.
func (l *Locker) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	return l.reader.close()
}

// begin makes the first attempt.
func (l *Locker) begin(ctx context.Context, key, mode string) (*token.Announced, finding, error) {
	if l.closed.Load() {
		return nil, finding{}, strategies.ErrClosed
	}
	keys := token.AnnouncedKeys(l.config.Key(key), "wakeups")
	held := &token.Announced{
		Lease: token.Lease{Client: l.client, Name: keys[0], Token: l.owners.Next()},
		Keys:  keys, Script: releaseScript, Argument: 0,
	}
	found, err := l.try(ctx, held, mode)
	return held, found, err
}

// wait parks until the lock is the caller's.
func (l *Locker) wait(ctx context.Context, held *token.Announced, found finding) error {
	w := l.reader.join(held.Keys[2], found.last)
	timer := time.NewTimer(found.left)
	defer timer.Stop()
	for {
		var woken permit
		select {
		case woken = <-w.wake:
		case <-timer.C:
		case <-ctx.Done():
			woken.err = ctx.Err()
		}
		if woken.err != nil {
			l.reader.leave(w, false)
			l.abandon(ctx, held)
			return fmt.Errorf("wait for %q: %w", held.Name, woken.err)
		}
		found, err := l.try(ctx, held, "again")
		l.config.Probe.Wake(found.taken)
		if found.forgotten && !woken.all {
			l.reader.wakeAll(w)
		}
		if found.taken || err != nil {
			// A waiter that fails may have used a wake-up that another needs.
			l.reader.leave(w, err != nil)
			return err
		}
		timer.Reset(found.left)
	}
}

// finding is what an attempt has found.
type finding struct {
	taken bool
	// forgotten says that the server did not know of this waiter: it may have missed
	// wake-ups.
	forgotten bool
	left      time.Duration // how long to park at most
	last      position      // from where on to read
}

// try makes one attempt. After an error the lock is not held and nothing is left.
func (l *Locker) try(ctx context.Context, held *token.Announced, mode string) (finding, error) {
	l.config.Probe.Attempt()
	held.Until.Set(time.Now().Add(l.config.TTL))
	reply, err := acquireScript.Run(ctx, l.client, held.Keys, held.Token, l.config.TTL.Milliseconds(), mode).Slice()
	if err == nil {
		found := l.understand(reply)
		if !found.taken || time.Now().Before(held.ValidUntil()) {
			return found, nil
		}
		err = validity.ErrLate
		if mode != "try" { // a waiter tries again
			l.abandon(ctx, held)
			return l.try(ctx, held, "first")
		}
	}
	if errors.Is(err, validity.ErrLate) || indeterminate.MayHaveRun(err) || mode == "again" {
		l.abandon(ctx, held)
	}
	return finding{}, fmt.Errorf("acquire %q: %w", held.Name, indeterminate.Because(ctx, err))
}

// understand reads a reply of the acquire script.
func (l *Locker) understand(reply []any) finding {
	found := finding{taken: reply[0] == int64(1), forgotten: reply[1] == int64(1)}
	if found.taken {
		return found
	}
	switch ms := reply[2].(int64); {
	case ms < 0: // it has no TTL: another program has set it
		found.left = l.config.TTL
	default:
		// 0 means less than a millisecond: wait for one, do not poll without a pause.
		found.left = time.Duration(max(ms, 1)) * time.Millisecond
	}
	found.last = parse(reply[3].(string))
	found.last.number = reply[4].(int64)
	return found
}

// abandon removes every trace of a caller that gives up. If that fails, all traces expire.
func (l *Locker) abandon(ctx context.Context, held *token.Announced) {
	settle, done := indeterminate.Settle(ctx)
	defer done()
	_ = releaseScript.Run(settle, l.client, held.Keys, held.Token, 1).Err()
}
