package redisson

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
)

// shards is the Notifier of a process on a cluster. It has one Subscriber for channels of PUBLISH, and one for each
// node that serves sharded channels on which the process waits.
type shards struct {
	cluster *redis.ClusterClient
	pulse   *pulse // checks all connections
	wakes   func(payload string) int
	flaws   Flaws
	plain   *Subscriber
	calls   bounded.Calls

	mu     sync.Mutex
	closed bool
	byNode map[string]*Subscriber
}

// NewNotifier returns the Notifier of a process, on a single server or a cluster. NewSubscriber explains the parameter
// wakes.
func NewNotifier(node goredis.Node, wakes func(payload string) int, flaws Flaws) Notifier {
	if !node.Clustered() {
		return NewSubscriber(node, wakes, flaws)
	}
	pulse := newPulse(node)
	return &shards{
		cluster: node.Cluster(), pulse: pulse, wakes: wakes, flaws: flaws,
		plain:  newSubscriber(node.Client, pulse, wakes, flaws),
		byNode: map[string]*Subscriber{},
	}
}

// Open opens the connection on which messages of PUBLISH arrive.
func (l *shards) Open(ctx context.Context) error { return l.plain.Open(ctx) }

// Join subscribes to the topic. For a sharded topic it uses the connection to the node that has the channel's hash
// slot.
func (l *shards) Join(ctx context.Context, topic Topic, limit time.Duration) (Registration, error) {
	if !topic.Sharded {
		return l.plain.Join(ctx, topic, limit)
	}
	node, err := bounded.Get(ctx, &l.calls, func() (*redis.Client, error) {
		return l.cluster.MasterForKey(ctx, topic.Channel)
	})
	if err != nil {
		return nil, fmt.Errorf("find the channel's node: %w", err)
	}
	at, err := l.at(node)
	if err != nil {
		return nil, err
	}
	return at.Join(ctx, topic, limit)
}

// at returns the Subscriber for a node. If there is none, or if the previous Subscriber has ended, at creates a new
// one.
func (l *shards) at(node redis.UniversalClient) (*Subscriber, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, strategies.ErrClosed
	}
	addr := goredis.Node{Client: node}.Addr()
	s := l.byNode[addr]
	if s != nil && s.ctx.Err() != nil {
		_ = s.Close()
		s = nil
	}
	if s == nil {
		s = newShardSubscriber(l.cluster, node, l.pulse, l.wakes, l.flaws)
		l.byNode[addr] = s
	}
	return s, nil
}

// Close closes all connections. It returns after at most two seconds, even if go-redis is still opening one of them.
func (l *shards) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	all := append(slices.Collect(maps.Values(l.byNode)), l.plain)
	clear(l.byNode)
	return closeAll(all, l.pulse.close, l.calls.Close)
}

// closeAll closes the given Subscribers and calls the functions rest, all concurrently, because each may take two
// seconds.
func closeAll(all []*Subscriber, rest ...func()) error {
	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, s := range all {
		closing.Go(func() { errs[i] = s.Close() })
	}
	for _, one := range rest {
		closing.Go(one)
	}
	closing.Wait()
	return errors.Join(errs...)
}
