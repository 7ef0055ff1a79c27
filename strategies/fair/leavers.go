package fair

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

const (
	// leaveLimit bounds one walk through the queue.
	leaveLimit = 5 * time.Second
	// leaveBatch is how many leave in one walk at most.
	leaveBatch = 1000
)

// leavers gathers those of a process who give up while others are being taken out of
// the queue. To leave costs Redis a walk through the whole queue: one by one, ten
// thousand clients that are stopped would keep it busy for a minute.
type leavers struct {
	client redis.UniversalClient
	done   sync.WaitGroup

	mu     sync.Mutex
	queued map[string][]*leaver // by lock; an entry while somebody works it off
}

type leaver struct {
	owner string
	wait  int64         // in ms
	gone  chan struct{} // closed once err is known
	err   error
}

func newLeavers(client redis.UniversalClient) *leavers {
	return &leavers{client: client, queued: map[string][]*leaver{}}
}

// leave returns when the owner has left the queue, or ctx ends; the work goes on
// then.
func (l *leavers) leave(ctx context.Context, held *redisson.Lease, wait int64) error {
	lock := held.Key
	me := &leaver{owner: held.Owner, wait: wait, gone: make(chan struct{})}
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

// work runs until nobody is left to leave that lock's queue.
func (l *leavers) work(lock string, topic redisson.Topic) {
	for {
		l.mu.Lock()
		batch := l.queued[lock]
		if len(batch) == 0 {
			delete(l.queued, lock)
			l.mu.Unlock()
			return
		}
		rest := batch[min(len(batch), leaveBatch):]
		batch = batch[:len(batch)-len(rest)]
		l.queued[lock] = rest
		l.mu.Unlock()

		err := l.remove(lock, topic, batch)
		for _, leaver := range batch {
			leaver.err = err
			close(leaver.gone)
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

// wait returns when all have left.
func (l *leavers) wait() { l.done.Wait() }
