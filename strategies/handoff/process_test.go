package handoff_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/trial"
)

const (
	patience = 20 * time.Second
	list     = "trial:key:handoff" // the lock "key"
)

// stranger is the id of a process that is not ours.
func stranger(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d:1", n) }

func entryOf(id string, ttl time.Duration) string {
	return fmt.Sprintf("%s 1 %d 1", id, ttl.Milliseconds())
}

func channelOf(id string) string { return "trial:handoff:" + strings.TrimSuffix(id, ":1") }

// line is waiters that queue one after the other.
type queue struct {
	t      *testing.T
	server *redis.Client
	ctx    context.Context
	served chan served
}

type served struct {
	n     int
	lease strategies.Lease
	err   error
}

func newQueue(t *testing.T, server *redistest.Server) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return &queue{t: t, server: server.Client(t), ctx: ctx, served: make(chan served, 1000)}
}

// join has waiter n queue, and returns when it stands in the queue.
func (q *queue) join(n int, p trial.Process) {
	q.t.Helper()
	before := q.length()
	go func() {
		lease, err := p.Locker.Acquire(q.ctx, "key")
		q.served <- served{n, lease, err}
	}()
	trial.Eventually(q.t, "a waiter is queued", func() bool { return q.length() > before })
}

// length is how many wait, and one.
func (q *queue) length() int64 { return q.server.LLen(context.Background(), list).Val() }

// next must be waiter n.
func (q *queue) next(n int) strategies.Lease {
	q.t.Helper()
	select {
	case s := <-q.served:
		if s.err != nil {
			q.t.Fatalf("waiter %d got: %v", s.n, s.err)
		}
		if s.n != n {
			q.t.Fatalf("waiter %d was served when it was waiter %d's turn", s.n, n)
		}
		return s.lease
	case <-time.After(patience):
		q.t.Fatalf("waiter %d is not served: %q", n, q.server.LRange(context.Background(), list, 0, 5).Val())
		return nil
	}
}

func fence(lease strategies.Lease) int64 { return lease.(strategies.Fenced).FencingToken() }
