package redisson

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/background"
)

// Subscriber is the Line of a process: one connection, with one subscription for each channel
// that has waiters.
//
// The first use starts two goroutines. receive only hands out messages, so that none is ever
// dropped. send writes SUBSCRIBE and UNSUBSCRIBE in the order in which they were decided, so
// that waiters write nothing to the network themselves.
type Subscriber struct {
	cluster goredis.Client // of sharded channels; nil for others
	pubsub  goredis.Subscription
	wakes   func(payload string) int
	stop    context.CancelCauseFunc
	ctx     context.Context
	tasks   background.Group

	mu       sync.Mutex
	started  bool
	channels map[string]*channel
	changed  map[string]struct{} // channels for send to look at
	signal   chan struct{}       // changed is not empty; capacity 1
}

// NewSubscriber returns a Subscriber that opens a connection of that client when it is first
// used. wakes says how many waiters a message wakes; it gets an empty payload after the
// connection broke, when messages may have been missed.
func NewSubscriber(client goredis.Client, wakes func(payload string) int) *Subscriber {
	ctx, stop := context.WithCancelCause(context.Background())
	return &Subscriber{
		wakes:    wakes,
		ctx:      ctx,
		stop:     stop,
		pubsub:   goredis.Subscribe(ctx, client), // opens no connection yet
		channels: map[string]*channel{},
		changed:  map[string]struct{}{},
		signal:   make(chan struct{}, 1),
	}
}

// newShardSubscriber is NewSubscriber for sharded channels of one of a cluster's nodes. It ends
// when its connection breaks or a channel moves to another node: its waiters then get errMoved.
func newShardSubscriber(cluster, node goredis.Client, wakes func(payload string) int) *Subscriber {
	s := NewSubscriber(node, wakes)
	s.cluster = cluster
	return s
}

// One is the wakes of a lock: each message wakes one waiter.
func One(string) int { return 1 }

// Open opens the connection.
func (s *Subscriber) Open(ctx context.Context) error { return s.pubsub.Ping(ctx) }

// Close closes the connection.
func (s *Subscriber) Close() error {
	s.stop(strategies.ErrClosed)
	err := s.pubsub.Close()
	s.tasks.Close()
	if errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return err
}

// Join adds a waiter. The topic must be of the Subscriber's sort.
func (s *Subscriber) Join(ctx context.Context, topic Topic) (Place, error) {
	name := topic.Channel
	s.mu.Lock()
	s.started = s.started || s.tasks.Go(s.send)
	c := s.channels[name]
	if c == nil {
		c = &channel{name: name, ready: make(chan struct{})}
		s.channels[name] = c
		s.look(name)
	}
	c.members++
	s.mu.Unlock()

	w := &waiter{subscriber: s, channel: c, woken: make(chan struct{}, 1)}
	var err error
	select {
	case <-c.ready:
		err = c.err
	case <-s.ctx.Done():
		err = context.Cause(s.ctx)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		w.Leave(false)
		return nil, err
	}
	return w, nil
}

