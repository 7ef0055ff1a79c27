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
	// lag is the longest delay of an echo for which Redis counted no receiver, because a proxy may count wrongly.
	lag = 100 * time.Millisecond
	// mostSilent is the largest number of consecutive ticks for which a connection may give no answer.
	mostSilent = 2
)

// pulse checks for the Subscribers of a Notifier that their connections live and lead to the server of the lock's
// commands. Each second, while there are waiters, it publishes an echo with the client of those commands, on a
// separate channel to which the Subscribers listen. A connection on which the echo does not arrive is silent, or
// leads to another server, as after a failover.
//
// A Subscriber of a cluster's node has no echo: it compares the node with the one that has its channels now, and
// sends a PING. Every Subscriber does the same after Redis has refused the echoes.
type pulse struct {
	node    goredis.Node
	stop    context.CancelFunc
	ctx     context.Context
	tasks   background.Group
	calls   bounded.Calls
	refused atomic.Bool

	mu      sync.Mutex
	started bool
	busy    chan struct{} // capacity 1; signals that there are members
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

// echoOf returns a new channel name that begins like a lock's channel, so that a user with rights to the prefix of
// that channel may use it.
func echoOf(channel string) string {
	family, lock, _ := strings.Cut(channel, ":")
	return family + ":echo:" + rand.Text() + ":" + lock
}

// join adds a Subscriber that now has a waiter on the channel.
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

// leave removes a Subscriber that has no waiters now.
func (p *pulse) leave(s *Subscriber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.members, s)
}

// close waits at most two seconds, because go-redis may be dialling.
func (p *pulse) close() {
	p.stop()
	deadline := time.Now().Add(bounded.Patience)
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	_ = p.calls.Do(ctx, func() error { p.tasks.Close(); return nil })
	p.calls.CloseBy(deadline)
}

// mute ends the echoes: Redis has refused them.
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

// run ticks while there are members.
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
	if err != nil { // the error does not concern the subscriptions
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

// publish returns how many connections to the server of the lock's commands have received the echo.
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

// numberOf returns an echo's number; 0 for any other message.
func numberOf(payload string) int64 {
	n, _ := strconv.ParseInt(payload, 10, 64)
	return n
}

// tick replaces a connection that has given no answer for too long, and requests the next answer. It reports whether
// the Subscriber receives the next echo.
func (s *Subscriber) tick(ctx context.Context) (listens bool) {
	if s.cluster != nil && s.elsewhere(ctx) {
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

// listen starts or ends the subscription to the echoes. The caller holds mu.
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

// expect records that an echo was sent to the Subscriber.
func (s *Subscriber) expect(number int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.echo != nil && s.echo.known && s.echo.subscribed {
		s.expects = number
	}
}

// missed replaces a connection on which an echo did not arrive, if Redis counted no receiver.
func (s *Subscriber) missed(number int64) {
	s.mu.Lock()
	n := s.now
	moved := s.expects == number && s.heard < number && !n.calling
	s.mu.Unlock()
	if moved {
		s.replace(n)
	}
}

// elsewhere reports whether, by the slots of the cluster's client, another node now has one of the channels.
func (s *Subscriber) elsewhere(ctx context.Context) bool {
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
