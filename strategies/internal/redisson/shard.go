package redisson

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// shard is a feed of sharded channels of one slot at a time. Its connection is to the node
// that has the slot, and moves with the slot.
//
// A *redis.PubSub alone stays on its node when the slot has moved to another, and connects to
// any node when it has no channel.
type shard struct {
	cluster *redis.ClusterClient

	mu       sync.Mutex
	closed   bool
	pubsub   *redis.PubSub // nil until there is a channel
	there    chan struct{} // closed once pubsub is set
	tag      string        // of the channels, present or last
	channels map[string]struct{}
	leaving  map[string]int // how many SUNSUBSCRIBEs are not confirmed yet
}

func newShard(cluster *redis.ClusterClient) *shard {
	return &shard{
		cluster: cluster, there: make(chan struct{}),
		channels: map[string]struct{}{}, leaving: map[string]int{},
	}
}

// Subscribe takes channels of one slot: the slot of the channels that it has, if any.
func (s *shard) Subscribe(ctx context.Context, channels ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return redis.ErrClosed
	}
	if to := tag(channels[0]); to != s.tag {
		s.drop()
		s.tag = to
	}
	for _, name := range channels {
		s.channels[name] = struct{}{}
	}
	if s.pubsub == nil {
		return s.connect(ctx)
	}
	return s.pubsub.SSubscribe(ctx, channels...)
}

func (s *shard) Unsubscribe(ctx context.Context, channels ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range channels {
		delete(s.channels, name)
		s.leaving[name]++
	}
	if s.pubsub == nil {
		return nil
	}
	return s.pubsub.SUnsubscribe(ctx, channels...)
}

// connect makes the pubsub. The caller holds mu.
func (s *shard) connect(ctx context.Context) error {
	clear(s.leaving)
	s.pubsub = s.cluster.SSubscribe(ctx) // opens no connection yet
	err := s.pubsub.SSubscribe(ctx, slices.Collect(maps.Keys(s.channels))...)
	close(s.there)
	return err
}

// drop closes the pubsub. The caller holds mu.
func (s *shard) drop() {
	if s.pubsub != nil {
		_ = s.pubsub.Close()
		s.pubsub, s.there = nil, make(chan struct{})
	}
}

// errMoved means that Redis has ended a subscription.
var errMoved = errors.New("the channel's slot has moved to another node")

// Receive waits for the next message; if there is no channel it first waits for one.
func (s *shard) Receive(ctx context.Context) (any, error) {
	for {
		s.mu.Lock()
		pubsub, there := s.pubsub, s.there
		s.mu.Unlock()
		select {
		case <-there:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if pubsub == nil {
			continue
		}
		message, err := pubsub.Receive(ctx)
		if err, stale := s.received(ctx, pubsub, message, err); !stale {
			return message, err
		}
	}
}

// received keeps the connection on the slot's node. What came from a replaced pubsub is
// stale.
func (s *shard) received(ctx context.Context, from *redis.PubSub, message any, err error) (_ error, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pubsub != from && !s.closed {
		return nil, true
	}
	if m, ok := message.(*redis.Subscription); ok && m.Kind == "sunsubscribe" {
		_, wanted := s.channels[m.Channel]
		switch {
		case s.leaving[m.Channel] > 0:
			s.leaving[m.Channel]--
		case wanted:
			err = errMoved
		}
	}
	if err == nil || s.closed || redis.HasErrorPrefix(err, "NOPERM") {
		return err, false
	}
	s.cluster.ReloadState(ctx)
	_, told := errors.AsType[redis.Error](err)
	if (told || err == errMoved) && len(s.channels) > 0 {
		s.drop()
		_ = s.connect(ctx) // if it fails, so will the next Receive
	} else {
		clear(s.leaving) // the connection broke: the confirmations will not come
	}
	return err, false
}

func (s *shard) Ping(context.Context, ...string) error { return nil }

func (s *shard) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.drop()
	return nil
}
