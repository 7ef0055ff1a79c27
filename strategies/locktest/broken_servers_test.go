package locktest_test

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/store"
	"github.com/lockbench/lockbench/strategies"
)

// connect replaces the lock's client if pinsAddress, pinsSlots or dialsItself is among the defects.
func (l *redisLock) connect() {
	node := l.config.Nodes[0]
	switch {
	case l.defects["pinsAddress"]:
		options := *node.Options
		options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			return l.dial(ctx, network, address, node.Options.Dialer)
		}
		l.client = redis.NewUniversalClient(&options)
	case l.defects["pinsSlots"]:
		slots, err := node.Client.ClusterSlots(context.Background()).Result()
		if err != nil {
			return // the server is not a cluster
		}
		options := node.Options.Cluster()
		options.MaxRedirects = -1
		options.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil }
		l.client = redis.NewClusterClient(options)
	case l.defects["dialsItself"]:
		l.client = redis.NewClient(&redis.Options{Addr: node.Options.Addrs[0]})
	default:
		return
	}
	if !l.defects["leavesClient"] {
		l.toClose = append(l.toClose, l.client)
	}
}

func (l *redisLock) dial(ctx context.Context, network, address string, dial store.Dialer) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.address != "" {
		return new(net.Dialer).DialContext(ctx, network, l.address)
	}
	c, err := dial(ctx, network, address)
	if err == nil {
		l.address = c.RemoteAddr().String()
	}
	return c, err
}

// remember applies two faults when the lock is used for the first time with this name: "records" creates a key, and
// "dialsEach" opens a connection.
func (l *redisLock) remember(ctx context.Context, name string) {
	if !l.defects["records"] && !l.defects["dialsEach"] {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names[name] {
		return
	}
	l.names[name] = true
	if l.defects["records"] {
		l.client.Set(ctx, name+":record", 1, 0)
	}
	if l.defects["dialsEach"] {
		own := redis.NewUniversalClient(l.config.Nodes[0].Options)
		own.Ping(ctx)
		l.toClose = append(l.toClose, own)
	}
}

// believed applies two faults of a waiter that trusts messages. With "deletesNamed" it deletes the key that the message
// names. With "believes" it takes the message for a grant, and only then does believed return true.
func (l *redisLock) believed(ctx context.Context, event any, lease *redisLease) bool {
	m, isMessage := event.(*redis.Message)
	if isMessage && l.defects["deletesNamed"] && m.Payload != lease.name {
		l.client.Del(ctx, m.Payload)
	}
	lease.planted = isMessage && l.defects["believes"]
	if lease.planted {
		lease.renewed(time.Now().Add(l.config.TTL))
	}
	return lease.planted
}

// forget deletes the keys that remember created, and closes the clients and subscriptions in toClose.
func (l *redisLock) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.defects["records"] {
		for name := range l.names {
			l.client.Del(context.Background(), name+":record")
		}
	}
	l.names = map[string]bool{}
	for _, one := range l.toClose {
		_ = one.Close()
	}
	l.toClose = nil
}

// isYes reports whether a fault makes the lock treat err as a grant.
func (l *redisLock) isYes(err error) bool {
	_, refused := errors.AsType[redis.Error](err)
	_, broken := errors.AsType[*net.OpError](err)
	return l.defects["refusalIsYes"] && refused || l.defects["silenceIsYes"] && broken
}

// insists returns given and err, the result of a release, unless a fault changes them. With "givesUp", a release that
// the server refused counts as successful. With "deletesAgain", insists deletes the lock's key after any other error,
// without checking the owner.
func (lease *redisLease) insists(ctx context.Context, given bool, err error) (bool, error) {
	l := lease.lock
	if err == nil {
		return given, nil
	}
	_, refused := errors.AsType[redis.Error](err)
	switch {
	case l.defects["givesUp"] && refused:
		return true, nil
	case l.defects["deletesAgain"] && !refused:
		n, err := l.client.Del(ctx, lease.name).Result()
		return n == 1, err
	}
	return given, err
}

// checkThenDelete is the release with the fault "looksFirst": it checks the owner with one command and deletes the lock
// with another.
func (lease *redisLease) checkThenDelete(ctx context.Context) (bool, error) {
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

// Lost returns a channel that is closed when a renewal finds that the lease is lost. The channel is nil if no watchdog
// renews the lease.
func (lease *redisLease) Lost() <-chan struct{} { return lease.lost }

// find reports whether err, the result of a renewal, means that the lease is lost. If so, it closes the channel of
// Lost, unless a release has begun. With the fault tellsLoss, it closes the channel even then.
func (lease *redisLease) find(err error) bool {
	if !errors.Is(err, strategies.ErrNotHeld) {
		return false
	}
	lease.mu.Lock()
	defer lease.mu.Unlock()
	if !lease.over || lease.lock.defects["tellsLoss"] {
		close(lease.lost)
	}
	return true
}

func (lease *redisLease) ends() { lease.mu.Lock(); lease.over = true; lease.mu.Unlock() }

func (lease *redisLease) isOver() bool { lease.mu.Lock(); defer lease.mu.Unlock(); return lease.over }
