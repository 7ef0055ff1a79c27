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

// connect replaces the Locker's client if the lock has a fault of its client.
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

// remember leaves a key or a connection for each lock if the fault is one that does.
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

// believed reports whether a waiter takes an event of its channel for a grant because of a fault.
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

// forget deletes the keys that remember left and closes the connections.
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

// isYes reports whether the lock takes an error for a grant because of a fault.
func (l *redisLock) isYes(err error) bool {
	_, refused := errors.AsType[redis.Error](err)
	_, broken := errors.AsType[*net.OpError](err)
	return l.defects["refusalIsYes"] && refused || l.defects["silenceIsYes"] && broken
}

// insists returns the result of a release after its reply, which some faults change.
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

// lookAndDelete checks the owner and deletes the lock in two steps, which is the fault looksFirst.
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

// Lost returns nil for a lease that is not renewed.
func (lease *redisLease) Lost() <-chan struct{} { return lease.lost }

// find records the result of a renewal and reports whether the lease is lost.
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
