// Package etcd is the lock that comes with etcd's client: concurrency.Mutex. Who wants it
// writes a key under the lock's name, bound to a lease; whose key is the oldest holds it, and
// everybody else waits for the key before his own to be deleted.
//
// etcd.md has the rest: what it guarantees, what breaks it, and what it costs.
package etcd

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goetcd"
)

//go:embed etcd.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(Defaults().Refine(strategies.Info{
		Doc:     doc,
		Name:    "etcd",
		Summary: "etcd's own Mutex: a queue of keys with leases, each waiting for the one before",
		Claims: strategies.Claims{
			Exclusion: true, Recovery: true, FIFO: true, Fencing: true, Watchdog: true,
		},
		Capacity:  1,
		Store:     "etcd",
		Nodes:     1,
		Keys:      []string{"{key}/*"},
		Session:   true,
		Library:   "go.etcd.io/etcd/client/v3",
		Libraries: []strategies.Library{{Language: "Go", Package: "go.etcd.io/etcd/client/v3/concurrency", Call: "NewMutex"}},
	}), Defaults(), Open)
}

// Refine says that the Mutex does not report what it does, and that no library waits the
// other way.
func (o Options) Refine(info strategies.Info) strategies.Info {
	info.BlackBox = o.Watch == ByMutex
	if !info.BlackBox {
		info.Libraries = nil
	}
	return info
}

// Options of the lock.
type Options struct {
	Watch    Watch    `opt:"watch" help:"how waiters wait: mutex, as concurrency.Mutex, or next, served without its steps of 100 ms"`
	Sessions Sessions `opt:"sessions" help:"pooled: sessions are kept for the next acquisition; fresh: each makes its own"`
}

// Defaults returns the library's Mutex, with sessions that are kept.
func Defaults() Options { return Options{Watch: ByMutex, Sessions: Pooled} }

// Watch is how waiters wait.
type Watch string

// The ways to wait.
const (
	ByMutex Watch = "mutex" // as concurrency.Mutex
	ByNext  Watch = "next"  // with a watch that is served at once
)

// UnmarshalText takes one of the ways' names.
func (w *Watch) UnmarshalText(text []byte) error { return choose(w, text, ByMutex, ByNext) }

// Sessions is where sessions come from.
type Sessions string

// The sources of sessions.
const (
	Pooled Sessions = "pooled" // kept for the next acquisition
	Fresh  Sessions = "fresh"  // made for each
)

// UnmarshalText takes one of the sources' names.
func (s *Sessions) UnmarshalText(text []byte) error { return choose(s, text, Pooled, Fresh) }

func choose[T ~string](to *T, text []byte, one, other T) error {
	switch chosen := T(text); chosen {
	case one, other:
		*to = chosen
		return nil
	default:
		return fmt.Errorf("%q is neither %s nor %s", text, one, other)
	}
}

// Validate returns an error that names each option with an unknown value.
func (o Options) Validate() error {
	return errors.Join(o.Watch.UnmarshalText([]byte(o.Watch)), o.Sessions.UnmarshalText([]byte(o.Sessions)))
}

// Locker queues up in one etcd, of one or several members.
type Locker struct {
	config   goetcd.Config
	client   *clientv3.Client
	queue    queue
	sessions *sessions
	closed   atomic.Bool
}

// queue is how callers queue up: each by a key that is bound to its session. name has no
// slash, and keys are name/lease.
type queue interface {
	// lock returns when the caller's key is the oldest. After an error the session says
	// whether a key may be left.
	lock(ctx context.Context, s *session, name string) (entry, error)
	// tryLock returns concurrency.ErrLocked when there is an older key.
	tryLock(ctx context.Context, s *session, name string) (entry, error)
}

// entry is a key in the queue.
type entry struct {
	key     string
	created int64 // the revision that made it
}

// Open returns a Locker on the first node. It does not talk to etcd yet.
func Open(config goetcd.Config, options Options) (*Locker, error) {
	if err := errors.Join(config.Validate(1), options.Validate()); err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	l := &Locker{config: config, client: config.Nodes[0].Client, queue: byMutex{}}
	if options.Watch == ByNext {
		l.queue = byNext{config.Probe}
	}
	seconds := int64((config.TTL + time.Second - 1) / time.Second)
	l.sessions = newSessions(l.client, seconds, options.Sessions == Pooled)
	return l, nil
}

// Prepare makes as many sessions as there will be callers.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	return l.sessions.fill(ctx, l.config.Callers)
}

// Acquire queues up, and waits until the lock is held or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, l.queue.lock)
}

// TryAcquire queues up, and leaves the queue if another key is before its own.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, l.queue.tryLock)
}

// acquire locks in a session. If the session ends before its turn, acquire tries again with
// another.
func (l *Locker) acquire(ctx context.Context, key string, lock func(context.Context, *session, string) (entry, error)) (strategies.Lease, error) {
	name := escaped(l.config.Key(key))
	for {
		if l.closed.Load() {
			return nil, strategies.ErrClosed
		}
		s, err := l.sessions.take(ctx)
		if err != nil {
			return nil, fmt.Errorf("make a session for %q: %w", name, because(ctx, err))
		}
		e, err := s.within(ctx, func(ctx context.Context) (entry, error) { return lock(ctx, s, name) })
		if err == nil && !s.over() {
			return &lease{locker: l, session: s, lost: s.Done(), entry: e}, nil
		}
		over := s.over() || errors.Is(err, concurrency.ErrSessionExpired) || errors.Is(err, rpctypes.ErrLeaseNotFound)
		l.sessions.giveBack(s, s.clean && !over)
		switch {
		case errors.Is(err, concurrency.ErrLocked):
			return nil, strategies.ErrHeld
		case ctx.Err() == nil && over:
		case err == nil:
			return nil, fmt.Errorf("queue for %q: %w", name, ctx.Err())
		default:
			return nil, fmt.Errorf("queue for %q: %w", name, because(ctx, err))
		}
	}
}

// Close refuses further calls and ends the sessions. Those of held leases end when their TTL
// has passed; until then the leases can be released.
func (l *Locker) Close() error {
	l.closed.Store(true)
	l.sessions.close()
	return nil
}

// timedOut says whether etcd ended a request at its deadline, which etcd knows from the
// caller's context. If the deadline ended something that etcd itself waited for, such as its own
// agreement, etcd has errors of its own for that, or passes on the text of the error without its
// code.
func timedOut(err error) bool {
	if etcd, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return etcd.Code() == codes.DeadlineExceeded || errors.Is(etcd, rpctypes.ErrTimeout) ||
			errors.Is(etcd, rpctypes.ErrTimeoutDueToLeaderFail) || errors.Is(etcd, rpctypes.ErrTimeoutDueToConnectionLost)
	}
	told, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	if !ok {
		return false
	}
	code := told.GRPCStatus().Code()
	return code == codes.DeadlineExceeded || code == codes.Unknown && told.GRPCStatus().Message() == context.DeadlineExceeded.Error()
}

// escaped is a name without slashes: the name of one lock and a slash must not begin the name
// of another.
func escaped(name string) string {
	return strings.NewReplacer("%", "%25", "/", "%2F").Replace(name)
}

// because adds the context's error to err if the context has ended.
func because(ctx context.Context, err error) error {
	if deadline, has := ctx.Deadline(); has && timedOut(err) && time.Until(deadline) < time.Second {
		<-ctx.Done() // etcd knows the deadline, and its timer was first
	}
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
