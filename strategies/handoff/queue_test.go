package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/testkit/poll"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/handoff"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

const (
	patience = time.Minute
	lock     = "trial:key" // as Redis has it
	list     = "trial:key:handoff"
)

// queue is callers who come one after the other, so that who came when is known, and
// release when they are told to.
type queue struct {
	t      *testing.T
	server *redis.Client
	ctx    context.Context
	cancel map[string]context.CancelFunc
	served chan served
	last   int64 // token
}

type served struct {
	who   string
	lease *handoff.Lease
	err   error
}

func newQueue(t *testing.T, server *redistest.Server) *queue { return newQueueOn(t, server.Client(t)) }

func newQueueOn(t *testing.T, server *redis.Client) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return &queue{
		t: t, server: server, ctx: ctx,
		cancel: map[string]context.CancelFunc{}, served: make(chan served, 2000),
	}
}

// come has somebody ask for the lock.
func (q *queue) come(who string, p trial.Process) { q.comeFor(who, p, p.Config.TTL) }

// comeFor has somebody ask for the lock with a TTL of his own.
func (q *queue) comeFor(who string, p trial.Process, ttl time.Duration) {
	ctx, cancel := context.WithCancel(q.ctx)
	q.cancel[who] = cancel
	go func() {
		lease, err := locker(p).AcquireFor(ctx, "key", ttl)
		held, _ := lease.(*handoff.Lease)
		q.served <- served{who, held, err}
	}()
}

// join has somebody ask for a lock that another has, and returns when he waits, also at
// Redis.
func (q *queue) join(who string, p trial.Process) {
	q.t.Helper()
	before, _ := handoff.Waiting(locker(p), "key")
	q.come(who, p)
	q.waiting(p, before+1)
}

// waiting returns when so many of a process wait.
func (q *queue) waiting(p trial.Process, want int) {
	q.t.Helper()
	poll.Until(q.t, "they wait", func() bool {
		n, queued := handoff.Waiting(locker(p), "key")
		return n == want && queued
	})
}

func locker(p trial.Process) *handoff.Locker { return p.Locker.(*handoff.Locker) }

// next must be that one, with a larger token than all before.
func (q *queue) next(who string) *handoff.Lease {
	q.t.Helper()
	s := q.any()
	if s.err != nil {
		q.t.Fatalf("%s got: %v", s.who, s.err)
	}
	if s.who != who {
		q.t.Fatalf("%s was served when it was %s's turn", s.who, who)
	}
	return s.lease
}

// any is who is served next, or gets an error.
func (q *queue) any() served {
	q.t.Helper()
	select {
	case s := <-q.served:
		if s.err == nil {
			if token := s.lease.FencingToken(); token <= q.last {
				q.t.Errorf("%s got token %d after %d", s.who, token, q.last)
			}
			q.last = s.lease.FencingToken()
		}
		return s
	case <-time.After(patience):
		ctx := context.Background()
		q.t.Fatalf("nobody is served: the lock is %q, the queue %q", q.server.Get(ctx, lock).Val(), q.server.LRange(ctx, list, 0, 5).Val())
		return served{}
	}
}

// turns must be theirs, in that order, each after a release.
func (q *queue) turns(held *handoff.Lease, order string) *handoff.Lease {
	q.t.Helper()
	for who := range strings.FieldsSeq(order) {
		trial.Release(q.t, held)
		held = q.next(who)
	}
	return held
}

// leave has somebody give up, who must be told so.
func (q *queue) leave(who string) {
	q.t.Helper()
	q.cancel[who]()
	if s := q.any(); s.who != who || !errors.Is(s.err, context.Canceled) {
		q.t.Fatalf("%s got: %v, when %s gave up", s.who, s.err, who)
	}
}

// length is how many places are queued at Redis.
func (q *queue) length() int64 { return q.server.LLen(context.Background(), list).Val() }

// nothingLeft expects that nobody has the lock or waits, at Redis and in the processes.
func (q *queue) nothingLeft(processes ...trial.Process) {
	q.t.Helper()
	poll.Until(q.t, "nothing is left at Redis", func() bool {
		n, err := q.server.DBSize(context.Background()).Result()
		return n == 0 && err == nil
	})
	for _, p := range processes {
		poll.Until(q.t, "nothing is left in a process", func() bool { return handoff.Quiet(locker(p)) })
	}
}

// acquire is a lease of a lock that is free.
func acquire(t testing.TB, p trial.Process) *handoff.Lease {
	t.Helper()
	return p.Acquire(t, "key").(*handoff.Lease)
}

// notHeld expects that a lease is over.
func notHeld(t *testing.T, lease strategies.Lease) {
	t.Helper()
	if err := lease.Release(context.Background()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the release of a lease that is over returned %v", err)
	}
}

// isLost says whether a lease's holder has been told that it is over.
func isLost(lease strategies.Watched) bool {
	select {
	case <-lease.Lost():
		return true
	default:
		return false
	}
}

// process is the name of one that is not ours, and entry what stands in Redis's queue for
// one of its places.
func process(name string) string { return strings.Repeat(name, 26) }

func entry(name string, number int, ttl time.Duration) string {
	return fmt.Sprintf("%s:%d %d", process(name), number, ttl.Milliseconds())
}

// A release that ends after its line was forgotten must not take the next line of the key
// from the keeper: its waiters would wait for ever if a message of theirs was lost.
func TestForgetsItsOwnLineOnly(t *testing.T) {
	t.Parallel()
	p := trial.Start(t, redistest.Start(t), "handoff", time.Hour)
	if !handoff.ForgottenTwice(locker(p), "key") {
		t.Error("nobody looks after those who wait")
	}
}
