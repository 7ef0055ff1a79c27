package locktest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// localLock is one instance of an in-process semaphore, which serves waiters in the order of arrival. With the fault
// "goesRound", it serves all present waiters of one instance before those of the next.
type localLock struct {
	defects
	permits int
	config  goredis.Config
	closed  bool
	*localKeys
}

// localKeys holds the queue of each key. All instances of a lock share one localKeys.
type localKeys struct {
	mu   sync.Mutex
	keys map[string]*localQueue
}

type localQueue struct {
	holders       []*localLease
	waiters       []*localWaiter
	grants, fence int64
	woken         *localLease
	batch         int // remaining turns of the instance that was served last
}

type localWaiter struct {
	of      *localLock
	owner   string
	granted chan *localLease // buffered, capacity 1
	gone    bool
}

func newLocalLock(f defects, permits int, config goredis.Config, keys *localKeys) *localLock {
	if f["morePermits"] {
		permits++
	}
	return &localLock{defects: f, permits: permits, config: config, localKeys: keys}
}

func (l *localLock) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = !l.defects["neverCloses"]
	if l.defects["robs"] {
		for _, q := range l.keys {
			for _, h := range q.holders {
				h.count = 0
			}
		}
	}
	return nil
}

func (l *localLock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, "")
}

func (l *localLock) AcquireAs(ctx context.Context, key, owner string) (strategies.Lease, error) {
	return l.acquire(ctx, key, owner)
}

func (l *localLock) TryAcquire(_ context.Context, key string) (strategies.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.config.Probe.Attempt()
	q := l.queue(key)
	mine := func(h *localLease) bool { return h.lock == l }
	if len(q.holders) < l.permits || l.defects["shares"] && slices.ContainsFunc(q.holders, mine) {
		return l.grant(q, ""), nil
	}
	return nil, strategies.ErrHeld
}

// queue returns the queue of a key, and creates it if the key is new. The caller holds mu.
func (l *localLock) queue(key string) *localQueue {
	key = l.config.Key(key)
	q := l.keys[key]
	if q == nil {
		q = &localQueue{}
		l.keys[key] = q
	}
	return q
}

func (l *localLock) acquire(ctx context.Context, key, owner string) (strategies.Lease, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, strategies.ErrClosed
	}
	l.config.Probe.Attempt()
	q := l.queue(key)
	if owner != "" && !l.defects["forgetful"] {
		for _, h := range q.holders {
			if h.owner == owner {
				h.count++
				l.mu.Unlock()
				return h, nil
			}
		}
	}
	if len(q.holders) < l.permits {
		defer l.mu.Unlock()
		return l.grant(q, owner), nil
	}
	place := &localWaiter{of: l, owner: owner, granted: make(chan *localLease, 1)}
	switch last := len(q.waiters) - 1; {
	case l.defects["lastFirst"]:
		q.waiters = slices.Insert(q.waiters, 0, place)
	case l.defects["swaps"] && last >= 0 && last%2 == 0:
		q.waiters = slices.Insert(q.waiters, last, place)
	default:
		q.waiters = append(q.waiters, place)
	}
	l.mu.Unlock()

	ended := ctx.Done()
	if l.defects["deaf"] {
		ended = nil
	}
	select {
	case lease := <-place.granted:
		return lease, nil
	case <-ended:
	}
	if l.defects["ghosts"] {
		return nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if place.gone = true; l.defects["skipsNone"] && slices.Contains(q.waiters, place) {
		return nil, ctx.Err()
	}
	if i := slices.Index(q.waiters, place); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
	} else {
		l.free(q, <-place.granted)
	}
	return nil, ctx.Err()
}

// grant adds a lease of owner to the holders of q. The caller holds mu.
func (l *localLock) grant(q *localQueue, owner string) *localLease {
	if q.grants++; !l.defects["repeats"] || q.grants%3 != 0 {
		q.fence++
	}
	lease := &localLease{lock: l, queue: q, owner: owner, count: 1, fence: q.fence}
	q.holders = append(q.holders, lease)
	return lease
}

// free ends a lease. If a client waits, free grants a new lease to the next waiter. The caller holds mu.
func (l *localLock) free(q *localQueue, lease *localLease) {
	q.holders = slices.DeleteFunc(q.holders, func(h *localLease) bool { return h == lease })
	if len(q.waiters) == 0 || l.defects["oneAtATime"] && q.woken != nil && q.woken.count > 0 {
		q.batch = 0
		return
	}
	n := l.next(q)
	next := q.waiters[n]
	q.waiters = slices.Delete(q.waiters, n, n+1)
	if !next.gone {
		q.woken = next.of.grant(q, next.owner)
		next.granted <- q.woken
	}
}

