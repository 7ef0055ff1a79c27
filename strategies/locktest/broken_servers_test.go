package locktest_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
)

// serverFault is what is wrong with a redisLock when its servers fail.
type serverFault struct {
	handsOutLate bool // no look whether the lease has run out before its answer came
	refusalIsYes bool // an error that Redis answers an acquire with is taken for a grant
	silenceIsYes bool // so is a broken connection
	givesUp      bool // a release that Redis refuses returns nil
	deletesAgain bool // a release without an answer is asked again, without a look whose lock it is
	looksFirst   bool // a release looks whose lock it is, and then deletes it
	asksOnce     bool // a release that is repeated returns nil, and asks nothing
	stopsAfter   bool // the watchdog goes on while the release has not succeeded
	watchesDoubt bool // the watchdog keeps a lock whose grant was never heard of
	tellsLoss    bool // the watchdog takes a release for a loss
	pinsAddress  bool // what the server's name stood for at first is dialled for ever
	pinsSlots    bool // so with a cluster's slots
	tags         bool // no fault: all keys of a lock share a slot
	records      bool // each lock leaves a key until Close
	believes     bool // a message is taken for a grant
	deletesNamed bool // a lock that a message names, and that nobody here waits for, is deleted
	dialsEach    bool // each key has a connection of its own until Close

	pinned *pinned
}

// pinned is what a Locker keeps.
type pinned struct {
	mu      sync.Mutex
	address string
	names   map[string]bool
	clients []redis.UniversalClient
}

// connect gives the Locker another client, where its fault is there.
func (l *redisLock) connect() {
	l.pinned = &pinned{names: map[string]bool{}}
	node := l.config.Nodes[0]
	switch {
	case l.pinsAddress:
		options := *node.Options
		options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			return l.pinned.dial(ctx, network, address, node.Options.Dialer)
		}
		l.client = redis.NewUniversalClient(&options)
	case l.pinsSlots:
		slots, err := node.Client.ClusterSlots(context.Background()).Result()
		if err != nil {
			return // no cluster
		}
		options := node.Options.Cluster()
		options.MaxRedirects = -1
		options.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil }
		l.client = redis.NewClusterClient(options)
	default:
		return
	}
	l.pinned.clients = append(l.pinned.clients, l.client)
}

func (p *pinned) dial(ctx context.Context, network, address string, dial store.Dialer) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.address != "" {
		return new(net.Dialer).DialContext(ctx, network, p.address)
	}
	c, err := dial(ctx, network, address)
	if err == nil {
		p.address = c.RemoteAddr().String()
	}
	return c, err
}

// remember leaves something for each key, where that is the fault.
func (l *redisLock) remember(ctx context.Context, name string) {
	if !l.records && !l.dialsEach {
		return
	}
	l.pinned.mu.Lock()
	defer l.pinned.mu.Unlock()
	if l.pinned.names[name] {
		return
	}
	l.pinned.names[name] = true
	if l.records {
		l.client.Set(ctx, name+":record", 1, 0)
	}
	if l.dialsEach {
		own := redis.NewUniversalClient(l.config.Nodes[0].Options)
		own.Ping(ctx)
		l.pinned.clients = append(l.pinned.clients, own)
	}
}

// believed says whether a waiter takes an event of its channel for a grant.
func (l *redisLock) believed(ctx context.Context, event any, lease *redisLease) bool {
	m, isMessage := event.(*redis.Message)
	if isMessage && l.deletesNamed && m.Payload != lease.name {
		l.client.Del(ctx, m.Payload)
	}
	lease.planted = isMessage && l.believes
	if lease.planted {
		lease.renewed(time.Now().Add(l.config.TTL))
	}
	return lease.planted
}

// forget removes it.
func (l *redisLock) forget() {
	l.pinned.mu.Lock()
	defer l.pinned.mu.Unlock()
	if l.records {
		for name := range l.pinned.names {
			l.client.Del(context.Background(), name+":record")
		}
	}
	l.pinned.names = map[string]bool{}
	for _, client := range l.pinned.clients {
		_ = client.Close()
	}
	l.pinned.clients = nil
}

// isYes says whether an error is taken for a grant.
func (l *redisLock) isYes(err error) bool {
	_, refused := errors.AsType[redis.Error](err)
	_, broken := errors.AsType[*net.OpError](err)
	return l.refusalIsYes && refused || l.silenceIsYes && broken
}

// insists is what a release makes of its answer.
func (lease *redisLease) insists(ctx context.Context, given bool, err error) (bool, error) {
	l := lease.lock
	if err == nil {
		return given, nil
	}
	_, refused := errors.AsType[redis.Error](err)
	switch {
	case l.givesUp && refused:
		return true, nil
	case l.deletesAgain && !refused:
		n, err := l.client.Del(ctx, lease.name).Result()
		return n == 1, err
	}
	return given, err
}

// lookAndDelete releases in two steps.
func (lease *redisLease) lookAndDelete(ctx context.Context) (bool, error) {
	client := lease.lock.client
	owner, err := client.HGet(ctx, lease.name, "owner").Result()
	if errors.Is(err, redis.Nil) || err == nil && owner != lease.token {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	n, err := client.Del(ctx, lease.name).Result()
	return n == 1, err
}

// Lost is for a lease that is renewed.
func (lease *redisLease) Lost() <-chan struct{} { return lease.lost }

// find notes what a renewal has found, and says whether the lease is lost.
func (lease *redisLease) find(err error) bool {
	if !errors.Is(err, strategies.ErrNotHeld) {
		return false
	}
	lease.mu.Lock()
	defer lease.mu.Unlock()
	if !lease.over || lease.lock.tellsLoss {
		close(lease.lost)
	}
	return true
}

func (lease *redisLease) ends() { lease.mu.Lock(); lease.over = true; lease.mu.Unlock() }

func (lease *redisLease) isOver() bool { lease.mu.Lock(); defer lease.mu.Unlock(); return lease.over }
