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

// queue is a sequence of callers that come one after the other, so that their order is known, and release on command.
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

// come makes a caller request the lock.
func (q *queue) come(who string, p trial.Process) { q.comeFor("key", who, p, p.Config.TTL) }

// comeFor makes a caller request the lock on a key with the given TTL.
func (q *queue) comeFor(key, who string, p trial.Process, ttl time.Duration) {
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

// join makes a caller request a lock that is held, and returns when the caller waits, also at Redis.
func (q *queue) join(who string, p trial.Process) {
	q.t.Helper()
	q.joinFor("key", who, p, p.Config.TTL)
}

func (q *queue) joinFor(key, who string, p trial.Process, ttl time.Duration) {
	q.t.Helper()
	before, _ := handoff.Waiting(locker(p), key, ttl)
	q.comeFor(key, who, p, ttl)
	poll.Until(q.t, "they wait", func() bool {
		n, queued := handoff.Waiting(locker(p), key, ttl)
		return n == before+1 && queued
	})
}

// waiting returns when the given number of callers of a process wait.
func (q *queue) waiting(p trial.Process, want int) {
	q.t.Helper()
	poll.Until(q.t, "they wait", func() bool {
		n, queued := handoff.Waiting(locker(p), "key", p.Config.TTL)
		return n == want && queued
	})
}

func locker(p trial.Process) *handoff.Locker { return p.Locker.(*handoff.Locker) }

// next expects that the named caller gets the lock next.
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

// any returns the caller that gets the lock or an error next.
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

// turns expects that the named callers get the lock in this order, each after a release.
func (q *queue) turns(held *holding, order string) *holding {
	q.t.Helper()
	for who := range strings.FieldsSeq(order) {
		trial.Release(q.t, held)
		held = q.next(who)
	}
	return held
}

// drain lets the waiters have their turns in any order.
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

// leave cancels a caller and expects that it returns an error.
func (q *queue) leave(who string) {
	q.t.Helper()
	q.cancel[who]()
	if s := q.any(); s.who != who || !errors.Is(s.err, context.Canceled) {
		q.t.Fatalf("%s got: %v, when %s gave up", s.who, s.err, who)
	}
}

// length returns how many slots are queued at Redis.
func (q *queue) length() int64 { return q.server.LLen(context.Background(), list).Val() }

// do sends a command, written with spaces, to Redis.
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

// nothingLeft expects that there is no holder and no waiter, at Redis and in the processes.
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

// released releases a lease and repeats the release while it returns an error.
func released(t *testing.T, lease *holding) {
	t.Helper()
	poll.Until(t, "it is released", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		err := lease.Release(ctx)
		return err == nil || errors.Is(err, strategies.ErrNotHeld)
	})
}

// A release that ends after its local queue was forgotten must not remove the key's next local queue from the keeper,
// because the waiters of that queue would wait forever after a lost message.
func TestForgetsItsOwnLineOnly(t *testing.T) {
	t.Parallel()
	p := trial.Start(t, redistest.Start(t), "handoff", time.Hour)
	if !handoff.ForgottenTwice(locker(p), "key") {
		t.Error("the keeper does not check the waiters")
	}
}

// isHeld expects that a process cannot acquire the lock.
func isHeld(t *testing.T, p trial.Process) {
	t.Helper()
	if _, err := locker(p).TryAcquire(t.Context(), "key"); !errors.Is(err, strategies.ErrHeld) {
		t.Errorf("a try returned %v, want ErrHeld", err)
	}
}

// notHeld expects that a lease is over.
func notHeld(t *testing.T, lease strategies.Lease) {
	t.Helper()
	if err := lease.Release(context.Background()); !errors.Is(err, strategies.ErrNotHeld) {
		t.Errorf("the release of a lease that is over returned %v", err)
	}
}

// isLost reports whether the channel Lost of a lease is closed.
func isLost(lease strategies.Watched) bool {
	select {
	case <-lease.Lost():
		return true
	default:
		return false
	}
}

// process returns the name of a process that does not exist, and entry the text in Redis's queue for one of its
// slots.
func process(name string) string { return strings.Repeat(name, 26) }

func entry(name string, number int, ttl time.Duration) string {
	return fmt.Sprintf("%s:%d %d", process(name), number, ttl.Milliseconds())
}

// killSubscriptions makes Redis close the subscriptions of the processes.
func killSubscriptions(t *testing.T, server *redis.Client) {
	t.Helper()
	do(t, server, "CLIENT KILL TYPE pubsub")
}

// disconnect makes Redis close all connections except the test's own.
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

// books has one for each test and server.
var books sync.Map

func bookOf(t *testing.T, p trial.Process) *book {
	b := &book{t: t, holds: map[string]*holding{}, last: map[string]int64{}}
	found, _ := books.LoadOrStore(fmt.Sprint(t.Name(), p.Config.Nodes[0].Options.Addrs), b)
	return found.(*book)
}

// enter records a lease that was just granted, if err is nil.
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

// Release releases the lease, which its holder no longer relies on.
func (h *holding) Release(ctx context.Context) error {
	h.book.mu.Lock()
	h.left = true
	h.book.mu.Unlock()
	return h.Lease.Release(ctx)
}

// ends records that Redis loses the locks of a process's server, so that all their leases end.
func ends(t *testing.T, p trial.Process) {
	b := bookOf(t, p)
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.holds)
}

// acquire acquires the lock "key" and fails the test on an error.
func acquire(t *testing.T, p trial.Process) *holding { t.Helper(); return acquireKey(t, p, "key") }

func acquireKey(t *testing.T, p trial.Process, key string) *holding {
	t.Helper()
	lease, _ := enter(t, p, "the test", key, p.Acquire(t, key), nil)
	return lease
}

// try asks for the lock on a key without waiting.
func try(ctx context.Context, t *testing.T, p trial.Process, key string) (*holding, error) {
	lease, err := locker(p).TryAcquire(ctx, key)
	return enter(t, p, "the caller of a try", key, lease, err)
}
