package redisson

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

// The queue of fair and its deadlines.
const (
	queuePrefix     = "redisson_lock_queue"
	deadlinesPrefix = "redisson_lock_timeout"
)

var (
	//go:embed fair_purge.lua
	fairPurgeSource string
	//go:embed fair_acquire.lua
	fairAcquireSource string
	//go:embed fair_release.lua
	fairReleaseSource string
	//go:embed fair_leave.lua
	fairLeaveSource string

	fairAcquire = redis.NewScript(fairPurgeSource + fairAcquireSource)
	fairRelease = redis.NewScript(fairPurgeSource + fairReleaseSource)
	fairLeave   = redis.NewScript(fairLeaveSource)

	queueCommands = []string{"lindex", "lpop", "lrange", "lrem", "rpush", "zadd", "zincrby", "zrange", "zrem", "zscore"}
)

// FairOptions are those of fair.
type FairOptions struct {
	Watchdog bool `opt:"watchdog" help:"renew leases every TTL/3 while they are held"`
	// A dead waiter is noticed by its deadline: the deadline of the waiter before it (or the
	// holder's PTTL) plus WaitTimeout, or plus the longest that it would wait itself if that
	// is less. Whoever next takes or releases the lock drops overdue heads. A waiter that
	// gets the lock or gives up shifts the deadlines behind it. If it gives up while Redis is
	// out of reach, it leaves the queue as soon as Redis answers again, while its process
	// lives.
	WaitTimeout time.Duration `opt:"wait-timeout" help:"how long a dead waiter at the head of the queue holds up the others"`
	Sharded     string        `opt:"sharded" help:"on a cluster: tell releases by SPUBLISH (on), PUBLISH (off), or SPUBLISH where the servers know it (auto)"`
}

// FairDefaults are Redisson's: the watchdog runs, a dead waiter costs 5 minutes, sharded is auto.
func FairDefaults() FairOptions {
	return FairOptions{Watchdog: true, WaitTimeout: 5 * time.Minute, Sharded: redisson.ShardedAuto}
}

// common are those that every kind has.
func (o FairOptions) common() Options { return Options{Watchdog: o.Watchdog, Sharded: o.Sharded} }

// Validate rejects a wait-timeout below 1 ms, and an unknown value of sharded.
func (o FairOptions) Validate() error {
	var short error
	if o.WaitTimeout < time.Millisecond {
		short = fmt.Errorf("wait-timeout must be at least 1ms, not %v", o.WaitTimeout)
	}
	return errors.Join(short, o.common().Validate())
}

// Refine claims the watchdog when it runs.
func (o FairOptions) Refine(info strategies.Info) strategies.Info { return o.common().Refine(info) }

// queue is what fair says to Redis: only the head of the queue there takes the lock.
type queue struct {
	timeout time.Duration
	leaving *leavers
}

// fairKeys are lock, queue and deadlines, all of one hash slot.
func fairKeys(lock string) []string {
	return []string{lock, redisson.Prefixed(queuePrefix, lock), redisson.Prefixed(deadlinesPrefix, lock)}
}

// fairChannel is the beginning of a waiter's channel: ":" and the owner follow.
func fairChannel(lock string) string { return redisson.Prefixed("redisson_lock__channel", lock) }

func (*queue) Channel(held *redisson.Lease) string { return fairChannel(held.Key) + ":" + held.Owner }

func (*queue) Scripts() []*redis.Script { return []*redis.Script{fairAcquire, fairRelease, fairLeave} }

// wait is what a waiter adds to the deadline of the one before it, in ms: at most what it
// would wait itself. 0 means a try-lock, which does not queue.
func (q *queue) wait(held *redisson.Lease) int64 {
	if held.Wait == 0 {
		return 0
	}
	return max(min(q.timeout, held.Wait).Milliseconds(), 1)
}

func (q *queue) Acquire(
	ctx context.Context, client redis.Scripter, held *redisson.Lease,
) (taken bool, left time.Duration, err error) {
	var next redisson.Topic // tells the next waiter to look
	if held.Brief() {
		next = held.Topic(fairChannel(held.Key))
	}
	ms, err := fairAcquire.Run(ctx, client, fairKeys(held.Key),
		held.TTL(), held.Owner, time.Now().UnixMilli(), q.wait(held), next.Channel, next.Command()).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return true, 0, nil
	case err != nil:
		return false, 0, err
	}
	return false, held.ParkFor(ms), nil
}

func (*queue) Granted(held *redisson.Lease) strategies.Lease { return held }

