package redisson

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

// These are the prefixes of two keys of fair: the queue of waiters, and the deadlines after which waiters count as
// dead.
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

// FairOptions are the options of fair, which implements Redisson's RFairLock.
type FairOptions struct {
	WatchdogOption
	// WaitTimeout determines the deadline of each waiter, after which the waiter counts as dead. This deadline is that of
	// the previous waiter in the queue plus WaitTimeout. If the waiter's context allows only a shorter wait than
	// WaitTimeout, that wait is added instead. For the first waiter, the end of the holder's PTTL takes the place of the
	// previous deadline. The next acquire or release of the lock removes dead waiters from the head of the queue. When a
	// waiter gets the lock or gives up, the time that it had added is subtracted from the deadlines of all waiters behind
	// it. If a waiter gives up while Redis is unreachable, its process removes it from the queue as soon as Redis replies
	// again.
	WaitTimeout time.Duration `opt:"wait-timeout" help:"how long a dead waiter at the head of the queue blocks the others"`
	Sharded     string        `opt:"sharded" help:"on a cluster: publish releases by SPUBLISH (on), by PUBLISH (off), or by SPUBLISH where the servers support it (auto)"`
}

// FairDefaults returns Redisson's defaults: the watchdog runs, a dead waiter blocks the queue for 5 minutes, and
// sharded is auto.
func FairDefaults() FairOptions {
	return FairOptions{WatchdogOption{true}, 5 * time.Minute, redisson.ShardedAuto}
}

// Validate rejects a wait-timeout below 1 ms, and an unknown value of sharded.
func (o FairOptions) Validate() error {
	var short error
	if o.WaitTimeout < time.Millisecond {
		short = fmt.Errorf("wait-timeout must be at least 1ms, not %v", o.WaitTimeout)
	}
	return errors.Join(short, redisson.ValidSharded(o.Sharded))
}

// queue is the protocol of fair. Waiters queue in Redis, and only the head of the queue can take the lock.
type queue struct {
	timeout time.Duration
	leaving *leavers
}

// fairKeys returns the keys of the lock, the queue and the deadlines, all in one hash slot.
func fairKeys(lock string) []string {
	return []string{lock, redisson.Prefixed(queuePrefix, lock), redisson.Prefixed(deadlinesPrefix, lock)}
}

// channel returns the channel on which only the waiter for this lease is notified.
func (*queue) channel(held *lease) string { return channelOf(held.key) + ":" + held.owner }

func (*queue) scripts() []*redis.Script { return []*redis.Script{fairAcquire, fairRelease, fairLeave} }

// wait returns the time in ms from the previous waiter's deadline to this waiter's deadline: WaitTimeout, or the
// waiter's longest wait if that is shorter. It returns 0 for a try-lock, which does not queue.
func (q *queue) wait(held *lease) int64 {
	if held.wait == 0 {
		return 0
	}
	return max(min(q.timeout, held.wait).Milliseconds(), 1)
}

func (q *queue) acquire(ctx context.Context, client redis.Scripter, held *lease) (answer, error) {
	var next redisson.Topic // where a granted acquire wakes the next waiter, because a brief lease ends early
	if held.brief {
		next = held.topic(channelOf(held.key))
	}
	return held.answered(fairAcquire.Run(ctx, client, fairKeys(held.key), held.term.Milliseconds(), held.owner,
		time.Now().UnixMilli(), q.wait(held), next.Channel, next.Command()))
}

func (*queue) granted(held *lease) strategies.Lease { return held }

func (*queue) release(ctx context.Context, client redis.Scripter, held *lease, one bool) error {
	topic := held.topic(channelOf(held.key))
	return released(fairRelease.Run(ctx, client, fairKeys(held.key), held.term.Milliseconds(), held.owner,
		time.Now().UnixMilli(), topic.Channel, topic.Command(), one))
}

const (
	// leaveLimit is the longest time that one run of the leave script may take.
	leaveLimit = 5 * time.Second
	// leaveBatch is the largest number of waiters that one run of the leave script removes.
	leaveBatch = 1000
	// leaveAgain is the pause before another run of the leave script for waiters that may not have left the queue yet.
	leaveAgain = 200 * time.Millisecond
	// leaveGrace is how long a waiter still waits for the first removal from the queue after its context has ended.
	leaveGrace = 100 * time.Millisecond
	// leaveLongest is how long a failed removal is repeated. It equals the time for which Redisson, by default, keeps a
	// dead waiter at the head of the queue.
	leaveLongest = 5 * time.Minute
)

// leavers removes waiters that give up from the queues in Redis. Waiters that give up while a removal is under way are
// collected and removed together. Each removal makes Redis scan the whole queue, so removing ten thousand stopped
// clients one by one would keep Redis busy for a minute.
//
// A waiter that gives up because Redis is unreachable cannot be removed at that time, and would stay in the queue like
// a dead waiter. Its caller does not wait for the removal, but the process keeps trying.
type leavers struct {
	client  redis.UniversalClient
	calls   bounded.Calls
	tasks   background.Group
	closing context.Context    // after it has ended, each waiter gets one more try
	hurry   context.CancelFunc // ends closing
	ctx     context.Context    // ends when close gives up
	stop    context.CancelFunc

	mu     sync.Mutex
	queued map[string][]*leaver // by lock; a lock has an entry while work is running for it
}

