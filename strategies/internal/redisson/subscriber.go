package redisson

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
	"github.com/lockbench/lockbench/strategies"
)

// Subscriber is the Line of a process: one connection, with one subscription for each channel
// that has waiters.
//
// The first use starts two goroutines. receive only hands out messages, so that none is ever
// dropped. send writes SUBSCRIBE and UNSUBSCRIBE in the order in which they were decided, so
// that waiters write nothing to the network themselves.
type Subscriber struct {
	cluster *redis.ClusterClient // of sharded channels; nil for others
	wakes   func(payload string) int
	stop    context.CancelFunc
	ctx     context.Context
	done    sync.WaitGroup

	mu       sync.Mutex
	pubsub   *redis.PubSub
	started  bool
	channels map[string]*channel
	changed  map[string]struct{} // channels for send to look at
	signal   chan struct{}       // changed is not empty; capacity 1
}

// NewSubscriber returns a Subscriber that opens a connection of that client when it is first
// used. wakes says how many waiters a message wakes; it gets an empty payload after the
// connection broke, when messages may have been missed.
func NewSubscriber(client redis.UniversalClient, wakes func(payload string) int) *Subscriber {
	ctx, stop := context.WithCancel(context.Background())
	return &Subscriber{
		wakes:    wakes,
		ctx:      ctx,
		stop:     stop,
		pubsub:   client.Subscribe(ctx), // opens no connection yet
		channels: map[string]*channel{},
		changed:  map[string]struct{}{},
		signal:   make(chan struct{}, 1),
	}
}

// NewShardSubscriber is NewSubscriber for sharded channels, all of one slot. Its connection is
// to the node that has the slot, and moves with the slot.
func NewShardSubscriber(cluster *redis.ClusterClient, wakes func(payload string) int) *Subscriber {
	s := NewSubscriber(cluster, wakes)
	s.cluster = cluster
	return s
}

// One is the wakes of a lock: each message wakes one waiter.
func One(string) int { return 1 }

// Open opens the connection.
func (s *Subscriber) Open(ctx context.Context) error { return s.pubsub.Ping(ctx) }

// Close closes the connection.
func (s *Subscriber) Close() error {
	s.stop()
	err := s.feed().Close()
	s.done.Wait()
	if errors.Is(err, redis.ErrClosed) {
		return nil
	}
	return err
}

// feed is what the messages come from.
func (s *Subscriber) feed() *redis.PubSub {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pubsub
}

// Join adds a waiter. The topic must be of the Subscriber's sort.
func (s *Subscriber) Join(ctx context.Context, topic Topic) (Place, error) {
	name := topic.Channel
	s.mu.Lock()
	if !s.started {
		s.started = true
		s.done.Go(s.send)
	}
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
		err = strategies.ErrClosed
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
			_ = s.unsubscribe(unwanted)
		}
		if len(wanted) == 0 {
			continue
		}
		err := s.subscribe(wanted)
		if err != nil { // on a connection that was broken and has been replaced
			err = s.subscribe(wanted)
		}
		if err != nil {
			s.fail(err, wanted)
		}
		if !receiving { // without a channel it would connect to any node
			receiving = true
			s.done.Go(s.receive)
		}
	}
}

func (s *Subscriber) subscribe(channels []string) error {
	if s.cluster != nil {
		return s.feed().SSubscribe(s.ctx, channels...)
	}
	return s.feed().Subscribe(s.ctx, channels...)
}

func (s *Subscriber) unsubscribe(channels []string) error {
	if s.cluster != nil {
		return s.feed().SUnsubscribe(s.ctx, channels...)
	}
	return s.feed().Unsubscribe(s.ctx, channels...)
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
		message, err := s.feed().Receive(s.ctx)
		if s.ctx.Err() != nil {
			return
		}
		if s.cluster != nil {
			err = s.follow(message, err)
		}
		if redis.HasErrorPrefix(err, "NOPERM") {
			s.refused(err)
			continue
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

// errMoved means that a node has ended a subscription.
var errMoved = errors.New("the channel's slot has moved to another node")

// follow moves the connection to the node that has the slot now. A *redis.PubSub alone stays
// where it is.
func (s *Subscriber) follow(message any, err error) error {
	if m, ok := message.(*redis.Subscription); ok && m.Kind == "sunsubscribe" && s.listensTo(m.Channel) {
		err = errMoved
	}
	if err == nil || redis.HasErrorPrefix(err, "NOPERM") {
		return err
	}
	s.cluster.ReloadState(s.ctx)
	if _, told := errors.AsType[redis.Error](err); told || err == errMoved {
		s.replace()
	}
	return err
}

// listensTo says whether a subscription is confirmed and has not been given up: a waiter that
// comes after it was given up begins another one.
func (s *Subscriber) listensTo(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[name]
	return c != nil && c.known
}

// replace subscribes on a new connection to all that it has subscribed to.
func (s *Subscriber) replace() {
	s.mu.Lock()
	if s.ctx.Err() != nil { // Close closes the old one
		s.mu.Unlock()
		return
	}
	old := s.pubsub
	s.pubsub = s.cluster.SSubscribe(s.ctx) // opens no connection yet
	var names []string
	for name, c := range s.channels {
		if c.subscribed {
			names = append(names, name)
		}
	}
	s.mu.Unlock()
	_ = old.Close()
	if len(names) > 0 {
		_ = s.subscribe(names) // if it fails, so will the next Receive
	}
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
