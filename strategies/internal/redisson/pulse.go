package redisson

import (
	"context"
	"crypto/rand"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
)

const (
	// beat is the interval at which a process with waiters checks its subscriptions.
	beat = time.Second
	// lag is how long the pulse keeps waiting for an echo that, according to Redis, no client received. A proxy may report
	// a wrong number of receivers, so the echo may still arrive.
	lag = 100 * time.Millisecond
	// mostSilent is the number of consecutive ticks without an expected reply or echo after which a connection is
	// replaced.
	mostSilent = 2
)

// pulse checks that the connections of a Notifier's Subscribers work, and that they are connected to the server that
// executes the lock's commands. While there are waiters, the pulse uses the client that sends those commands to publish
// an echo once a second, on a separate channel to which the Subscribers subscribe. If the echo does not arrive on a
// connection, the connection is dead or is connected to another server, for example after a failover.
//
// A Subscriber for sharded channels receives no echo. Instead, the pulse checks that the channels of the Subscriber
// have not moved to another node, and sends a PING on the connection. If Redis refuses the echoes, the pulse sends a
// PING on the connection of every Subscriber.
type pulse struct {
	node    goredis.Node
	stop    context.CancelFunc
	ctx     context.Context
	tasks   background.Group
	calls   bounded.Calls
	refused atomic.Bool

	mu      sync.Mutex
	started bool
	busy    chan struct{} // capacity 1; signals that members is not empty
	members map[*Subscriber]struct{}
	channel string // the channel of the echoes; "" before the first member
}

// newPulse returns a pulse that publishes with the node's client.
func newPulse(node goredis.Node) *pulse {
	ctx, stop := context.WithCancel(context.Background())
	return &pulse{
		node: node, ctx: ctx, stop: stop, busy: make(chan struct{}, 1), members: map[*Subscriber]struct{}{},
	}
}

// echoOf returns a random name for the echo channel. The name matches the same ACL patterns as the lock's channel, so
// that the user has the right to use it.
func echoOf(channel string) string {
	family, lock, _ := strings.Cut(channel, ":")
	return family + ":echo:" + rand.Text() + ":" + lock
}

// join makes the pulse check a Subscriber that now has a waiter on the channel.
func (p *pulse) join(s *Subscriber, channel string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.channel == "" {
		p.channel = echoOf(channel)
	}
	p.started = p.started || p.tasks.Go(p.run)
	p.members[s] = struct{}{}
	select {
	case p.busy <- struct{}{}:
	default:
	}
}

// leave makes the pulse stop checking a Subscriber that has no more waiters or is closed.
func (p *pulse) leave(s *Subscriber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.members, s)
}

// close stops the pulse and waits for its goroutines. It waits for at most two seconds, because go-redis may be opening
// a connection.
func (p *pulse) close() {
	p.stop()
	deadline := time.Now().Add(bounded.Patience)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	_ = p.calls.Do(ctx, func() error { p.tasks.Close(); return nil })
	p.calls.CloseBy(deadline)
}

func (p *pulse) mute() { p.refused.Store(true) }

// present returns the Subscribers that have waiters.
func (p *pulse) present() []*Subscriber {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]*Subscriber, 0, len(p.members))
	for s := range p.members {
		all = append(all, s)
	}
	return all
}

// run calls tick once a second while any Subscriber has waiters.
func (p *pulse) run() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for number := int64(1); ; {
		select {
		case <-p.ctx.Done():
			return
		case <-p.busy:
		}
		ticker.Reset(beat)
		for members := []*Subscriber{nil}; len(members) > 0; number++ {
			select {
			case <-p.ctx.Done():
				return
			case <-ticker.C:
			}
			members = p.present()
			p.tick(number, members)
		}
	}
}

