package redisson

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
)

// herd is a Notifier in which every waiter has a separate connection and subscription.
type herd struct {
	client  redis.UniversalClient
	pulse   *pulse // checks all connections
	callers int    // the expected number of waiters

	mu   sync.Mutex
	free []*Subscriber
}

// NewHerd returns a Notifier in which every waiter has a separate connection and subscription. callers is the number of
// connections that Open opens in advance.
func NewHerd(node goredis.Node, callers int) (Notifier, error) {
	client, err := goredis.DialSubscribers(node)
	return &herd{client: client, pulse: newPulse(node), callers: callers}, err
}

// Open opens one connection for each expected waiter, so that Join need not dial.
func (h *herd) Open(ctx context.Context) error {
	h.mu.Lock()
	missing := h.callers - len(h.free)
	h.mu.Unlock()
	return goredis.DialAll(ctx, missing, func(ctx context.Context) error {
		s := newSubscriber(h.client, h.pulse, One, Flaws{})
		h.put(s)
		return s.Open(ctx)
	})
}

// Join subscribes to the topic on a free connection, or on a new connection if none is free.
func (h *herd) Join(ctx context.Context, topic Topic, limit time.Duration) (Registration, error) {
	s := h.take()
	place, err := s.Join(ctx, topic, limit)
	if err != nil {
		h.put(s)
		return nil, err
	}
	return head{place, h, s}, nil
}

func (h *herd) take() *Subscriber {
	h.mu.Lock()
	defer h.mu.Unlock()
	if last := len(h.free) - 1; last >= 0 {
		s := h.free[last]
		h.free = h.free[:last]
		return s
	}
	return newSubscriber(h.client, h.pulse, One, Flaws{})
}

func (h *herd) put(s *Subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = append(h.free, s)
}

// Close closes the free connections. It returns after at most two seconds, even if go-redis is still opening one of
// them.
func (h *herd) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.free
	h.free = nil
	return errors.Join(closeAll(all, h.pulse.close), h.client.Close())
}

// head is the Registration of one waiter with a herd, together with the waiter's connection.
type head struct {
	Registration
	herd *herd
	own  *Subscriber
}

// Leave ends the registration and makes the connection free for another waiter.
func (w head) Leave(handOn bool) {
	w.Registration.Leave(handOn)
	w.herd.put(w.own)
}
