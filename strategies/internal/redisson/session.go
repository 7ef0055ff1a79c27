package redisson

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/pause"
)

// session is one PubSub of go-redis, which connects again by itself if its connection breaks.
//
// A session runs two goroutines. receive only delivers messages, so that no message is dropped. send writes SUBSCRIBE
// and UNSUBSCRIBE, so that waiters do not write to the network themselves.
type session struct {
	pubsub *redis.PubSub
	ctx    context.Context
	end    context.CancelFunc
	signal chan struct{} // capacity 1; wakes send

	// The Subscriber's mu guards the following fields.
	started bool
	calling bool  // send is in a call of go-redis
	pings   bool  // send must write a PING
	pinged  bool  // a PING was sent, and nothing has arrived since
	looked  int64 // the value of received at the last tick

	received atomic.Int64 // messages of any kind
}

// newSession returns a session whose connection is opened by its first command.
func (s *Subscriber) newSession() *session {
	ctx, end := context.WithCancel(s.ctx)
	return &session{pubsub: s.client.Subscribe(ctx), ctx: ctx, end: end, signal: make(chan struct{}, 1)}
}

// start starts the session's goroutine send, unless it runs already. The caller holds mu.
func (s *Subscriber) start(n *session) {
	n.started = n.started || s.tasks.Go(func() { s.send(n) })
}

func (n *session) wakeUp() {
	select {
	case n.signal <- struct{}{}:
	default:
	}
}

func (n *session) close() {
	n.end()
	_ = n.pubsub.Close()
}

// send subscribes to and unsubscribes from channels according to decide, each time the session is woken.
func (s *Subscriber) send(n *session) {
	for receiving := false; ; {
		select {
		case <-n.ctx.Done():
			return
		case <-n.signal:
		}
		wanted, unwanted, pings := s.decide(n)
		err := s.write(n, wanted, unwanted, pings && receiving)
		s.mu.Lock()
		n.calling = false
		s.mu.Unlock()
		if err != nil && s.cluster != nil {
			s.move(err)
			return
		}
		if err != nil {
			s.fail(n, err, wanted)
		}
		if !receiving && len(wanted) > 0 { // in a cluster go-redis chooses the node by the first channel
			receiving = s.tasks.Go(func() { s.receive(n) })
		}
	}
}

// write unsubscribes from and subscribes to channels, and sends a PING if pings is true. It returns the error of the
// new subscriptions.
func (s *Subscriber) write(n *session, wanted, unwanted []string, pings bool) error {
	if len(unwanted) > 0 {
		// An error means that the connection is broken. go-redis does not renew these subscriptions on the next connection.
		_ = s.call(n, n.pubsub.Unsubscribe, n.pubsub.SUnsubscribe, unwanted)
	}
	if pings {
		_ = n.pubsub.Ping(n.ctx) // receive detects a broken connection
	}
	if len(wanted) == 0 {
		return nil
	}
	err := s.call(n, n.pubsub.Subscribe, n.pubsub.SSubscribe, wanted)
	if err != nil { // the connection was broken; go-redis has replaced it
		err = s.call(n, n.pubsub.Subscribe, n.pubsub.SSubscribe, wanted)
	}
	return err
}

// call passes all channels to plain in one call. For sharded channels it calls sharded for each channel instead,
// because the channels may be in several hash slots.
func (s *Subscriber) call(
	n *session, plain, sharded func(context.Context, ...string) error, channels []string,
) error {
	if s.cluster == nil {
		return plain(n.ctx, channels...)
	}
	for _, name := range channels {
		if err := sharded(n.ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// receive handles messages, confirmations and errors until the session ends. go-redis reconnects and subscribes again
// within Receive.
func (s *Subscriber) receive(n *session) {
	for failures := 0; ; {
		message, err := n.pubsub.Receive(n.ctx)
		if n.ctx.Err() != nil {
			return
		}
		refused := redis.HasErrorPrefix(err, "NOPERM")
		if err == nil || refused {
			n.received.Add(1)
		}
		if refused {
			s.refused(n, err)
			continue
		}
		if s.cluster != nil && (err != nil || s.ended(message)) {
			s.move(err)
			return
		}
		if err != nil {
			if failures++; failures > 1 { // go-redis could not reconnect at once
				s.outage(n, err, failures == 2)
				pause.Rest(n.ctx.Done(), failures)
			}
			continue
		}
		failures = 0
		switch message := message.(type) {
		case *redis.Message:
			s.released(n, message.Channel, message.Payload)
		case *redis.Subscription:
			if message.Kind == "subscribe" || message.Kind == "ssubscribe" {
				s.confirmed(n, message.Channel)
			}
		}
	}
}
