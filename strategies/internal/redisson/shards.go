package redisson

import (
	"context"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// idleShards is how many connections without a waiter are kept to a cluster.
const idleShards = 64

// shards is the Line of a process to a cluster: one Subscriber for PUBLISH, and one for each
// slot with waiters.
type shards struct {
	cluster *redis.ClusterClient
	wakes   func(payload string) int
	plain   *Subscriber
	closing sync.WaitGroup

	mu     sync.Mutex
	closed bool
	bySlot map[string]*sharedShard
	idle   int // how many of them have no waiter
}

type sharedShard struct {
	*Subscriber
	waiters int
}

// NewLine returns the Line of a process. For the meaning of wakes see NewSubscriber.
func NewLine(client redis.UniversalClient, wakes func(payload string) int) Line {
	plain := NewSubscriber(client, wakes)
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return plain
	}
	return &shards{cluster: cluster, wakes: wakes, plain: plain, bySlot: map[string]*sharedShard{}}
}

// Open opens the connection on which messages of PUBLISH arrive.
func (l *shards) Open(ctx context.Context) error { return l.plain.Open(ctx) }

// Join waits on the connection for the topic's slot.
func (l *shards) Join(ctx context.Context, topic Topic) (Place, error) {
	if !topic.Sharded {
		return l.plain.Join(ctx, topic)
	}
	slot := tag(topic.Channel)
	shard := l.enter(slot)
	if shard == nil {
		return nil, strategies.ErrClosed
	}
	place, err := shard.Join(ctx, topic)
	if err != nil {
		l.leave(slot)
		return nil, err
	}
	return shardPlace{place, l, slot}, nil
}

// enter returns nil once the Line is closed.
func (l *shards) enter(slot string) *Subscriber {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	s := l.bySlot[slot]
	switch {
	case s == nil:
		s = &sharedShard{Subscriber: NewShardSubscriber(l.cluster, l.wakes)}
		l.bySlot[slot] = s
	case s.waiters == 0:
		l.idle--
	}
	s.waiters++
	return s.Subscriber
}

// leave closes a connection without waiters if there are enough idle ones.
func (l *shards) leave(slot string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.bySlot[slot]
	if s == nil { // the Line was closed meanwhile
		return
	}
	s.waiters--
	switch {
	case s.waiters > 0:
	case l.idle < idleShards:
		l.idle++
	default:
		delete(l.bySlot, slot)
		l.closing.Go(func() { _ = s.Close() })
	}
}

// Close closes all connections.
func (l *shards) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	problems := []error{l.plain.Close()}
	for _, s := range l.bySlot {
		problems = append(problems, s.Close())
	}
	clear(l.bySlot)
	l.closing.Wait()
	return errors.Join(problems...)
}

// shardPlace is a Place in a Line to a cluster.
type shardPlace struct {
	Place
	line *shards
	slot string
}

// Leave also leaves the slot.
func (p shardPlace) Leave(handOn bool) {
	p.Place.Leave(handOn)
	p.line.leave(p.slot)
}
