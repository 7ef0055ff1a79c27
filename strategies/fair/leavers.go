package fair

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

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
		l.done.Go(func() { l.work(lock, held.Topic(channel(lock))) })
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
	return leaveScript.Run(ctx, l.client, keys(lock), args...).Err()
}

// close returns when all have left, or have tried once more.
func (l *leavers) close() {
	l.hurry()
	l.done.Wait()
}