func (*queue) Release(ctx context.Context, client redis.Scripter, held *redisson.Lease) (freed bool, err error) {
	topic := held.Topic(fairChannel(held.Key))
	code, err := fairRelease.Run(ctx, client, fairKeys(held.Key),
		held.TTL(), held.Owner, time.Now().UnixMilli(), topic.Channel, topic.Command(), held.Stay()).Int()
	if errors.Is(err, redis.Nil) || err == nil && code < 0 {
		return false, strategies.ErrNotHeld
	}
	return code == 1, err
}

// Leave takes a waiter that has given up out of the queue.
func (q *queue) Leave(ctx context.Context, held *redisson.Lease) error {
	return q.leaving.leave(ctx, held, q.wait(held))
}

const (
	// leaveLimit bounds one walk through the queue.
	leaveLimit = 5 * time.Second
	// leaveBatch is how many leave in one walk at most.
	leaveBatch = 1000
	// leaveAgain is how soon waiters that Redis did not hear try again.
	leaveAgain = 200 * time.Millisecond
	// leaveLongest is how long they try. After that Redis was out of reach for longer than
	// Redisson leaves a dead waiter at the head.
	leaveLongest = 5 * time.Minute
)

// leavers gathers the waiters of a process that give up while others are being taken out of
// the queue. To leave costs Redis a walk through the whole queue: one by one, ten thousand
// stopped clients would keep it busy for a minute.
//
// A waiter that gives up because Redis is out of reach cannot leave either, and would stay in
// the queue like a dead one. Its caller does not wait for that, but the process goes on
// trying.
type leavers struct {
	client  redis.UniversalClient
	done    sync.WaitGroup
	closing context.Context // once it has ended there is one more try for each
	hurry   context.CancelFunc

	mu     sync.Mutex
	queued map[string][]*leaver // by lock; a lock has an entry while work runs for it
}

type leaver struct {
	owner string
	wait  int64 // in ms
	since time.Time

	tried bool
	gone  chan struct{} // closed after the first try, when err is known
	err   error
}

func newLeavers(client redis.UniversalClient) *leavers {
	l := &leavers{client: client, queued: map[string][]*leaver{}}
	l.closing, l.hurry = context.WithCancel(context.Background())
	return l
}

// leave takes the owner out of the queue. It returns when that is done, when the first try
// has failed, or when ctx ends. After the last two, a goroutine goes on trying.
func (l *leavers) leave(ctx context.Context, held *redisson.Lease, wait int64) error {
	lock := held.Key
	me := &leaver{owner: held.Owner, wait: wait, since: time.Now(), gone: make(chan struct{})}
	l.mu.Lock()
	others, busy := l.queued[lock]
	l.queued[lock] = append(others, me)
	if !busy {
		l.done.Go(func() { l.work(lock, held.Topic(fairChannel(lock))) })
	}
	l.mu.Unlock()
	select {
	case <-me.gone:
		return me.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work runs until no waiter is left to leave that lock's queue.
func (l *leavers) work(lock string, topic redisson.Topic) {
	for {
		last := l.closing.Err() != nil
		batch := l.next(lock)
		if len(batch) == 0 {
			return
		}
		err := l.remove(lock, topic, batch)
		for _, leaver := range batch {
			if !leaver.tried {
				leaver.tried, leaver.err = true, err
				close(leaver.gone)
			}
		}
		if err == nil || last || errors.Is(err, redis.ErrClosed) {
			continue
		}
		l.again(lock, batch)
		pause.Plain(l.closing.Done(), leaveAgain)
	}
}

// next returns those that leave in the next walk; none ends the work.
func (l *leavers) next(lock string) []*leaver {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.queued[lock]
	if len(all) == 0 {
		delete(l.queued, lock)
		return nil
	}
	n := min(len(all), leaveBatch)
	l.queued[lock] = all[n:]
	return all[:n:n]
}

// again queues them once more, behind those that have not tried yet.
func (l *leavers) again(lock string, batch []*leaver) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, leaver := range batch {
		if time.Since(leaver.since) < leaveLongest {
			l.queued[lock] = append(l.queued[lock], leaver)
		}
	}
}

func (l *leavers) remove(lock string, topic redisson.Topic, batch []*leaver) error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	args := []any{topic.Channel, topic.Command()}
	for _, leaver := range batch {
		args = append(args, leaver.owner, leaver.wait)
	}
	return fairLeave.Run(ctx, l.client, fairKeys(lock), args...).Err()
}

// close returns when all have left, or have tried once more.
func (l *leavers) close() error {
	l.hurry()
	l.done.Wait()
	return nil
}
