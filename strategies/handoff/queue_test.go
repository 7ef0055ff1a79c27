package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	lock     = "trial:key" // the key in Redis
	list     = "trial:key:handoff"
)

// queue lets callers request the lock one after the other, so that a test knows their order. Each holder keeps its
// lease until the test releases it.
type queue struct {
	t      *testing.T
	server *redis.Client
	ctx    context.Context
	cancel map[string]context.CancelFunc
	served chan served
	insist bool // a caller that gets an error asks again
}

type served struct {
	key, who string
	lease    *holding
	err      error
}

func newQueue(t *testing.T, server *redistest.Server) *queue { return newQueueOn(t, lookAt(t, server)) }

func newQueueOn(t *testing.T, server *redis.Client) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return &queue{
		t: t, server: server, ctx: ctx,
		cancel: map[string]context.CancelFunc{}, served: make(chan served, 2000),
	}
}

// come makes caller who of process p request the lock "key" in a goroutine.
func (q *queue) come(who string, p trial.Process) { q.requestWithTTL("key", who, p, p.Config.TTL) }

// requestWithTTL makes caller who of process p request the lock on key in a goroutine. q.served receives the result.
func (q *queue) requestWithTTL(key, who string, p trial.Process, ttl time.Duration) {
	ctx, cancel := context.WithCancel(q.ctx)
	q.cancel[who] = cancel
	go func() {
		lease, err := locker(p).AcquireFor(ctx, key, ttl)
		for q.insist && err != nil && ctx.Err() == nil {
			time.Sleep(250 * time.Millisecond)
			lease, err = locker(p).AcquireFor(ctx, key, ttl)
		}
		held, err := enter(q.t, p, who, key, lease, err)
		q.served <- served{key, who, held, err}
	}()
}

// join makes a caller request the lock "key", which must be held, and returns when the caller waits and Redis has
// confirmed its slot.
func (q *queue) join(who string, p trial.Process) {
	q.t.Helper()
	q.joinFor("key", who, p, p.Config.TTL)
}

func (q *queue) joinFor(key, who string, p trial.Process, ttl time.Duration) {
	q.t.Helper()
	before, _ := handoff.Waiting(locker(p), key, ttl)
	q.requestWithTTL(key, who, p, ttl)
	poll.Until(q.t, "they wait", func() bool {
		n, queued := handoff.Waiting(locker(p), key, ttl)
		return n == before+1 && queued
	})
}

// waiting returns when exactly want callers of the process wait for "key" and Redis has confirmed their slots.
func (q *queue) waiting(p trial.Process, want int) {
	q.t.Helper()
	poll.Until(q.t, "they wait", func() bool {
		n, queued := handoff.Waiting(locker(p), "key", p.Config.TTL)
		return n == want && queued
	})
}

func locker(p trial.Process) *handoff.Locker { return p.Locker.(*handoff.Locker) }

// next waits for the next caller that gets the lock and returns the lease. The test fails if this caller is not who.
func (q *queue) next(who string) *holding {
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

// any waits for the next caller whose Acquire returns, with a lease or an error. The test fails if none returns within
// patience.
func (q *queue) any() served {
	q.t.Helper()
	select {
	case s := <-q.served:
		return s
	case <-time.After(patience):
		if q.server == nil {
			q.t.Fatal("no caller gets the lock")
		}
		ctx := context.Background()
		q.t.Fatalf("no caller gets the lock, which is %q; the queue is %q",
			q.server.Get(ctx, lock).Val(), q.server.LRange(ctx, list, 0, 5).Val())
		return served{}
	}
}

// For each name in order, turns releases the current lease and waits for the next holder. The test fails if that holder
// has another name. turns returns the last lease.
func (q *queue) turns(held *holding, order string) *holding {
	q.t.Helper()
	for who := range strings.FieldsSeq(order) {
		trial.Release(q.t, held)
		held = q.next(who)
	}
	return held
}

// drain releases the lease, then lets the given number of waiters get and release the lock, in any order.
func (q *queue) drain(held *holding, waiting int) {
	q.t.Helper()
	for range waiting {
		trial.Release(q.t, held)
		s := q.any()
		if s.err != nil {
			q.t.Fatalf("%s got: %v", s.who, s.err)
		}
		held = s.lease
	}
	trial.Release(q.t, held)
}

// leave cancels a caller's wait. The test fails unless that caller then returns context.Canceled.
func (q *queue) leave(who string) {
	q.t.Helper()
	q.cancel[who]()
	if s := q.any(); s.who != who || !errors.Is(s.err, context.Canceled) {
		q.t.Fatalf("%s got: %v, when %s gave up", s.who, s.err, who)
	}
}

// length returns how many slots are queued at Redis.
func (q *queue) length() int64 { return q.server.LLen(context.Background(), list).Val() }

// do sends a command to Redis. Spaces separate its words.
func (q *queue) do(command string) { q.t.Helper(); do(q.t, q.server, command) }

func do(t *testing.T, server *redis.Client, command string) {
	t.Helper()
	var words []any
	for word := range strings.FieldsSeq(command) {
		words = append(words, word)
	}
	if err := server.Do(context.Background(), words...).Err(); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
}

// nothingLeft waits until the server has no keys and the processes have no lease, waiter, slot or pending release.
func (q *queue) nothingLeft(processes ...trial.Process) {
	q.t.Helper()
	poll.Until(q.t, "nothing is left at Redis", func() bool {
		n, err := q.server.DBSize(context.Background()).Result()
		return n == 0 && err == nil
	})
	left := ""
	defer func() {
		if left != "" {
			q.t.Logf("left in a process: %s", left)
		}
	}()
	for _, p := range processes {
		poll.Until(q.t, "nothing is left in a process", func() bool {
			left = handoff.Left(locker(p))
			return left == ""
		})
	}
}

// released repeats the release of a lease until it succeeds or the lease is no longer held.
func released(t *testing.T, lease *holding) {
	t.Helper()
	poll.Until(t, "it is released", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := lease.Release(ctx)
		return err == nil || errors.Is(err, strategies.ErrNotHeld)
	})
}

