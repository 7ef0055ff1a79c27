package redisson

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

const (
	// bufferSize is for a subscription connection: its messages are short, and there may be
	// ten thousand connections.
	bufferSize = 4 << 10
	// dials is how many connections are opened at a time.
	dials = 32
)

// herd is a redisson.Line in which every waiter has a connection and a subscription
// of its own.
type herd struct {
	client  redis.UniversalClient
	callers int

	mu   sync.Mutex
	free map[bool][]*redisson.Subscriber // by whether they are for sharded channels
}

func newHerd(node goredis.Node, callers int) (*herd, error) {
	client, err := node.Dial(func(o *redis.Options) {
		o.MinIdleConns = 0 // only subscriptions are opened
		o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	})
	return &herd{client: client, callers: callers, free: map[bool][]*redisson.Subscriber{}}, err
}

// Open opens the connections that waiters are expected to need for PUBLISH.
func (h *herd) Open(ctx context.Context) error {
	h.mu.Lock()
	missing := int64(h.callers - len(h.free[false]))
	h.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(missing, dials) {
		workers.Go(func() {
			for next.Add(1) <= missing && ctx.Err() == nil {
				s := redisson.NewSubscriber(h.client, redisson.One)
				if err := s.Open(ctx); err != nil {
					cancel(err) // only the first error is returned
				}
				h.put(s, false)
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// Join subscribes on a free connection, or a new one.
func (h *herd) Join(ctx context.Context, topic redisson.Topic) (redisson.Place, error) {
	s := h.take(topic.Sharded)
	place, err := s.Join(ctx, topic)
	switch {
	case err == nil:
		return head{place, h, s, topic.Sharded}, nil
	case topic.Sharded:
		// Its subscription may still succeed, and the next may be to another node.
		return nil, errors.Join(err, s.Close())
	default:
		h.put(s, false)
		return nil, err
	}
}

func (h *herd) take(sharded bool) *redisson.Subscriber {
	h.mu.Lock()
	defer h.mu.Unlock()
	free := h.free[sharded]
	if last := len(free) - 1; last >= 0 {
		h.free[sharded] = free[:last]
		return free[last]
	}
	if cluster, ok := h.client.(*redis.ClusterClient); ok && sharded {
		return redisson.NewShardSubscriber(cluster, redisson.One)
	}
	return redisson.NewSubscriber(h.client, redisson.One)
}

func (h *herd) put(s *redisson.Subscriber, sharded bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free[sharded] = append(h.free[sharded], s)
}

// Close closes all connections.
func (h *herd) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var problems []error
	for _, s := range append(h.free[false], h.free[true]...) {
		problems = append(problems, s.Close())
	}
	clear(h.free)
	return errors.Join(append(problems, h.client.Close())...)
}

// head is the place of one waiter in the herd.
type head struct {
	redisson.Place
	herd    *herd
	own     *redisson.Subscriber
	sharded bool
}

// Leave also gives the connection back.
func (w head) Leave(handOn bool) {
	w.Place.Leave(handOn)
	w.herd.put(w.own, w.sharded)
}
