package blpop

import (
	"context"
	"crypto/rand"
	_ "embed" // the script
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/background"
	"github.com/lockbench/lockbench/strategies/internal/bounded"
)

//go:embed echo.lua
var echoSource string

var echoScript = redis.NewScript(echoSource)

const (
	// beat is the interval at which a process with waiters checks its connections.
	beat = time.Second
	// lag is the longest time to wait for an echo. It is also the longest time to wait for the reply to a BLPOP after a
	// CLIENT UNBLOCK.
	lag = 200 * time.Millisecond
	// echoTTL is the TTL of an echo that no connection pops.
	echoTTL = 5 * time.Second
)

// connections are a Locker's blocking connections. Each waiter uses one of these connections.
//
// Once a second while there are waiters, the client that sends the lock's commands pushes an echo to a list that only
// this process uses. An additional connection, the scout, pops the echo. If the echo does not arrive, the scout is
// dead, or it is connected to a different server than the client that pushed the echo, for example after a failover.
// The other connections may have the same fault. So all connections are closed, and their waiters try again on new
// connections. Each connection is dialled after the scout, so that it is never older than the scout.
type connections struct {
	node  goredis.Node
	calls *bounded.Calls // of the Locker
	tasks background.Group
	ctx   context.Context
	stop  context.CancelFunc

	scouting chan struct{} // capacity 1; full while the scout is being dialled

	mu      sync.Mutex
	started bool
	closed  bool
	free    []*connection
	used    map[*connection]struct{}
	scout   *connection // nil before the first connection
	era     int         // incremented when the scout is dialled and when it is closed
	waiters int
	busy    chan struct{} // capacity 1; signals that there are waiters
	echo    string        // the list of echoes; "" before the first waiter
}

func newConnections(node goredis.Node, calls *bounded.Calls) *connections {
	ctx, stop := context.WithCancel(context.Background())
	return &connections{
		node: node, calls: calls, ctx: ctx, stop: stop, scouting: make(chan struct{}, 1),
		used: map[*connection]struct{}{}, busy: make(chan struct{}, 1),
	}
}

// enter adds one to the number of waiters, so that watch checks the connections. The name of the echo list begins with
// lock, the name of the first waiter's lock.
func (p *connections) enter(lock string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.echo == "" {
		var id [16]byte
		_, _ = rand.Read(id[:]) // it never fails
		p.echo = lock + ":" + echo + ":" + hex.EncodeToString(id[:])
	}
	p.started = p.started || p.tasks.Go(p.watch)
	p.waiters++
	select {
	case p.busy <- struct{}{}:
	default:
	}
}

func (p *connections) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiters--
}

// take returns a free connection, or a new one if there is none. The caller must return it by put or drop.
func (p *connections) take(ctx context.Context) (*connection, error) {
	p.mu.Lock()
	if last := len(p.free) - 1; last >= 0 {
		c := p.free[last]
		p.free = p.free[:last]
		p.used[c] = struct{}{}
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	return p.dial(ctx)
}

// dial opens a connection that is not older than the scout.
func (p *connections) dial(ctx context.Context) (*connection, error) {
	for {
		era, err := p.scouted(ctx)
		if err != nil {
			return nil, err
		}
		c, err := p.connect(ctx)
		if err != nil {
			return nil, err
		}
		c.era = era
		p.mu.Lock()
		valid, closed := p.era == era, p.closed
		if valid && !closed {
			p.used[c] = struct{}{}
		}
		p.mu.Unlock()
		if valid && !closed {
			return c, nil
		}
		_ = c.client.Close()
		if closed {
			return nil, strategies.ErrClosed
		}
	}
}

// connect opens a connection. Its client records the connection's id, which interrupt needs for CLIENT UNBLOCK.
func (p *connections) connect(ctx context.Context) (*connection, error) {
	c := &connection{}
	var err error
	c.client, err = goredis.DialBlocking(p.node, c.id.Store)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialing)
	defer cancel()
	// The PING runs in p.calls, which return when ctx ends, because the handshake of go-redis ignores the context of a
	// command.
	if err := p.calls.Do(ctx, func() error { return c.client.Ping(ctx).Err() }); err != nil {
		_ = c.client.Close()
		return nil, fmt.Errorf("open a blocking connection: %w", err)
	}
	return c, nil
}

// scouted dials the scout if there is none. It returns the current era, which changes whenever the scout is dialled or
// closed.
func (p *connections) scouted(ctx context.Context) (era int, err error) {
	select {
	case p.scouting <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-p.scouting }()
	p.mu.Lock()
	there, era := p.scout != nil, p.era
	p.mu.Unlock()
	if there {
		return era, nil
	}
	scout, err := p.connect(ctx)
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = scout.client.Close()
		return 0, strategies.ErrClosed
	}
	p.scout = scout
	p.era++
	return p.era, nil
}

// put makes a connection free for the next waiter. It closes the connection if the Locker is closed or the scout was
// replaced since the connection was dialled.
func (p *connections) put(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, c)
	if p.closed || c.era != p.era {
		_ = c.client.Close()
		return
	}
	p.free = append(p.free, c)
}

// drop closes a connection after an error, so that no other waiter uses it.
func (p *connections) drop(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, c)
	_ = c.client.Close()
}

// open dials connections until n are free, and returns the first error.
func (p *connections) open(ctx context.Context, n int) error {
	p.mu.Lock()
	n -= len(p.free)
	p.mu.Unlock()
	return goredis.DialAll(ctx, n, func(ctx context.Context) error {
		c, err := p.dial(ctx)
		if err == nil {
			p.put(c)
		}
		return err
	})
}

func (p *connections) close() error {
	p.stop()
	p.mu.Lock()
	p.closed = true
	var problems []error
	for _, c := range p.free {
		problems = append(problems, c.client.Close())
	}
	p.free = nil
	if p.scout != nil {
		problems = append(problems, p.scout.client.Close())
		p.scout = nil
	}
	p.mu.Unlock()
	p.tasks.Close()
	return errors.Join(problems...)
}

// watch sends an echo once a second while there are waiters, and replaces all connections if the echo does not arrive.
// It returns when the Locker is closed.
func (p *connections) watch() {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for number := 1; ; {
		select {
		case <-p.ctx.Done():
			return
		case <-p.busy:
		}
		ticker.Reset(beat)
		for waits := true; waits; number++ {
			select {
			case <-p.ctx.Done():
				return
			case <-ticker.C:
			}
			p.mu.Lock()
			waits = p.waiters > 0
			scout := p.scout
			p.mu.Unlock()
			if waits && scout != nil && !p.echoes(scout, number) {
				p.renew(scout)
			}
		}
	}
}

// echoes pushes an echo with the given number. It returns false if the scout does not receive the echo within lag. If
// the push itself fails, echoes returns true, because this failure does not show that the scout is dead.
func (p *connections) echoes(scout *connection, number int) bool {
	err := p.calls.Do(p.ctx, func() error {
		return echoScript.Run(p.ctx, p.node.Client, []string{p.echo}, number, echoTTL.Milliseconds()).Err()
	})
	if err != nil {
		return true
	}
	heard, err := scout.pop(p.ctx, p.echo, lag)
	return err == nil && heard == strconv.Itoa(number)
}

// renew closes all connections. The next dial first opens a new scout.
func (p *connections) renew(scout *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scout != scout { // another call has replaced the scout
		return
	}
	_ = scout.client.Close()
	p.scout = nil
	p.era++
	for _, c := range p.free {
		_ = c.client.Close()
	}
	p.free = nil
	for c := range p.used {
		_ = c.client.Close()
	}
}
