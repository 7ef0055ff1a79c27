package handoff

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
)

// subscriber is a connection that tells a process of its turns; in a cluster there is one per
// node. It lives as long as the connection; its lines then look for another. The Locker's
// mutex guards it.
type subscriber struct {
	locker   *Locker
	client   goredis.Client
	pubsub   goredis.Subscription
	channels map[string]*channel
	unasked  []string      // channels to subscribe to
	open     int           // subscriptions that Redis has not answered yet
	gone     chan struct{} // closed when it has ended …
	err      error         // … and why
	good     bool          // Redis has confirmed a subscription

	// A message that comes after the answer to a PING was sent after the PING.
	proof  time.Time
	pings  int
	pinged time.Time // when the last was sent
	silent bool      // it has no answer yet
}

// channel is a channel that a subscriber listens to, and the number of lines that need it.
type channel struct {
	lines   int
	asked   time.Time
	sent    bool
	ready   chan struct{} // closed when Redis has answered
	isReady bool          // it has confirmed the subscription
	err     error         // why it has refused it
}

// send sends a command.
func (s *subscriber) send(what string, command func(context.Context) error) {
	l := s.locker
	l.begin(func() {
		if err := command(l.ctx); err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			s.end(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// ear returns what the process hears of a line's turns with, nil if that is not certain.
func (ln *line) ear() *subscriber {
	l := ln.locker
	s := ln.subscriber
	if s == nil && l.redis.cluster == nil {
		s = l.subscribers[l.redis.client]
	}
	if s == nil {
		return nil
	}
	if c := s.channels[ln.base+l.ids.process]; c == nil || !c.isReady {
		return nil
	}
	return s
}

// demoted ends all subscribers after the server has said that it is no primary: the primary does
// not publish there.
func (l *Locker) demoted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.redis.cluster == nil {
		for _, s := range l.subscribers {
			s.end(errDemoted)
		}
	}
}

var errDemoted = errors.New("listen: the server is no primary any more")

// listen subscribes the process to a line's turns.
func (l *Locker) listen(ctx context.Context, ln *line) error {
	var failed error // the try before
	for r := (retry{}); ; {
		err := l.listenOnce(ctx, ln, failed != nil)
		if err != nil && ctx.Err() != nil && failed != nil {
			err = fmt.Errorf("%w: %w", err, failed)
		}
		if err == nil || errors.Is(err, strategies.ErrClosed) || says(err, "NOPERM") || !r.wait(ctx) {
			return err
		}
		failed = err
		l.mu.Lock()
		ln.failure = err
		l.mu.Unlock()
	}
}

func (l *Locker) listenOnce(ctx context.Context, ln *line, again bool) error {
	l.mu.Lock()
	s := ln.subscriber
	l.mu.Unlock()
	if s == nil {
		client, err := l.redis.at(ctx, ln.lock, again)
		if err != nil {
			return err
		}
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return strategies.ErrClosed
		}
		if s = l.subscribers[client]; s == nil && time.Now().Before(l.listenAfter) {
			defer l.mu.Unlock()
			return l.unsubscribed
		}
		if s == nil {
			s = &subscriber{locker: l, client: client, channels: map[string]*channel{}, gone: make(chan struct{})}
			l.subscribers[client] = s
			s.pubsub = goredis.Subscribe(l.ctx, client)
			l.tasks.Go(s.live)
		}
		l.mu.Unlock()
	}
	c := s.join(ln)
	timer := time.NewTimer(patience*3/4 - time.Since(c.asked)) // before the caller is told of an outage
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

var errSilent = errors.New("listen: Redis does not answer")

// join has a subscriber listen for a line.
func (s *subscriber) join(ln *line) *channel {
	l := s.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	name := ln.base + l.ids.process
	c := s.channels[name]
	if c == nil {
		c = &channel{asked: time.Now(), ready: make(chan struct{})}
		s.channels[name] = c
		s.unasked = append(s.unasked, name)
		s.ask()
	}
	if ln.subscriber != s && s.err == nil {
		ln.subscriber.leave(ln)
		ln.subscriber = s
		c.lines++
	}
	return c
}

// ask subscribes to channels: all at once, or one after another if Redis has refused one of
// several before, since the refusal does not name it.
func (s *subscriber) ask() {
	for len(s.unasked) > 0 && (s.open == 0 || !s.locker.refusing) {
		name := s.unasked[0]
		s.unasked = s.unasked[1:]
		if c := s.channels[name]; c != nil && !c.sent {
			c.sent = true
			s.open++
			s.send("ssubscribe", func(ctx context.Context) error { return s.pubsub.SSubscribe(ctx, name) })
		}
	}
}

// leave has a subscriber no longer listen for a line. In a cluster it gives up a channel that
// no line needs.
func (s *subscriber) leave(ln *line) {
	if s == nil || ln.subscriber != s {
		return
	}
	ln.subscriber = nil
	name := ln.base + s.locker.ids.process
	c := s.channels[name]
	if c == nil {
		return
	}
	if c.lines--; c.lines == 0 && s.locker.redis.cluster != nil {
		delete(s.channels, name)
		if !c.sent {
			return
		}
		s.send("sunsubscribe", func(ctx context.Context) error { return s.pubsub.SUnsubscribe(ctx, name) })
	}
}

// live receives until the connection ends.
func (s *subscriber) live() {
	l := s.locker
	err := s.hear()
	s.hangUp()
	l.mu.Lock()
	defer l.mu.Unlock()
	s.end(err)
	close(s.gone)
}

// end ends a subscriber for that reason. Its lines look for another.
func (s *subscriber) end(err error) {
	l := s.locker
	if s.err != nil {
		return
	}
	s.err = err
	l.tasks.Go(s.hangUp) // also during Close, which no longer knows this subscriber
	delete(l.subscribers, s.client)
	if l.unsubscribed = err; s.good {
		l.failures = 0
	}
	l.listenAfter = time.Now().Add(min(20*time.Millisecond<<l.failures, time.Second))
	l.failures = min(l.failures+1, 6)
	for _, ln := range l.lines {
		if ln.subscriber == s {
			ln.subscriber = nil
			if len(ln.places) > 0 {
				ln.failure = err
				ln.look(0)
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
		runtime.Gosched() // a waiter who was told goes on before the next read
	}
}

// refused takes an error of the connection, and returns nil if the connection lives on: Redis has refused a
// subscription, and only one was under way. Those who wait for that channel get the error. If several were under
// way it is not known which one was refused, so all try again on a new connection, one after another.
func (s *subscriber) refused(err error) error {
	if !says(err, "NOPERM") {
		return fmt.Errorf("listen: %w", err)
	}
	l := s.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	s.good = true // it is no outage
	if s.open != 1 {
		l.refusing = true
		return fmt.Errorf("listen: Redis has refused a channel: %v", err) //nolint:errorlint // perhaps another one
	}
	s.open--
	for name, c := range s.channels {
		if c.sent && !c.isReady {
			c.err = fmt.Errorf("listen: %w", err)
			delete(s.channels, name)
			for _, ln := range l.lines {
				if ln.subscriber == s && ln.base+l.ids.process == name {
					ln.subscriber = nil
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
		l.told(m.Payload, s.proof, s)
	case *redis.Pong:
		if m.Payload == strconv.Itoa(s.pings) {
			s.silent, s.proof = false, s.pinged
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

// pause is how long a line hears nothing before it sends a PING.
func (ln *line) pause() time.Duration { return min(ln.ttl/4, ln.locker.attention) }

// pingDue returns when a line needs proof that its subscriber hears; zero while it waits for
// nothing.
func (s *subscriber) pingDue(ln *line) time.Time {
	if s == nil || len(ln.places) == 0 || ln.places[0].since.IsZero() {
		return time.Time{}
	}
	since := ln.places[0].since
	for _, t := range []time.Time{s.proof, s.pinged} {
		if t.After(since) {
			since = t
		}
	}
	return since.Add(ln.pause())
}

// ping sends a PING, and returns when the next is due, after a pause. It ends a subscriber
// that has not answered for patience.
func (s *subscriber) ping(now time.Time, pause time.Duration) time.Time {
	if s.silent {
		if now.Sub(s.pinged) > patience {
			s.end(errSilent)
			return now.Add(patience)
		}
		return now.Add(pause)
	}
	s.pings++
	s.pinged, s.silent = now, true
	number := strconv.Itoa(s.pings)
	s.send("ping", func(ctx context.Context) error { return s.pubsub.Ping(ctx, number) })
	return now.Add(pause)
}

// told takes what grant.lua tells an owner: by a subscriber's message or, if that is nil, by the
// answer to a command of this process. Redis cannot have sent it before since.
func (l *Locker) told(told string, since time.Time, by *subscriber) {
	id, token, lock, ok := l.ids.parse(told)
	if !ok || l.held[id] != nil { // somebody else has made it, or it was told before
		return
	}
	p := l.places[id]
	if p == nil { // it was given up: its lock is known to be one of ours
		l.owe(namesOf(lock, l.base, l.redis.cluster != nil), id, false)
		for _, d := range l.debts { // the next may be one that was given up, too
			if d.lock == lock {
				d.due = time.Now()
			}
		}
		return
	}
	if p.since.After(since) {
		since = p.since
	}
	// In a cluster a subscriber at a replica hears the message too, and SPUBLISH has not counted it.
	sure := by == nil || by == p.ear && l.redis.cluster == nil
	p.arrive(token, since, end(since, p.line.ttl), sure)
}

// arrive takes a lease that has come to a place. If that is not sure, or the message was long
// on its way, Redis must confirm it.
func (p *place) arrive(token int64, since, until time.Time, sure bool) {
	ln := p.line
	l := ln.locker
	ln.drop(p)
	g := &lease{id: p.id, token: token, since: since, indeterminate: p.indeterminate}
	g.until.Set(until)
	l.held[p.id] = g
	if sure && time.Until(until) > ln.ttl/4 {
		ln.granted(g)
		return
	}
	ln.asking = true
	l.begin(func() { l.confirm(ln, g) })
}

// confirm asks Redis whether the process has a lease.
func (l *Locker) confirm(ln *line, g *lease) {
	ctx, cancel := patient(l.ctx, time.Now())
	defer cancel()
	since := time.Now()
	clock, err := l.extend(ctx, ln, g.id, ln.ttl)
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.asking = false
	g.until.Set(end(since, ln.ttl))
	if err == nil && clock != 0 && time.Now().Before(g.until.Get()) {
		g.since, g.token = since, max(g.token, clock) // others may have had it since the message
		ln.granted(g)
	} else {
		delete(l.held, g.id)
		if err != nil || clock != 0 || g.indeterminate {
			l.owe(ln.names, g.id, g.indeterminate)
		}
		ln.look(0)
		ln.forget()
	}
}
