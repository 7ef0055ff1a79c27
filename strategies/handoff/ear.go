package handoff

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// ear is a connection by which a process is told: one, or in a cluster one for each node. It
// lives as long as the connection; lines then look for another. The Locker's mutex guards it.
type ear struct {
	locker   *Locker
	client   redis.UniversalClient
	pubsub   *redis.PubSub
	channels map[string]*channel
	gone     chan struct{} // closed when it has ended …
	err      error         // … and why
	good     bool          // it was heard

	// What is heard after the answer to a PING was said after the PING was sent.
	proof  time.Time
	pings  int
	pinged time.Time // when the last was sent
	silent bool      // it has not been answered
}

// channel is one that an ear listens to, for so many lines.
type channel struct {
	lines   int
	ready   chan struct{} // closed when Redis has said so
	isReady bool
}

// listen has the process be told for a line.
func (l *Locker) listen(ctx context.Context, ln *line) error {
	again := false
	for r := (retry{}); ; {
		err := l.listenOnce(ctx, ln, again)
		if err == nil || errors.Is(err, strategies.ErrClosed) || !r.wait(ctx) {
			return err
		}
		again = true
	}
}

func (l *Locker) listenOnce(ctx context.Context, ln *line, again bool) error {
	l.mu.Lock()
	e := ln.ear
	l.mu.Unlock()
	if e == nil {
		client, err := l.redis.at(ctx, ln.lock, again)
		if err != nil {
			return err
		}
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return strategies.ErrClosed
		}
		if e = l.ears[client]; e == nil && time.Now().Before(l.listenAfter) {
			defer l.mu.Unlock()
			return l.unheard
		}
		if e == nil {
			e = &ear{locker: l, client: client, channels: map[string]*channel{}, gone: make(chan struct{})}
			l.ears[client] = e
			e.pubsub = client.SSubscribe(l.ctx)
			l.tasks.Go(e.live)
		}
		l.mu.Unlock()
	}
	c, isNew := e.join(ln)
	if isNew {
		if err := e.pubsub.SSubscribe(ctx, ln.base+l.ids.process); err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			e.end(fmt.Errorf("subscribe: %w", err))
			return e.err
		}
	}
	select {
	case <-c.ready:
		return nil
	case <-e.gone:
		return e.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join has an ear listen for a line. It says whether nobody has told Redis yet.
func (e *ear) join(ln *line) (c *channel, isNew bool) {
	l := e.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	name := ln.base + l.ids.process
	c = e.channels[name]
	if c == nil {
		c, isNew = &channel{ready: make(chan struct{})}, true
		e.channels[name] = c
	}
	if ln.ear != e {
		ln.ear.leave(ln)
		ln.ear = e
		c.lines++
	}
	return c, isNew
}

// leave has an ear no longer listen for a line. A channel of its own is given up in a cluster.
func (e *ear) leave(ln *line) {
	if e == nil || ln.ear != e {
		return
	}
	ln.ear = nil
	name := ln.base + e.locker.ids.process
	c := e.channels[name]
	if c == nil {
		return
	}
	if c.lines--; c.lines == 0 && e.locker.redis.cluster != nil {
		delete(e.channels, name)
		e.locker.begin(func() { _ = e.pubsub.SUnsubscribe(e.locker.ctx, name) })
	}
}

// live hears until the connection ends.
func (e *ear) live() {
	l := e.locker
	err := e.hear()
	e.hangUp()
	l.mu.Lock()
	defer l.mu.Unlock()
	e.end(err)
	close(e.gone)
}

// end ends an ear, for that reason. Its lines look for another.
func (e *ear) end(err error) {
	l := e.locker
	if e.err != nil {
		return
	}
	e.err = err
	if !l.closed {
		l.tasks.Go(e.hangUp)
	}
	delete(l.ears, e.client)
	if l.unheard = err; e.good {
		l.failures = 0
	}
	l.listenAfter = time.Now().Add(min(20*time.Millisecond<<l.failures, time.Second))
	l.failures = min(l.failures+1, 6)
	for _, ln := range l.lines {
		if ln.ear == e {
			ln.ear = nil
			if len(ln.places) > 0 {
				ln.look(0)
			}
		}
	}
}

// hangUp closes the connection.
func (e *ear) hangUp() { _ = e.pubsub.Close() }

func (e *ear) hear() error {
	for {
		message, err := e.pubsub.Receive(e.locker.ctx)
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		if err := e.heard(message); err != nil {
			return err
		}
	}
}

var errMoved = errors.New("the channel has moved to another node")

func (e *ear) heard(message any) error {
	l := e.locker
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := message.(type) {
	case *redis.Message:
		// In a cluster a message is also heard at a replica, by those whom nobody has counted.
		l.told(m.Payload, e.proof, l.redis.cluster == nil)
	case *redis.Pong:
		if m.Payload == strconv.Itoa(e.pings) {
			e.silent, e.proof = false, e.pinged
		}
	case *redis.Subscription:
		c := e.channels[m.Channel]
		switch {
		case c == nil:
		case m.Kind == "ssubscribe":
			if e.good = true; !c.isReady {
				c.isReady = true
				close(c.ready)
			}
		case c.isReady: // Redis did it
			return errMoved
		}
	}
	return nil
}

// pause is for how long a process hears nothing before it sends a PING.
func (l *Locker) pause() time.Duration { return min(l.config.TTL/4, time.Second) }

// pingDue is when a line needs to know that its ear hears; zero while it waits for nothing.
func (e *ear) pingDue(ln *line) time.Time {
	if e == nil || len(ln.places) == 0 || ln.places[0].since.IsZero() {
		return time.Time{}
	}
	since := ln.places[0].since
	for _, t := range []time.Time{e.proof, e.pinged} {
		if t.After(since) {
			since = t
		}
	}
	return since.Add(e.locker.pause())
}

// ping asks Redis for an answer on the connection, and returns when the next is due. One
// that does not answer is given up.
func (e *ear) ping(now time.Time) time.Time {
	if e.silent {
		if now.Sub(e.pinged) > patience {
			e.end(errors.New("listen: Redis does not answer"))
			return now.Add(patience)
		}
		return now.Add(e.locker.pause())
	}
	e.pings++
	e.pinged, e.silent = now, true
	payload := strconv.Itoa(e.pings)
	e.locker.begin(func() {
		_ = e.pubsub.Ping(e.locker.ctx, payload) // that it fails the ear hears
	})
	return now.Add(e.locker.pause())
}

// told takes what grant.lua says, surely or perhaps: that an id is the owner. Redis cannot
// have said so before since.
func (l *Locker) told(told string, since time.Time, sure bool) {
	id, token, lock, ok := parse(told)
	if !ok || l.held[id] != nil { // it was told before
		return
	}
	p := l.places[id]
	if p == nil {
		l.owe(namesOf(lock, l.base, l.redis.cluster != nil), id, false)
		return
	}
	if p.since.After(since) {
		since = p.since
	}
	p.arrive(token, since, end(since, l.config.TTL), sure)
}

// arrive takes a lease that has come to a place. Whether one that is not sure, or was long
// under way, is the process's Redis must say.
func (p *place) arrive(token int64, since, until time.Time, sure bool) {
	ln := p.line
	l := ln.locker
	ln.drop(p)
	g := &lease{id: p.id, token: token, since: since, doubtful: p.doubtful}
	g.until.Set(until)
	l.held[p.id] = g
	if sure && time.Until(until) > l.config.TTL/4 {
		ln.granted(g)
		return
	}
	ln.asking = true
	l.begin(func() { l.confirm(ln, g) })
}

// confirm asks whether a lease that was long under way is still the process's.
func (l *Locker) confirm(ln *line, g *lease) {
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	since := time.Now()
	clock, err := l.extend(ctx, ln, g.id, l.config.TTL)
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.asking = false
	if err == nil && clock != 0 {
		g.since, g.token = since, max(g.token, clock) // others may have had it since it was told
		g.until.Set(end(since, l.config.TTL))
		ln.granted(g)
		return
	}
	delete(l.held, g.id)
	if err != nil || g.doubtful {
		l.owe(ln.names, g.id, g.doubtful)
	}
	ln.look(0)
	ln.forget()
}