type leaver struct {
	owner string
	wait  int64 // the waiter's share of the deadline, in ms
	since time.Time
	tried chan struct{} // closed after the first try, and then set to nil
	// asked is closed at the end of an acquire that got no reply; nil if there is none. Redis may still execute that
	// acquire and thereby queue the owner again.
	asked   <-chan struct{}
	answers int // number of replies to tries that were sent after asked was closed
}

// isOver reports whether no acquire of the waiter is still running. A removal that is sent then is sent later than
// every acquire of the waiter.
func (w *leaver) isOver() bool {
	select {
	case <-w.asked:
		return true
	default:
		return w.asked == nil
	}
}

// hasLeft counts a reply to a removal. It reports whether the waiter has left the queue and no command can queue it
// again. over is true if the removal was sent after asked was closed. If an acquire got no reply, two such replies are
// needed: Redis may read the first removal before the acquire, but it reads the acquire before the second removal.
func (w *leaver) hasLeft(over bool) bool {
	if over {
		w.answers++
	}
	return w.asked == nil || w.answers >= 2
}

func newLeavers(client redis.UniversalClient) *leavers {
	l := &leavers{client: client, queued: map[string][]*leaver{}}
	l.closing, l.hurry = context.WithCancel(context.Background())
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// leave removes a waiter that has given up from the queue. It returns after the first try, or leaveGrace after ctx has
// ended. If the try fails, a goroutine repeats it for up to leaveLongest.
func (q *queue) leave(ctx context.Context, held *lease) {
	l, lock, topic := q.leaving, held.key, held.topic(channelOf(held.key))
	tried := make(chan struct{})
	me := &leaver{owner: held.owner, wait: q.wait(held), since: time.Now(), tried: tried, asked: held.open}
	ctx, cancel := shortlyAfter(ctx)
	defer cancel()
	l.mu.Lock()
	others, busy := l.queued[lock]
	if !busy && !l.tasks.Go(func() { l.work(lock, topic) }) { // the group is closed
		l.mu.Unlock()
		_ = l.remove(ctx, lock, topic, []*leaver{me})
		return
	}
	l.queued[lock] = append(others, me)
	l.mu.Unlock()
	select {
	case <-tried:
	case <-ctx.Done():
	}
}

// shortlyAfter returns a context that ends leaveGrace after the end of ctx, but after leaveLimit at the latest.
func shortlyAfter(ctx context.Context) (context.Context, context.CancelFunc) {
	later, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveLimit)
	stop := context.AfterFunc(ctx, func() {
		pause.Plain(later.Done(), leaveGrace)
		cancel()
	})
	return later, func() { stop(); cancel() }
}

// work removes waiters from a lock's queue, in batches, until none is left.
func (l *leavers) work(lock string, topic redisson.Topic) {
	var again []*leaver // waiters that need another try
	for {
		last := l.closing.Err() != nil
		batch := l.next(lock, again)
		if len(batch) == 0 {
			return
		}
		over := map[*leaver]bool{}
		for _, leaver := range batch {
			over[leaver] = leaver.isOver()
		}
		ctx, cancel := context.WithTimeout(l.ctx, leaveLimit)
		err := l.remove(ctx, lock, topic, batch)
		cancel()
		again = nil
		for _, leaver := range batch {
			if leaver.tried != nil {
				close(leaver.tried)
				leaver.tried = nil
			}
			left := err == nil && leaver.hasLeft(over[leaver]) || errors.Is(err, redis.ErrClosed)
			if !left && !last && time.Since(leaver.since) < leaveLongest {
				again = append(again, leaver)
			}
		}
		if len(again) > 0 {
			pause.Plain(l.closing.Done(), leaveAgain)
		}
	}
}

// next returns the waiters that the next run removes: those that have given up since the last run, followed by those in
// again. If there are none, next deletes the lock's entry in queued and returns nil, and work must end.
func (l *leavers) next(lock string, again []*leaver) []*leaver {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Concat(l.queued[lock], again)
	if len(all) == 0 {
		delete(l.queued, lock)
		return nil
	}
	n := min(len(all), leaveBatch)
	l.queued[lock] = all[n:]
	return all[:n:n]
}

func (l *leavers) remove(ctx context.Context, lock string, topic redisson.Topic, batch []*leaver) error {
	args := []any{topic.Channel, topic.Command()}
	for _, leaver := range batch {
		args = append(args, leaver.owner, leaver.wait)
	}
	return l.calls.Do(ctx, func() error {
		_, err := redisson.Integer(fairLeave.Run(ctx, l.client, fairKeys(lock), args...))
		return err
	})
}

// close waits until each waiter has left or has had one more try, for at most two seconds.
func (l *leavers) close() {
	deadline := time.Now().Add(bounded.Patience)
	l.hurry()
	late := time.AfterFunc(bounded.Patience, l.stop)
	l.tasks.Close()
	late.Stop()
	l.stop()
	l.calls.CloseBy(deadline)
}
