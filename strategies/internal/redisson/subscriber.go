package redisson

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
)

// Subscriber is a Notifier for all waiters of a process. It has one connection, with a subscription to each channel
// that has waiters.
//
// The first use starts a session. The pulse replaces the session when the session's connection is silent, or is not
// connected to the server that executes the lock's commands.
type Subscriber struct {
	client  redis.UniversalClient // opens the connection
	cluster *redis.ClusterClient  // for sharded channels; nil for others
	pulse   *pulse
	own     bool // only this Subscriber uses the pulse, and closes it
	wakes   func(payload string) int
	flaws   Flaws
	stop    context.CancelCauseFunc
	ctx     context.Context
	tasks   background.Group
	calls   bounded.Calls

	mu       sync.Mutex
	now      *session
	channels map[string]*channel
	changed  map[string]struct{} // channels that send must check
	waiters  int                 // on all channels
	echo     *channel            // the channel of the pulse's echoes; nil while there are no waiters
	expects  int64               // the number of the last echo sent to this connection
	heard    int64               // the number of the last echo that arrived on it
	silent   int                 // consecutive ticks without an expected reply or echo
}

// NewSubscriber returns a Subscriber that opens a connection of the node's client when it is first used. wakes returns
// how many waiters a message with the given payload wakes. After the connection has broken or has been replaced, the
// Subscriber calls wakes with an empty payload, because messages may have been missed.
func NewSubscriber(node goredis.Node, wakes func(payload string) int, flaws Flaws) *Subscriber {
	s := newSubscriber(node.Client, newPulse(node), wakes, flaws)
	s.own = true
	return s
}

func newSubscriber(
	client redis.UniversalClient, pulse *pulse, wakes func(payload string) int, flaws Flaws,
) *Subscriber {
	ctx, stop := context.WithCancelCause(context.Background())
	s := &Subscriber{
		client:   client,
		pulse:    pulse,
		wakes:    wakes,
		flaws:    flaws,
		ctx:      ctx,
		stop:     stop,
		channels: map[string]*channel{},
		changed:  map[string]struct{}{},
	}
	s.now = s.newSession()
	return s
}

// newShardSubscriber returns a Subscriber for the sharded channels of one node of a cluster. The Subscriber ends when
// its connection breaks or a channel moves to another node. Its waiters then get errMoved.
func newShardSubscriber(
	cluster *redis.ClusterClient, node redis.UniversalClient, pulse *pulse, wakes func(payload string) int, flaws Flaws,
) *Subscriber {
	s := newSubscriber(node, pulse, wakes, flaws)
	s.cluster = cluster
	return s
}

// One is the argument wakes of NewSubscriber for a lock, because each message of a lock wakes one waiter.
func One(string) int { return 1 }

// Open opens the connection in advance, so that the first waiter does not wait for it. If ctx ends first, Open returns
// an error.
func (s *Subscriber) Open(ctx context.Context) error {
	return s.calls.Do(ctx, func() error { return s.session().pubsub.Ping(ctx) })
}

// Close closes the connection. It waits at most two seconds, because go-redis cannot close a connection that it is
// still opening, and opening may take as long as the client's timeouts.
func (s *Subscriber) Close() error {
	s.stop(strategies.ErrClosed)
	s.pulse.leave(s)
	ctx, cancel := context.WithTimeout(context.Background(), bounded.Patience)
	defer cancel()
	err := s.calls.Do(ctx, func() error {
		if s.own {
			s.pulse.close()
		}
		err := s.session().pubsub.Close()
		s.tasks.Close()
		return err
	})
	if errors.Is(err, redis.ErrClosed) || ctx.Err() != nil {
		return nil
	}
	return err
}

