package handoff

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// subscriber is a connection on which a process receives the messages about its turns. In a cluster the process has one
// subscriber for each node. When the connection breaks, the subscriber ends, and its local queues subscribe through a
// new subscriber. The Locker's mutex guards it.
type subscriber struct {
	locker      *Locker
	client      redis.UniversalClient
	pubsub      *redis.PubSub
	channels    map[string]*channel
	toSubscribe []string      // channels for which no SSUBSCRIBE has been sent yet
	open        int           // number of SSUBSCRIBE commands without a reply
	gone        chan struct{} // closed when the connection has ended
	err         error         // why the connection has ended
	good        bool          // Redis has confirmed a subscription

	echoes        int       // number of echoes that the process has published to itself
	asked         time.Time // when it sent the last echo
	echoPublished bool      // Redis has confirmed that it published the last echo
	silent        bool      // the last echo has not arrived yet
}

// channel is a Redis channel to which a subscriber has subscribed or will subscribe.
type channel struct {
	localQueues int
	asked       time.Time
	sent        bool
	ready       chan struct{} // closed when Redis has confirmed or refused the subscription
	isReady     bool          // Redis has confirmed the subscription
	err         error         // the reason of a refusal
}

// send starts a goroutine that runs a command on the subscriber's connection. If the command fails, the subscriber
// ends.
func (s *subscriber) send(what string, command func(context.Context) error) {
	l := s.locker
	l.hears.Go(func() {
		if err := command(l.ctx); err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			s.end(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// listens reports whether Redis has confirmed the subscription to the messages about the local queue's turns.
func (lq *localQueue) listens() bool {
	l := lq.locker
	s := lq.subscriber
	if s == nil && l.redis.cluster == nil {
		s = l.subscribers[l.redis.client]
	}
	if s == nil {
		return false
	}
	c := s.channels[lq.base+l.ids.process]
	return c != nil && c.isReady
}

// demoted ends all subscribers after the server has reported that it is no longer a primary. Scripts now publish on the
// new primary, whose messages do not reach a subscriber on the old one. In a cluster demoted does nothing.
func (l *Locker) demoted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.redis.cluster == nil {
		for _, s := range l.subscribers {
			s.end(errDemoted)
		}
	}
}

var errDemoted = errors.New("listen: the server is no longer a primary")

// listen subscribes the process to the messages that announce the turns of local queue lq. It retries for up to the
// duration patience. If the user may not subscribe to the channel or the Locker is closed, it returns at once.
func (l *Locker) listen(ctx context.Context, lq *localQueue) error {
	var failed error // the error of the previous try
	for r := (retry{}); ; {
		err := l.listenOnce(ctx, lq, failed != nil)
		if err != nil && ctx.Err() != nil && failed != nil {
			err = fmt.Errorf("%w: %w", err, failed)
		}
		if err == nil || errors.Is(err, strategies.ErrClosed) || hasReplyPrefix(err, "NOPERM") || !r.wait(ctx) {
			return err
		}
		failed = err
		l.mu.Lock()
		lq.failure = err
		l.mu.Unlock()
	}
}

// listenOnce tries once to subscribe to the channel of lq. It opens a subscriber if the process has none, and waits
// until Redis has confirmed the subscription. again is true after a failed try; listenOnce then reloads the cluster's
// slots, which may be outdated.
func (l *Locker) listenOnce(ctx context.Context, lq *localQueue, again bool) error {
	l.mu.Lock()
	s := lq.subscriber
	l.mu.Unlock()
	if s == nil {
		client, err := l.redis.at(ctx, lq.lock, again)
		if err != nil {
			return err
		}
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return strategies.ErrClosed
		}
		// The pause after a failed connection applies to all local queues, so that many waiters do not reconnect at the
		// same time.
		if s = l.subscribers[client]; s == nil && time.Now().Before(l.listenAfter) {
			defer l.mu.Unlock()
			return l.unsubscribed
		}
		if s == nil {
			s = &subscriber{locker: l, client: client, channels: map[string]*channel{}, gone: make(chan struct{})}
			l.subscribers[client] = s
			s.pubsub = client.Subscribe(l.ctx)
			l.hears.Go(s.live)
		}
		l.mu.Unlock()
	}
	c := s.join(lq)
	timer := time.NewTimer(patience*3/4 - time.Since(c.asked)) // before patience is over, so that listen can try again
	defer timer.Stop()
	select {
	case <-c.ready:
		return c.err
	case <-timer.C:
		l.mu.Lock()
		defer l.mu.Unlock()
		if c.isReady || c.err != nil {
			return c.err
		}
		s.end(errSilent)
		return errSilent
	case <-s.gone:
		return s.err
	case <-ctx.Done():
		return because(ctx, ctx.Err())
	}
}

var errSilent = errors.New("listen: Redis does not reply")

// join attaches local queue lq to the subscriber. It subscribes to the channel of lq unless another local queue has
// done so.
func (s *subscriber) join(lq *localQueue) *channel {
	l := s.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	name := lq.base + l.ids.process
	c := s.channels[name]
	if c == nil {
		c = &channel{asked: time.Now(), ready: make(chan struct{})}
		s.channels[name] = c
		s.toSubscribe = append(s.toSubscribe, name)
		s.ask()
	}
	if lq.subscriber != s && s.err == nil {
		lq.subscriber.leave(lq)
		lq.subscriber = s
		c.localQueues++
	}
	return c
}

// ask sends SSUBSCRIBE for the channels in toSubscribe. Once Redis has refused a subscription while several were under
// way, ask sends one SSUBSCRIBE at a time, because a refusal does not name the channel.
func (s *subscriber) ask() {
	for len(s.toSubscribe) > 0 && (s.open == 0 || !s.locker.refusing) {
		name := s.toSubscribe[0]
		s.toSubscribe = s.toSubscribe[1:]
		if c := s.channels[name]; c != nil && !c.sent {
			c.sent = true
			s.open++
			s.send("ssubscribe", func(ctx context.Context) error { return s.pubsub.SSubscribe(ctx, name) })
		}
	}
}

// leave detaches a local queue from the subscriber. In a cluster it unsubscribes from the channel if no other local
// queue needs it.
func (s *subscriber) leave(lq *localQueue) {
	if s == nil || lq.subscriber != s {
		return
	}
	lq.subscriber = nil
	name := lq.base + s.locker.ids.process
	c := s.channels[name]
	if c == nil {
		return
	}
	if c.localQueues--; c.localQueues == 0 && s.locker.redis.cluster != nil {
		delete(s.channels, name)
		if !c.sent {
			return
		}
		s.send("sunsubscribe", func(ctx context.Context) error { return s.pubsub.SUnsubscribe(ctx, name) })
	}
}

func (s *subscriber) live() {
	l := s.locker
	err := s.hear()
	s.hangUp()
	l.mu.Lock()
	defer l.mu.Unlock()
	s.end(err)
	close(s.gone)
}

// end ends a subscriber with err, unless it has ended already. Its local queues then subscribe through a new
// subscriber.
func (s *subscriber) end(err error) {
	l := s.locker
	if s.err != nil {
		return
	}
	s.err = err
	l.hears.Go(s.hangUp) // also during Close, which no longer knows this subscriber
	delete(l.subscribers, s.client)
	if l.unsubscribed = err; s.good {
		l.failures = 0
	}
	// The pause is 20 ms at first and doubles with each consecutive failure, up to a second. A confirmed subscription
	// resets it.
	l.listenAfter = time.Now().Add(min(20*time.Millisecond<<l.failures, time.Second))
	l.failures = min(l.failures+1, 6)
	for _, lq := range l.localQueues {
		if lq.subscriber == s {
			lq.subscriber = nil
			if len(lq.slots) > 0 {
				lq.failure = err
				lq.look(0)
			}
		}
	}
}

func (s *subscriber) hangUp() { _ = s.pubsub.Close() }

func (s *subscriber) hear() error {
	for {
		message, err := s.pubsub.Receive(s.locker.ctx)
		if err != nil {
			if err = s.refused(err); err == nil {
				continue
			}
			return err
		}
		if err := s.heard(message); err != nil {
			return err
		}
		runtime.Gosched() // a waiter that got its turn runs before the next read
	}
}

// refused handles an error of the connection and returns it, unless it can keep the connection. If Redis refuses a
// subscription and only one is under way, refused gives the error to the callers that wait for that channel, and
// returns nil, which keeps the connection. If several subscriptions are under way, the error does not show which of
// them Redis has refused. The connection then ends, and the process subscribes to the channels one by one on a new
// connection.
func (s *subscriber) refused(err error) error {
	if !hasReplyPrefix(err, "NOPERM") {
		return fmt.Errorf("listen: %w", err)
	}
	l := s.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	s.good = true // a refusal is not an outage
	if s.open != 1 {
		l.refusing = true
		return fmt.Errorf("listen: Redis has refused a subscription: %v", err) //nolint:errorlint // perhaps another channel
	}
	s.open--
	for name, c := range s.channels {
		if c.sent && !c.isReady {
			c.err = fmt.Errorf("listen: %w", err)
			delete(s.channels, name)
			for _, lq := range l.localQueues {
				if lq.subscriber == s && lq.base+l.ids.process == name {
					lq.subscriber = nil
				}
			}
			close(c.ready)
		}
	}
	s.ask()
	return nil
}

var errMoved = errors.New("the channel has moved to another node")

func (s *subscriber) heard(message any) error {
	l := s.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := message.(type) {
	case *redis.Message:
		if number, echo := strings.CutPrefix(m.Payload, echoPrefix); !echo {
			l.hint(m.Payload)
		} else if number == strconv.Itoa(s.echoes) {
			s.silent = false
		}
	case *redis.Subscription:
		c := s.channels[m.Channel]
		if m.Kind == "ssubscribe" {
			s.open--
			defer s.ask()
		}
		switch {
		case c == nil:
		case m.Kind == "ssubscribe":
			if s.good = true; !c.isReady {
				c.isReady = true
				close(c.ready)
			}
		case c.isReady: // Redis ended the subscription
			return errMoved
		}
	}
	return nil
}

// echoPrefix is the prefix of the messages that a process publishes to itself.
const echoPrefix = "echo "

// While the process waits for a lock, listenOn checks once a second that it receives the messages published on the
// server that executes its commands. After a failover the subscription may be on another server than the commands, or
// its connection may be dead but not closed. listenOn returns the time of the next check, or the zero time if the
// process does not wait.
func (l *Locker) listenOn(now time.Time) (next time.Time) {
	if len(l.slots) == 0 {
		return time.Time{}
	}
	if next = l.echoed.Add(l.attention); next.After(now) {
		return next
	}
	l.echoed = now
	waiting := map[*subscriber]*localQueue{}
	for _, p := range l.slots {
		if lq := p.localQueue; lq.listens() && lq.subscriber != nil {
			waiting[lq.subscriber] = lq
		}
	}
	for s, lq := range waiting {
		s.echo(lq, now)
	}
	return now.Add(l.attention)
}

// echo publishes a message on the channel of lq to the process itself, unless the previous echo is still missing. If
// that echo was sent more than patience ago, echo ends the subscriber. The limit is twice patience if Redis has not
// confirmed that it published the previous echo.
func (s *subscriber) echo(lq *localQueue, now time.Time) {
	l := s.locker
	if s.silent {
		limit := patience
		if !s.echoPublished { // Redis may be slow
			limit = 2 * patience
		}
		if now.Sub(s.asked) > limit {
			s.end(errSilent)
		}
		return
	}
	s.echoes++
	s.asked, s.silent, s.echoPublished = now, true, false
	text := echoPrefix + strconv.Itoa(s.echoes)
	l.begin(func() {
		reply, err := l.redis.run(l.ctx, echoScript, &lq.names, text)
		l.mu.Lock()
		defer l.mu.Unlock()
		switch n, _ := reply.(int64); {
		case err != nil: // the failure does not concern the subscription
			s.silent = false
		case n == 0:
			s.end(errElsewhere)
		default:
			s.echoPublished = true
		}
	})
}

var errElsewhere = errors.New("listen: the subscription and the commands use different servers")
