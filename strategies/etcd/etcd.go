// Package etcd adapts the lock of etcd's client, concurrency.Mutex. The lock is a queue of keys NAME/LEASE. Each key is
// bound to the lease of a session. The key with the smallest create revision holds the lock.
//
//  1. Acquire takes an unused session and sends one transaction, which puts the session's key and reads the oldest key
//     of the queue (or, with watch=next, the youngest key before its own).
//  2. A waiter watches the key before its own for its deletion. When this key is deleted, the waiter looks up the key
//     before its own again.
//  3. Release sends one transaction, which deletes the key if it still has the create revision of step 1.
//
// A release, and the end of a holder's session, delete one key, which wakes the one waiter that watches it.
//
// etcd.md describes guarantees, costs and failure modes.
package etcd

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/lockbench/lockbench/strategies"
)

//go:embed etcd.md
var doc string

// Strategy returns the Info, the options and the constructor of the lock, for registration as etcd.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:      doc,
		Name:     "etcd",
		Summary:  "etcd's own Mutex: a queue of keys with leases; each client waits for the key before its own",
		Claims:   strategies.Claims{Exclusion: true, Recovery: true, FIFO: true, Fencing: true, Watchdog: true},
		Capacity: 1,
		Store:    "etcd",
		Nodes:    1,
		Keys:     []string{"{key}/*"},
		Session:  true,
		Library:  "go.etcd.io/etcd/client/v3",
		Libraries: []strategies.Library{
			{Language: "Go", Package: "go.etcd.io/etcd/client/v3/concurrency", Call: "NewMutex"},
		},
	}), Defaults(), Open)
}

// Config is the configuration of the lock. A node is the client of one etcd cluster of one or more members. The caller
// owns the client.
type Config = strategies.ConfigOf[*clientv3.Client]

// Options are the options that a user can set, as in etcd:watch=next.
type Options struct {
	Watch Watch `opt:"watch" help:"how a waiter watches the key before its own: mutex, as concurrency.Mutex does, or next, without its steps of 100 ms"`
}

// Defaults returns the Options with which a waiter waits in the same way as in the library's Mutex.
func Defaults() Options { return Options{Watch: ByMutex} }

// Watch is the value of the option watch: how a waiter watches the key before its own.
type Watch string

// These are the values of the option watch.
const (
	ByMutex Watch = "mutex" // as concurrency.Mutex
	ByNext  Watch = "next"  // with a watch from the next revision
)

// Validate returns an error for an unknown value of watch, including the empty string.
func (o Options) Validate() error {
	if o.Watch != ByMutex && o.Watch != ByNext {
		return fmt.Errorf("option watch must be %s or %s, not %q", ByMutex, ByNext, o.Watch)
	}
	return nil
}

// Refine sets BlackBox for ByMutex, because the library's Mutex does not report attempts. For ByNext it removes the
// libraries, because no library waits in this way.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.BlackBox = o.Watch == ByMutex
	if !info.BlackBox {
		info.Libraries = nil
	}
	return info
}

// Locker acquires locks for all goroutines of one process, and owns the sessions that it opens for them.
type Locker struct {
	config   Config
	options  Options
	client   *clientv3.Client
	sessions sessions
}

// Open returns a Locker on the first node. It does not contact etcd yet.
func Open(config Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	l := &Locker{config: config, options: options, client: config.Nodes[0]}
	l.sessions.init(l.client, config.TTL)
	return l, nil
}

// Prepare makes a session for each expected caller.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	return l.sessions.fill(ctx, l.config.Callers)
}

// Acquire joins the queue and waits until the caller holds the lock or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	lock := byMutex((*concurrency.Mutex).Lock)
	if l.options.Watch == ByNext {
		lock = l.byNext
	}
	return l.acquire(ctx, key, lock)
}

// TryAcquire joins the queue. If another key is before the caller's key, it leaves the queue and returns ErrHeld.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, byMutex((*concurrency.Mutex).TryLock))
}

// entry is a key in the queue, bound to a session. Its name is LOCK/LEASE.
type entry struct {
	key     string
	created int64 // the revision that created it
}