// session returns the current session, which the pulse may replace later.
func (s *Subscriber) session() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// Join adds a waiter. It returns when the waiter's subscription is confirmed, but after limit at the latest. The topic
// must be sharded if and only if the Subscriber is.
func (s *Subscriber) Join(ctx context.Context, topic Topic, limit time.Duration) (Registration, error) {
	name := topic.Channel
	s.mu.Lock()
	s.start(s.now)
	c := s.channel(name)
	first := c.members == 0
	c.members++
	s.waiters++
	if s.waiters == 1 {
		s.pulse.join(s, name)
	}
	s.mu.Unlock()

	w := &waiter{subscriber: s, channel: c, woken: make(chan struct{}, 1)}
	if s.flaws.Unconfirmed && !first {
		return w, nil
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var err error
	select {
	case <-c.ready:
		err = c.err
	case <-timer.C:
		w.early = true
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

// channel returns the channel with the given name. If the channel is new, send will subscribe to it. The caller holds
// mu.
func (s *Subscriber) channel(name string) *channel {
	c := s.channels[name]
	if c == nil {
		c = &channel{name: name, ready: make(chan struct{})}
		s.channels[name] = c
		s.look(name)
	}
	return c
}

// left makes send unsubscribe from a channel whose last waiter has left. When the last waiter of the Subscriber has
// left, left makes the pulse stop checking the Subscriber. The caller holds mu.
func (s *Subscriber) left(c *channel) {
	if c.members == 0 && s.channels[c.name] == c && !s.flaws.Hoards {
		s.look(c.name)
	}
	if s.waiters--; s.waiters == 0 {
		s.pulse.leave(s)
		s.listen(false)
	}
}

// look makes send check whether the Subscriber must subscribe to a channel or unsubscribe from it. The caller holds mu.
func (s *Subscriber) look(name string) {
	s.changed[name] = struct{}{}
	s.now.wakeUp()
}

// decide returns the channels that session n must subscribe to, those to unsubscribe from, and whether to send a PING.
// It returns nothing if n has been replaced.
func (s *Subscriber) decide(n *session) (wanted, unwanted []string, pings bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != n {
		return nil, nil, false
	}
	for name := range s.changed {
		c := s.channels[name]
		switch {
		case c == nil:
			unwanted = append(unwanted, name)
		case c.members == 0 && c.subscribed && !c.known:
			// Redis has not confirmed the subscription yet. The next confirmation must not be taken for that of a later
			// subscription to the same channel, so the function confirmed will check the channel again.
		case c.members == 0:
			delete(s.channels, name)
			if c.subscribed {
				unwanted = append(unwanted, name)
			}
		case !c.subscribed:
			c.subscribed, c.ticks = true, 0
			wanted = append(wanted, name)
		}
	}
	clear(s.changed)
	pings, n.pings = n.pings, false
	n.calling = true
	return wanted, unwanted, pings
}

// fail removes the named channels that are not confirmed yet, and gives err to their waiters. A later Join subscribes
// again.
func (s *Subscriber) fail(n *session, err error, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != n {
		return
	}
	for _, name := range names {
		c := s.channels[name]
		if c == nil || c.known {
			continue
		}
		delete(s.channels, name)
		c.settle(err, s.flaws)
		s.look(name)
		if c == s.echo {
			s.echo = nil
		}
	}
}

func (s *Subscriber) released(n *session, name, payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[name]
	switch {
	case s.now != n || c == nil:
	case c == s.echo:
		s.heard = max(s.heard, numberOf(payload))
	case c.known && s.flaws.Hoards && c.parked.Len() == 0:
		c.savedWakeUps++
	case c.known:
		// Messages before the confirmation (c.known is false) belong to an earlier subscription to the channel. They wake no
		// waiter, because waiters try again after the confirmation.
		c.wake(s.wakes(payload))
	}
}

// refused handles a subscription that Redis has refused. Redis refuses either all channels of one SUBSCRIBE or none,
// and does not name the channel to which the user has no right. Waiters on unconfirmed channels get err. If the echo
// channel may be the cause, refused instead stops the echoes and subscribes to the other channels again.
func (s *Subscriber) refused(n *session, err error) {
	s.mu.Lock()
	var unconfirmed []string
	echo := s.echo != nil && s.echo.subscribed && !s.echo.known
	for name, c := range s.channels {
		if !c.subscribed || c.known || s.now != n {
			continue
		}
		if echo && c != s.echo {
			c.subscribed = false
			s.look(name)
			continue
		}
		unconfirmed = append(unconfirmed, name)
	}
	s.mu.Unlock()
	if echo {
		s.pulse.mute()
	}
	s.fail(n, err, unconfirmed)
}

// confirmed handles the confirmation of a subscription, after which waiters in Join return. If the channel was already
// confirmed on an earlier connection, messages may have been missed, so waiters are woken to try again.
func (s *Subscriber) confirmed(n *session, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c := s.channels[name]; {
	case c == nil || s.now != n:
	case c.known:
		c.wake(s.wakes(""))
	default:
		c.settle(nil, s.flaws)
		if c.members == 0 {
			s.look(name)
		}
	}
}

// outage handles a connection that go-redis could not replace at once. Waiters whose subscription is not confirmed get
// err. first is true for the first call of an outage, which wakes the parked waiters to try once.
func (s *Subscriber) outage(n *session, err error, first bool) {
	s.mu.Lock()
	var names []string
	if s.now == n {
		for name, c := range s.channels {
			names = append(names, name)
			if first {
				c.wake(allWaiters)
			}
		}
	}
	s.mu.Unlock()
	s.fail(n, err, names)
}

// replace begins a new session and subscribes to all channels again. Waiters are woken when Redis has confirmed the
// subscriptions. A Subscriber for sharded channels ends instead.
func (s *Subscriber) replace(old *session) {
	if s.cluster != nil {
		s.move(nil)
		return
	}
	s.mu.Lock()
	if s.now != old || s.ctx.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.now = s.newSession()
	s.silent = 0
	s.listen(false) // the next tick subscribes to the echoes again
	clear(s.changed)
	for name, c := range s.channels {
		if c.members == 0 {
			delete(s.channels, name)
			continue
		}
		c.subscribed = false
		s.look(name)
	}
	s.start(s.now)
	s.mu.Unlock()
	if !s.tasks.Go(old.close) { // close waits while go-redis dials
		old.close()
	}
}

// errMoved is returned to a waiter whose channel may have moved to another node. The waiter must join again.
var errMoved = errors.New("the channel's node has ended the subscription")

// move ends a Subscriber for sharded channels, so that its waiters look up the node that has their channel now.
func (s *Subscriber) move(err error) {
	s.cluster.ReloadState(s.ctx)
	if err != nil {
		err = fmt.Errorf("%w: %w", errMoved, err)
	} else {
		err = errMoved
	}
	s.stop(err)
	s.pulse.leave(s)
	s.session().close()
}

// ended reports whether message shows that the node has ended a confirmed subscription, such as after the move of a
// hash slot. It returns false for an UNSUBSCRIBE that the Subscriber itself has sent.
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
