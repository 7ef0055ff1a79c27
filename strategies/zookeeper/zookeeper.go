// Package zookeeper is the lock of ZooKeeper's recipes, as Apache Curator has it with
// InterProcessMutex: whoever asks makes an ephemeral sequential node below the lock's, the
// first one holds, and every other watches the one before it alone.
//
// zookeeper.md has the rest: what it guarantees, what breaks it, and what it costs.
package zookeeper

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/gozk"
)

//go:embed zookeeper.md
var doc string

// Strategy describes the lock, to be registered and opened by name.
func Strategy() strategies.Strategy {
	return strategies.Define(strategies.Info{
		Doc:         doc,
		Name:        "zookeeper",
		Summary:     "ZooKeeper: ephemeral sequential nodes, each watching the one before it",
		Claims:      strategies.Claims{Exclusion: true, Recovery: true, FIFO: true, Fencing: true, Watchdog: true},
		Capacity:    1,
		Store:       "zookeeper",
		Session:     true,
		Nodes:       1,
		Libraries:   []strategies.Library{{Language: "Java", Package: "org.apache.curator:curator-recipes", Call: "InterProcessMutex"}},
		Persistent:  []string{"{key}"},
		Connections: strategies.Connections{PerInstance: 1},
	}, Options{}, Open)
}

// Options are none.
type Options struct{}

// Locker has one session on ZooKeeper.
type Locker struct {
	config gozk.Config
	node   gozk.Node

	mu      sync.Mutex
	closed  bool
	current *session
	opening chan struct{} // closed when a caller has opened the next session, or failed to; nil while none does
}

// session is a session of the Locker, and how many leases it has.
type session struct {
	*gozk.Session
	leases int
}

// Open returns a Locker on the first node. It does not talk to ZooKeeper yet.
func Open(config gozk.Config, _ Options) (*Locker, error) {
	if err := config.Validate(1); err != nil {
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	if len(config.Nodes[0].Servers) == 0 {
		return nil, errors.New("zookeeper: there are no servers to connect to")
	}
	return &Locker{config: config, node: config.Nodes[0]}, nil
}

// Prepare opens the session.
func (l *Locker) Prepare(ctx context.Context, _ []string) error {
	_, err := l.session(ctx)
	return err
}

// session returns the session that lives, or a new one.
func (l *Locker) session(ctx context.Context) (*session, error) {
	for {
		l.mu.Lock()
		if l.closed {
			l.mu.Unlock()
			return nil, strategies.ErrClosed
		}
		if s := l.current; s != nil {
			select {
			case <-s.Over():
				l.current = nil
			default:
				l.mu.Unlock()
				return s, nil
			}
		}
		if opening := l.opening; opening != nil {
			l.mu.Unlock()
			select {
			case <-opening: // if that failed, this caller tries
				continue
			case <-ctx.Done():
				return nil, fmt.Errorf("wait for a session: %w", ctx.Err())
			}
		}
		opening := make(chan struct{})
		l.opening = opening
		l.mu.Unlock()
		opened, err := l.node.Connect(ctx, l.config.TTL)
		l.mu.Lock()
		l.opening = nil
		close(opening)
		closed := l.closed
		if err == nil && !closed {
			l.current = &session{Session: opened}
		}
		l.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if closed { // meanwhile
			opened.Close()
		}
	}
}

// Acquire queues, and waits for its turn.
func (l *Locker) Acquire(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		s, err := l.session(ctx)
		if err != nil {
			return nil, err
		}
		held, err := l.wait(ctx, s, key)
		if !errors.Is(err, errNoPlace) {
			return held, err
		}
	}
}

// TryAcquire takes the first place if the queue is empty.
func (l *Locker) TryAcquire(ctx context.Context, key string) (strategies.Lease, error) {
	for {
		s, err := l.session(ctx)
		if err != nil {
			return nil, err
		}
		held, err := l.try(ctx, s, key)
		if !errors.Is(err, errNoPlace) {
			return held, err
		}
	}
}

// Close refuses further calls and ends the session. If there are leases, the session ends by
// its timeout instead; until then they can be released.
func (l *Locker) Close() error {
	l.mu.Lock()
	l.closed = true
	s := l.current
	l.current = nil
	leases := 0
	if s != nil {
		leases = s.leases
	}
	l.mu.Unlock()
	switch {
	case s == nil:
	case leases > 0:
		s.Abandon()
	default:
		s.Close()
	}
	return nil
}

// holds counts a lease of a session; false means that the Locker was closed meanwhile.
func (l *Locker) holds(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		s.leases++
	}
	return !l.closed
}

// released counts one lease less.
func (l *Locker) released(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.leases--
}
