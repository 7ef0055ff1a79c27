// Package zookeeper implements the lock of ZooKeeper's recipes, like InterProcessMutex of Apache Curator. The queue of
// a lock is the set of children of the node KEY.
//
//  1. Acquire creates the ephemeral sequential node KEY/_c_GUID-lock-NUMBER, and reads the children of KEY. The child
//     with the lowest number holds the lock.
//  2. A waiter watches only the child before its own, by getData. When the watch fires, the waiter reads the children
//     again.
//  3. Release deletes the holder's node.
//
// A release, and the end of a holder's session, delete one node, which wakes the one waiter that watches it.
//
// zookeeper.md describes guarantees, costs and failure modes.
package zookeeper

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
)

//go:embed zookeeper.md
var doc string

// Strategy returns the Info, the options and the constructor of the lock, for registration as zookeeper.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:        doc,
		Name:       "zookeeper",
		Summary:    "ZooKeeper: ephemeral sequential nodes; each client watches the node before its own",
		Claims:     strategies.Claims{Exclusion: true, Recovery: true, FIFO: true, Fencing: true, Watchdog: true},
		Capacity:   1,
		Store:      "zookeeper",
		Session:    true,
		Nodes:      1,
		Persistent: []string{"{key}"},
		Libraries: []strategies.Library{
			{Language: "Java", Package: "org.apache.curator:curator-recipes", Call: "InterProcessMutex"},
		},
		Connections: strategies.Connections{PerInstance: 1},
	}, Options{}, Open)
}

// Options is empty, because the lock has no options.
type Options struct{}

// Locker acquires locks for all goroutines of one process, with one session on ZooKeeper.
type Locker struct {
	config  gozk.Config
	node    gozk.Node
	opening chan struct{} // capacity 1; a mutex for finding or opening the session

	mu      sync.Mutex
	closed  bool
	current *session
}

// session is a session of the Locker, with the number of leases that depend on the session.
type session struct {
	*gozk.Session
	leases int // guarded by the Locker's mutex
}

// Open returns a Locker on the first node. It does not contact ZooKeeper yet.
func Open(config gozk.Config, _ Options) (*Locker, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	if len(config.Nodes[0].Servers) == 0 {
		return nil, errors.New("zookeeper: there are no servers to connect to")
	}
	return &Locker{config: config, node: config.Nodes[0], opening: make(chan struct{}, 1)}, nil
}

// Prepare opens the session.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	_, err := l.session(ctx)
	return err
}

// session returns the current session if it is not over, otherwise a new one.
func (l *Locker) session(ctx context.Context) (*session, error) {
	select {
	case l.opening <- struct{}{}:
		defer func() { <-l.opening }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a session: %w", ctx.Err())
	}
	l.mu.Lock()
	current, closed := l.current, l.closed
	l.mu.Unlock()
	if closed {
		return nil, strategies.ErrClosed
	}
	if current != nil && !current.IsOver() {
		return current, nil
	}
	opened, err := l.node.Connect(ctx, l.config.TTL)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = &session{Session: opened}
	return l.current, nil
}

// Acquire joins the queue, and waits until the caller holds the lock or ctx ends.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, true)
}

// TryAcquire takes the lock if the queue is empty, and otherwise returns ErrHeld.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	return l.acquire(ctx, key, false)
}

func (l *Locker) acquire(ctx context.Context, key string, wait bool) (strategies.Lease, error) {
	for {
		s, err := l.session(ctx)
		if err != nil {
			return nil, err
		}
		h := &lease{locker: l, session: s, key: key, lock: l.node.Path(l.config.Key(key))}
		err = h.reach(ctx, wait)
		switch {
		case err == nil:
			return l.granted(h)
		case errors.Is(err, strategies.ErrHeld):
			return nil, err
		case !errors.Is(err, gozk.ErrOver) && !errors.Is(err, zk.ErrNoNode): // otherwise it joins the queue again
			return nil, fmt.Errorf("wait for %q: %w", key, err)
		}
	}
}

// granted returns the lease. If the Locker has been closed in the meantime, it deletes the lease's node and returns
// ErrClosed.
func (l *Locker) granted(h *lease) (strategies.Lease, error) {
	l.mu.Lock()
	closed := l.closed
	if !closed { // Close counts the lease
		h.session.leases++
	}
	l.mu.Unlock()
	if closed {
		h.leave()
		return nil, strategies.ErrClosed
	}
	return h, nil
}

// Close makes further acquires fail with ErrClosed and ends the session. If leases are still held, the server ends the
// session only after its timeout. Until then the leases can be released.
func (l *Locker) Close() error {
	l.opening <- struct{}{} // from here on no caller can open a session
	defer func() { <-l.opening }()
	l.mu.Lock()
	s, held := l.current, l.current != nil && l.current.leases > 0
	l.closed, l.current = true, nil
	l.mu.Unlock()
	switch {
	case s == nil:
	case held:
		s.Abandon()
	default:
		s.Close()
	}
	return nil
}