func (p *pulse) tick(number int64, members []*Subscriber) {
	var listening []*Subscriber
	for _, s := range members {
		if s.tick(p.ctx) {
			listening = append(listening, s)
		}
	}
	if len(listening) == 0 {
		return
	}
	receivers, err := p.publish(number)
	if redis.HasErrorPrefix(err, "NOPERM") {
		p.mute()
	}
	if err != nil { // the error says nothing about the subscriptions
		return
	}
	for _, s := range listening {
		s.expect(number)
	}
	if receivers > 0 || p.node.Clustered() { // nodes of a cluster do not count each other's receivers
		return
	}
	select {
	case <-p.ctx.Done():
	case <-time.After(lag):
	}
	for _, s := range listening {
		s.missed(number)
	}
}

// publish publishes an echo with the client that sends the lock's commands. It returns how many connections to the
// server that executed PUBLISH have received the echo.
func (p *pulse) publish(number int64) (receivers int64, err error) {
	reply := make(chan int64, 1)
	err = p.calls.Do(p.ctx, func() error {
		n, err := p.node.Client.Publish(p.ctx, p.channel, number).Result()
		reply <- n
		return err
	})
	if err == nil {
		receivers = <-reply
	}
	return receivers, err
}

// numberOf returns the number of an echo, or 0 for any other message.
func numberOf(payload string) int64 {
	n, _ := strconv.ParseInt(payload, 10, 64)
	return n
}

// tick checks the Subscriber's connection. If an expected reply or echo has been missing for mostSilent ticks, tick
// replaces the connection. Otherwise tick subscribes to the echo channel or, where no echoes are used, sends a PING. It
// reports whether Redis has confirmed the subscription to the echo channel.
func (s *Subscriber) tick(ctx context.Context) (listens bool) {
	if s.cluster != nil && s.channelMoved(ctx) {
		s.move(nil)
		return false
	}
	s.mu.Lock()
	n := s.now
	if s.waiters == 0 || n.calling {
		s.mu.Unlock()
		return false
	}
	owed := n.pinged
	for _, c := range s.channels {
		if c.subscribed && !c.known {
			owed = owed || c.ticks > 0
			c.ticks++
		}
	}
	received := n.received.Load()
	quiet := received == n.looked
	n.looked, n.pinged = received, n.pinged && quiet
	if owed && quiet || s.expects > s.heard {
		s.silent++
	} else {
		s.silent = 0
	}
	if s.silent >= mostSilent {
		s.mu.Unlock()
		s.replace(n)
		return false
	}
	echoes := s.cluster == nil && !s.pulse.refused.Load()
	s.listen(echoes)
	if !echoes {
		n.pings, n.pinged = true, true
		n.wakeUp()
	}
	listens = s.echo != nil && s.echo.known
	s.mu.Unlock()
	return listens
}

// listen subscribes to the echo channel, or unsubscribes from it if on is false. The caller holds mu.
func (s *Subscriber) listen(on bool) {
	switch {
	case on && s.echo == nil:
		s.echo = s.channel(s.pulse.channel)
		s.echo.members = 1
	case !on && s.echo != nil:
		s.echo.members = 0
		s.look(s.echo.name)
		s.echo, s.expects = nil, 0
	}
}

// expect records the number of an echo that the Subscriber must receive. It does nothing if the Subscriber is not
// subscribed to the echo channel.
func (s *Subscriber) expect(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.echo != nil && s.echo.known && s.echo.subscribed {
		s.expects = number
	}
}

// missed replaces the Subscriber's connection after Redis has reported that an echo had no receiver; number is the
// echo's number. It keeps a connection on which that echo did arrive, or whose subscription has changed since.
func (s *Subscriber) missed(number int64) {
	s.mu.Lock()
	n := s.now
	moved := s.expects == number && s.heard < number && !n.calling
	s.mu.Unlock()
	if moved {
		s.replace(n)
	}
}

// channelMoved reports whether, according to the cluster client's slots, one of the channels now belongs to another
// node.
func (s *Subscriber) channelMoved(ctx context.Context) bool {
	here := goredis.Node{Client: s.client}.Addr()
	s.mu.Lock()
	var names []string
	for name := range s.channels {
		names = append(names, name)
	}
	s.mu.Unlock()
	for _, name := range names {
		node, err := s.cluster.MasterForKey(ctx, name)
		if err == nil && (goredis.Node{Client: node}).Addr() != here {
			return true
		}
	}
	return false
}