// look makes send look at a channel. The caller holds mu.
func (s *Subscriber) look(name string) {
	s.changed[name] = struct{}{}
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// send brings the subscriptions in line with the waiters.
func (s *Subscriber) send() {
	for receiving := false; ; {
		select {
		case <-s.ctx.Done():
			return
		case <-s.signal:
		}
		wanted, unwanted := s.decide()
		if len(unwanted) > 0 {
			// When it fails the connection is broken; the next one will not have them.
			_ = s.call(s.pubsub.Unsubscribe, s.pubsub.SUnsubscribe, unwanted)
		}
		if len(wanted) == 0 {
			continue
		}
		err := s.call(s.pubsub.Subscribe, s.pubsub.SSubscribe, wanted)
		if err != nil { // on a connection that was broken and has been replaced
			err = s.call(s.pubsub.Subscribe, s.pubsub.SSubscribe, wanted)
		}
		if err != nil && s.cluster != nil {
			s.move(err)
			return
		}
		if err != nil {
			s.fail(err, wanted)
		}
		if !receiving { // without a channel it would connect to any node
			receiving = true
			s.tasks.Go(s.receive)
		}
	}
}

// call calls one of two methods, that for sharded channels for each alone: they may be of several
// slots.
func (s *Subscriber) call(plain, sharded func(context.Context, ...string) error, channels []string) error {
	if s.cluster == nil {
		return plain(s.ctx, channels...)
	}
	for _, name := range channels {
		if err := sharded(s.ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// decide returns the channels to subscribe to and those nobody waits on.
func (s *Subscriber) decide() (wanted, unwanted []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.changed {
		c := s.channels[name]
		switch {
		case c == nil:
			unwanted = append(unwanted, name)
		case c.members == 0 && c.subscribed && !c.known:
			// Its confirmation is on the way and must not be taken for that of the next
			// subscription to the same channel; confirmed looks again.
		case c.members == 0:
			delete(s.channels, name)
			if c.subscribed {
				unwanted = append(unwanted, name)
			}
		case !c.subscribed:
			c.subscribed = true
			wanted = append(wanted, name)
		}
	}
	clear(s.changed)
	return wanted, unwanted
}

// fail ends those of the channels whose subscription is not confirmed yet; a later Join
// starts a new one.
func (s *Subscriber) fail(err error, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if c := s.channels[name]; c != nil && !c.known {
			delete(s.channels, name)
			c.settle(err)
			s.look(name)
		}
	}
}

// receive hands out what arrives. go-redis reconnects and subscribes again by
// itself, within Receive.
func (s *Subscriber) receive() {
	for failures := 0; ; {
		message, err := s.pubsub.Receive(s.ctx)
		if s.ctx.Err() != nil {
			return
		}
		if redis.HasErrorPrefix(err, "NOPERM") {
			s.refused(err)
			continue
		}
		if s.cluster != nil && (err != nil || s.ended(message)) {
			s.move(err)
			return
		}
		if err != nil {
			if failures++; failures > 1 { // it did not come back at once
				s.outage(err, failures == 2)
				pause.Rest(s.ctx.Done(), failures)
			}
			continue
		}
		failures = 0
		switch message := message.(type) {
		case *redis.Message:
			s.released(message.Channel, message.Payload)
		case *redis.Subscription:
			if message.Kind == "subscribe" || message.Kind == "ssubscribe" {
				s.confirmed(message.Channel)
			}
		}
	}
}

// errMoved is the error of a waiter whose channel may be at another node now.
var errMoved = errors.New("the channel's node has ended the subscription")

// move ends a Subscriber of a node, so that its waiters look for the node that has their channel now.
func (s *Subscriber) move(err error) {
	goredis.ReloadState(s.ctx, s.cluster)
	if err != nil {
		err = fmt.Errorf("%w: %w", errMoved, err)
	} else {
		err = errMoved
	}
	s.stop(err)
	_ = s.pubsub.Close()
}

// ended says whether a node has ended a subscription by itself: one that is confirmed and has not been
// given up. A waiter that comes after it was given up begins another one.
func (s *Subscriber) ended(message any) bool {
	m, ok := message.(*redis.Subscription)
	if !ok || m.Kind != "sunsubscribe" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[m.Channel]
	return c != nil && c.known
}

func (s *Subscriber) released(name, payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A message before the confirmation belongs to an earlier subscription to the channel:
	// the waiters that join now have yet to try.
	if c := s.channels[name]; c != nil && c.known {
		c.wake(s.wakes(payload))
	}
}

// refused fails those who wait for a subscription. Redis does not say which channel it
// refused, and refuses all of one SUBSCRIBE or none.
func (s *Subscriber) refused(err error) {
	s.mu.Lock()
	var unconfirmed []string
	for name, c := range s.channels {
		if c.subscribed && !c.known {
			unconfirmed = append(unconfirmed, name)
		}
	}
	s.mu.Unlock()
	s.fail(err, unconfirmed)
}

// confirmed lets the waiters of a new subscription continue. If an old subscription is on a
// new connection, messages may have been missed: waiters are woken to look.
func (s *Subscriber) confirmed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c := s.channels[name]; {
	case c == nil:
	case c.known:
		c.wake(s.wakes(""))
	default:
		c.settle(nil)
		if c.members == 0 {
			s.look(name)
		}
	}
}

// outage tells waiters that nothing will be heard for a while: those that wait for a
// subscription fail, and those that are parked try once.
func (s *Subscriber) outage(err error, first bool) {
	s.mu.Lock()
	names := slices.Collect(maps.Keys(s.channels))
	if first {
		for _, c := range s.channels {
			c.wake(everybody)
		}
	}
	s.mu.Unlock()
	s.fail(err, names)
}