// enqueue puts a session's key into the queue with the given name. It returns when this key is the oldest in the
// queue.
type enqueue func(ctx context.Context, s *session, name string) (entry, error)

// byMutex returns an enqueue function that calls lock, which is the method Lock or TryLock of the library's Mutex.
func byMutex(lock func(*concurrency.Mutex, context.Context) error) enqueue {
	return func(ctx context.Context, s *session, name string) (entry, error) {
		m := concurrency.NewMutex(s.Session, name)
		if err := lock(m, ctx); err != nil {
			return entry{}, err
		}
		owner := m.IsOwner() // not Header().Revision, which may be the revision of a later request
		return entry{m.Key(), owner.GetCompare().GetCreateRevision()}, nil
	}
}

// acquire joins the queue with a session. If the session ends before the caller's turn, acquire joins again with
// another session.
func (l *Locker) acquire(ctx context.Context, key string, lock enqueue) (strategies.Lease, error) {
	name := escaped(l.config.Key(key))
	for {
		s, err := l.sessions.take(ctx)
		if err != nil {
			return nil, fmt.Errorf("make a session for %q: %w", name, err)
		}
		e, err := s.within(ctx, func(ctx context.Context) (entry, error) { return lock(ctx, s, name) })
		switch {
		case err == nil:
			return &lease{locker: l, session: s, lost: s.Done(), entry: e}, nil
		case errors.Is(err, concurrency.ErrLocked):
			l.sessions.put(s)
			return nil, strategies.ErrHeld
		}
		expired := s.over() || errors.Is(err, concurrency.ErrSessionExpired) ||
			errors.Is(err, rpctypes.ErrLeaseNotFound)
		l.sessions.revoke(s)
		switch {
		case ctx.Err() != nil:
			return nil, fmt.Errorf("queue for %q: %w", name, ctx.Err())
		case !expired:
			return nil, fmt.Errorf("queue for %q: %w", name, err)
		}
	}
}

// Close makes further acquires fail with ErrClosed and ends the unused sessions. It stops renewing the sessions of held
// leases, which then end when their TTL expires; until then the leases can be released.
func (l *Locker) Close() error {
	l.sessions.close()
	return nil
}

// escaped returns the name with slashes escaped, so that no lock's keys are below the name of another lock.
func escaped(name string) string { return strings.NewReplacer("%", "%25", "/", "%2F").Replace(name) }

// lease is the oldest key of a queue, by which its owner holds the lock.
type lease struct {
	locker  *Locker
	session *session // nil once Release has put it back or revoked it
	lost    <-chan struct{}
	entry   entry
	over    bool // nothing is left to release
}

// FencingToken returns the revision that created the holder's key.
func (held *lease) FencingToken() int64 { return held.entry.created }

// Lost returns a channel that is closed when the session is over: etcd has ended it, no renewal has succeeded for its
// TTL, or the Locker was closed.
func (held *lease) Lost() <-chan struct{} { return held.lost }

// Release deletes the key and keeps the session for a later acquire. If the deletion fails, Release ends the session,
// which also deletes the key.
func (held *lease) Release(ctx context.Context) error {
	if held.over {
		return strategies.ErrNotHeld
	}
	own := clientv3.Compare(clientv3.CreateRevision(held.entry.key), "=", held.entry.created)
	undated, cancel := withoutDeadline(ctx)
	defer cancel()
	answer, err := held.locker.client.Txn(undated).If(own).Then(clientv3.OpDelete(held.entry.key)).Commit()
	if s := held.session; s != nil {
		held.session = nil
		if err == nil && answer.Succeeded {
			held.locker.sessions.put(s)
		} else {
			held.locker.sessions.revoke(s)
		}
	}
	switch {
	case err == nil && answer.Succeeded:
		held.over = true
		return nil
	case err == nil:
		held.over = true
		return strategies.ErrNotHeld
	case ctx.Err() != nil:
		err = ctx.Err()
	}
	return fmt.Errorf("delete %q: %w", held.entry.key, err)
}

// withoutDeadline returns a context that ends with ctx but has no deadline. If etcd knew the deadline, a server whose
// clock is ahead would return its own timeout error before ctx ends.
func withoutDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	undated, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	return undated, func() { stop(); cancel() }
}