// The release of a lease may end after the lease's local queue was removed and the key got a new local queue. That
// release must not remove the new local queue from the keeper. Otherwise no check would find that a message was lost,
// and the waiters of the new local queue would wait forever.
func TestReleaseForgetsOnlyItsOwnQueue(t *testing.T) {
	t.Parallel()
	p := trial.Start(t, redistest.Start(t), "handoff", time.Hour)
	if !handoff.ForgottenTwice(locker(p), "key") {
		t.Error("the keeper does not check the waiters")
	}
}

// isHeld fails the test unless TryAcquire in the process returns ErrHeld.
func isHeld(t *testing.T, p trial.Process) {
	t.Helper()
	if _, err := locker(p).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("a try returned %v, want ErrHeld", err)
	}
}

// notHeld fails the test unless the release of the lease returns ErrNotHeld.
func notHeld(t *testing.T, lease strategies.Lease) {
	t.Helper()
	if err := lease.Release(context.Background()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the release of a lease that is over returned %v", err)
	}
}

func isLost(lease strategies.Watched) bool {
	select {
	case <-lease.Lost():
		return true
	default:
		return false
	}
}

// process returns the name of a process that does not exist: the letter name, repeated 26 times to the length of a real
// process name.
func process(name string) string { return strings.Repeat(name, 26) }

func entry(name string, number int, ttl time.Duration) string {
	return fmt.Sprintf("%s:%d %d", process(name), number, ttl.Milliseconds())
}

func killSubscriptions(t *testing.T, server *redis.Client) {
	t.Helper()
	do(t, server, "CLIENT KILL TYPE pubsub")
}

// disconnect makes Redis close all connections except the one on which the test sends this command.
func disconnect(t *testing.T, server *redis.Client) {
	t.Helper()
	killSubscriptions(t, server)
	do(t, server, "CLIENT KILL TYPE normal SKIPME yes")
}

// book records the holders of a server's locks in a test. It reports concurrent holders of one lock and tokens that
// do not increase.
type book struct {
	t     *testing.T
	mu    sync.Mutex
	holds map[string]*holding // the latest of each key
	last  map[string]int64    // largest token of each key
}

// holding is a lease that is recorded in a book until it is released.
type holding struct {
	*handoff.Lease
	who, key string
	book     *book
	left     bool // the book's mutex guards it
}

// books maps each test and server to its *book.
var books sync.Map

func bookOf(t *testing.T, p trial.Process) *book {
	b := &book{t: t, holds: map[string]*holding{}, last: map[string]int64{}}
	found, _ := books.LoadOrStore(fmt.Sprint(t.Name(), p.Config.Nodes[0].Options.Addrs), b)
	return found.(*book)
}

// enter records a lease that Acquire or TryAcquire has returned. It reports a violation if another valid lease exists
// or if the token did not increase. If err is not nil, enter returns err.
func enter(t *testing.T, p trial.Process, who, key string, lease strategies.Lease, err error) (*holding, error) {
	if err != nil {
		return nil, err
	}
	b := bookOf(t, p)
	h := &holding{Lease: handoff.Behind(lease), who: who, key: key, book: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	now, other := time.Now(), b.holds[key]
	if other != nil && !other.left && now.Before(other.ValidUntil()) && now.Before(h.ValidUntil()) {
		t.Errorf("%s got %q with token %d while %s held it with token %d",
			who, key, h.FencingToken(), other.who, other.FencingToken())
	}
	b.holds[key] = h
	if _, fenced := lease.(strategies.Fenced); !fenced {
		return h, nil
	}
	if h.FencingToken() <= b.last[key] {
		t.Errorf("%s got token %d of %q after %d", who, h.FencingToken(), key, b.last[key])
	}
	b.last[key] = max(b.last[key], h.FencingToken())
	return h, nil
}

// Release records that the holder no longer relies on the lease, and then releases it.
func (h *holding) Release(ctx context.Context) error {
	h.book.mu.Lock()
	h.left = true
	h.book.mu.Unlock()
	return h.Lease.Release(ctx)
}

// ends records that the Redis server of p has lost all its locks. The server's book then counts no lease as held.
func ends(t *testing.T, p trial.Process) {
	b := bookOf(t, p)
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.holds)
}

func acquire(t *testing.T, p trial.Process) *holding { t.Helper(); return acquireKey(t, p, "key") }

func acquireKey(t *testing.T, p trial.Process, key string) *holding {
	t.Helper()
	lease, _ := enter(t, p, "the test", key, p.Acquire(t, key), nil)
	return lease
}

func try(ctx context.Context, t *testing.T, p trial.Process, key string) (*holding, error) {
	lease, err := locker(p).TryAcquire(ctx, key)
	return enter(t, p, "the caller of a try", key, lease, err)
}