// next returns the index in q.waiters of the waiter to serve. The caller holds mu.
func (l *localLock) next(q *localQueue) (n int) {
	if !l.defects["goesRound"] {
		return 0
	}
	own := slices.IndexFunc(q.waiters, func(w *localWaiter) bool { return w.of == l })
	if own >= 0 && (q.batch > 0 || l.defects["forEver"]) {
		q.batch--
		return own
	}
	if own >= 0 && l.defects["barges"] {
		n = own
	}
	q.batch = -1
	for _, w := range q.waiters {
		if w.of == q.waiters[n].of {
			q.batch++
		}
	}
	return n
}

type localLease struct {
	lock  *localLock
	queue *localQueue
	owner string
	count int
	fence int64
}

func (lease *localLease) FencingToken() int64 { return lease.fence }

func (lease *localLease) Release(context.Context) error {
	l := lease.lock
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease.count == 0 {
		return strategies.ErrNotHeld
	}
	if lease.count--; lease.count == 0 {
		l.free(lease.queue, lease)
	}
	return nil
}

// quorumLock requests the lock from all nodes concurrently. A client holds it if a majority of the nodes has granted
// it.
type quorumLock struct {
	defects
	config   goredis.Config
	instance string
	last     atomic.Int64
	closed   atomic.Bool
}

func newQuorumLock(f defects, config goredis.Config) *quorumLock {
	return &quorumLock{defects: f, config: config, instance: uuid.NewString()}
}

func (l *quorumLock) needed() int {
	n := len(l.config.Nodes) / 2
	if l.defects["half"] {
		return n
	}
	return n + 1
}

// each calls do for all nodes concurrently and returns the number of calls that returned true.
func (l *quorumLock) each(do func(redis.UniversalClient) bool) int {
	var count atomic.Int64
	var all sync.WaitGroup
	for _, node := range l.config.Nodes {
		all.Go(func() {
			if do(node.Client) {
				count.Add(1)
			}
		})
	}
	all.Wait()
	return int(count.Load())
}

func (l *quorumLock) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	if l.closed.Load() {
		return nil, strategies.ErrClosed
	}
	lease := &quorumLease{lock: l, name: l.config.Key(key)}
	for {
		l.config.Probe.Attempt()
		// Each round has a new token, so that a late command of one round has no effect on a later round.
		lease.token, lease.freed, lease.released = fmt.Sprint(l.instance, l.last.Add(1)), 0, false
		lease.until = time.Now().Add(l.config.TTL)
		votes := l.each(func(client redis.UniversalClient) bool {
			return client.SetNX(ctx, lease.name, lease.token, l.config.TTL).Val()
		})
		if votes >= l.needed() && time.Now().Before(lease.until) {
			return lease, nil
		}
		_ = lease.Release(context.WithoutCancel(ctx))
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d nodes: %w", votes, len(l.config.Nodes), ctx.Err())
		case <-time.After(time.Duration(5+rand.IntN(20)) * time.Millisecond):
		}
	}
}

func (l *quorumLock) Close() error {
	l.closed.Store(true)
	return nil
}

var quorumRelease = redis.NewScript(`
	if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
	return 0`)

type quorumLease struct {
	lock        *quorumLock
	name, token string
	until       time.Time
	freed       int // the number of nodes that have freed the lock
	released    bool
}

func (lease *quorumLease) ValidUntil() time.Time { return lease.until }

// Release returns nil once a majority of the nodes has freed the lock. Nodes that an earlier call has freed count too,
// so a failed release can be repeated.
func (lease *quorumLease) Release(ctx context.Context) error {
	var failed atomic.Int64
	lease.freed += lease.lock.each(func(client redis.UniversalClient) bool {
		n, err := quorumRelease.Run(ctx, client, []string{lease.name}, lease.token).Int()
		if err != nil {
			failed.Add(1)
		}
		return n == 1
	})
	switch needed := lease.lock.needed(); {
	case lease.freed+int(failed.Load()) < needed || lease.released:
		return strategies.ErrNotHeld
	case lease.freed < needed:
		return fmt.Errorf("%d of %d nodes freed it, and %d failed", lease.freed, len(lease.lock.config.Nodes),
			failed.Load())
	}
	lease.released = true
	return nil
}
