package pubsubbroadcast

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/internal/redisson"
)

const (
	// bufferSize of a subscription connection: its messages are short, and there may
	// be ten thousand of them.
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
	free []*redisson.Subscriber
}

func newHerd(node strategies.Node, callers int) *herd {
	client := node.Dial(func(o *redis.UniversalOptions) {
		o.MinIdleConns = 0 // only subscriptions are opened
		o.ReadBufferSize, o.WriteBufferSize = bufferSize, bufferSize
	})
	return &herd{client: client, callers: callers}
}

// Open opens the connections that are expected to be needed.
func (h *herd) Open(ctx context.Context) error {
	h.mu.Lock()
	missing := int64(h.callers - len(h.free))
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
					cancel(err) // the first one is what is told
				}
				h.put(s)
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// Join subscribes on a free connection, or a new one.
func (h *herd) Join(ctx context.Context, channel string) (redisson.Place, error) {
	s := h.take()
	place, err := s.Join(ctx, channel)
	if err != nil {
		h.put(s)
		return nil, err
	}
	return head{place, h, s}, nil
}

func (h *herd) take() *redisson.Subscriber {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := len(h.free) - 1
	if last < 0 {
		return redisson.NewSubscriber(h.client, redisson.One)
	}
	s := h.free[last]
	h.free = h.free[:last]
	return s
}

func (h *herd) put(s *redisson.Subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = append(h.free, s)
}

// Close closes all connections.
func (h *herd) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var faults []error
	for _, s := range h.free {
		faults = append(faults, s.Close())
	}
	h.free = nil
	return errors.Join(append(faults, h.client.Close())...)
}

// head is one of the herd.
type head struct {
	redisson.Place
	herd *herd
	own  *redisson.Subscriber
}

// Leave also gives the connection back.
func (w head) Leave(handOn bool) {
	w.Place.Leave(handOn)
	w.herd.put(w.own)
}
