// Package cohort is lock cohorting (Dice, Marathe and Shavit, PPoPP 2012) on Redis: a
// process that holds handoff's lock passes it to its own waiters, in the order in which
// they came, before it gives it up to the other processes.
//
// The first of a process's waiters has it queue at Redis, once, with a block of fencing
// tokens. When the lease arrives, all who wait in the process are its batch: each
// release passes the lease to the next of them, in memory. After the last the process
// releases it, and queues again behind the others if more have come meanwhile, in one
// script. So a batch costs Redis what handoff costs for one acquisition, EVALSHA,
// PUBLISH and what the scripts do inside; nothing is sent for a pass. With one client in
// each process cohort is handoff, command by command.
//
// Only who waited when the lease arrived is of the batch, and no more of them than the
// option batch says: others overtake a waiter by one batch of each other process for
// each of its own process's that it has to wait for, which is one unless its process has
// more waiters than a batch. A wait is at most twice that of handoff with linger=0s, which is
// first come, first served.
//
// It guarantees exclusion while a lease is valid, tokens that grow, and that a dead
// holder's lock goes on after the TTL, to the other waiters of a living process too. A
// lease is passed with half its TTL left, else it is extended first; nothing but a
// release extends it, so that a holder who is stuck does not keep the lock. If Redis does
// not say whether it has extended it, the lease is valid until when it was. It is also
// extended, to see that it is still there, when the connection has broken since. What
// breaks it is what breaks handoff, with whose Lockers of the same Prefix it shares the
// lock and the rights it needs; and Redis may lose its data during a batch. A process is
// told of a flush at once, if it has the right to CLIENT TRACKING, and notices a restart by
// its connection; it may pass the lock on for the moment that takes. Of a key that somebody
// deletes, or of a flush where it has not that right, it knows when it extends the lease next,
// after half a TTL at most.
package cohort

import (
	"context"
	_ "embed" // the package comment
	"errors"
	"fmt"
	"sync"

	"github.com/lockbench/lockbench/strategies"
)

//go:embed cohort.go
var source string

func init() {
	strategies.Register(strategies.Info{
		Name:        "cohort",
		Summary:     "a process passes handoff's lock on among its waiters before it gives it up",
		Doc:         strategies.PackageComment(source),
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, Fencing: true},
		Capacity:    1,
		Nodes:       1,
		Persistent:  []string{"{key}:handoff"},
		Connections: strategies.Connections{PerInstance: 1},
		Rights: strategies.Rights{
			Keys:     []string{"{key}"},
			Channels: []string{"{key}"},
			Commands: []string{"time", "lrange", "get", "lset", "pexpire", "rpush", "rpushx", "ltrim", "lindex", "lrem", "linsert", "set", "del", "publish", "subscribe", "evalsha", "script|load", "client|tracking"},
		},
	}, Defaults(), New)
}

// Options of the lock.
type Options struct {
	Batch int `opt:"batch" help:"most acquisitions that a process makes of one lease from Redis"`
}

// mostBatch keeps tokens from being reserved faster than handoff's clock for them runs.
const mostBatch = 1 << 14

// Defaults are batches of up to 1024.
func Defaults() Options { return Options{Batch: 1024} }

// Validate refuses what cannot be a batch.
func (o Options) Validate() error {
	if o.Batch < 1 || o.Batch > mostBatch {
		return fmt.Errorf("option batch: it must be between 1 and %d, not %d", mostBatch, o.Batch)
	}
	return nil
}

// Locker is one process's side of the lock. It is a strategies.Locker, Trier and
// Preparer.
type Locker struct {
	config strategies.Config
	size   int64 // of a batch
	lock   global
	agents sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	cohorts map[string]*cohort // by key, of those that somebody here holds or wants
}

// New returns a Locker on the first node. It does not talk to Redis yet.
func New(config strategies.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("cohort: %w", err)
	}
	lock, err := overHandoff(config)
	if err != nil {
		return nil, fmt.Errorf("cohort: %w", err)
	}
	return newLocker(config, options, lock), nil
}

func newLocker(config strategies.Config, options Options, lock global) *Locker {
	return &Locker{config: config, size: int64(options.Batch), lock: lock, cohorts: map[string]*cohort{}}
}

// Prepare connects, and sees that all rights are there.
func (l *Locker) Prepare(ctx context.Context, keys []string) error { return l.lock.Prepare(ctx, keys) }

// Acquire queues in the process, and the process at Redis, until the lock is the
// caller's or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	held, err := l.acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (l *Locker) acquire(ctx context.Context, key string) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire %q: %w", key, err)
	}
	c, place, err := l.enter(key)
	if err != nil {
		return nil, err
	}
	w := place.Value.(*waiter)
	select {
	case <-w.over:
		if w.passed {
			l.config.Probe.Wake(true)
		}
		return w.held, w.err
	case <-ctx.Done():
		c.leave(ctx, place)
		return nil, fmt.Errorf("acquire %q: %w", key, ctx.Err())
	}
}

// TryAcquire tries once, unless somebody of this process holds the lock or waits.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	c, err := l.begin(key)
	if err != nil {
		return nil, err
	}
	block, err := l.lock.try(ctx, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	c.working = false
	if err == nil {
		held := new(Lease)
		c.hold(newBatch(block, 0), held)
		return held, nil
	}
	if c.waiters.Len() > 0 { // they came meanwhile
		c.start(nil)
	} else {
		c.forget()
	}
	return nil, err
}

// Close hangs up. Leases can still be released; who waits all the same gets ErrClosed.
func (l *Locker) Close() error {
	l.mu.Lock()
	l.closed = true
	for _, c := range l.cohorts {
		c.fail(strategies.ErrClosed)
		if c.search != nil {
			c.search.cancel()
		}
	}
	l.mu.Unlock()
	l.agents.Wait()
	return l.lock.Close()
}
