package blpop

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
)

// grace is how late Redis may answer a BLPOP that has timed out before its connection
// counts as dead.
const grace = 5 * time.Second

// connection is one connection on which one waiter at a time blocks. It is a
// client of its own with a pool of one, the only way to close a connection of
// go-redis while it is in use.
type connection struct {
	client goredis.Client
	id     atomic.Int64 // for CLIENT UNBLOCK
}

// dial opens a connection and learns its id.
func dial(ctx context.Context, node goredis.Node) (*connection, error) {
	c := &connection{}
	var err error
	c.client, err = goredis.DialBlocking(node, c.id.Store)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := c.client.Ping(ctx).Err(); err != nil {
		_ = c.client.Close()
		return nil, fmt.Errorf("open a blocking connection: %w", err)
	}
	return c, nil
}

// block waits for a signal, for as long as limit and ctx allow. It returns nil with or
// without a signal; after an error the connection is of no use.
func (c *connection) block(ctx context.Context, commands goredis.Client, signal string,
	limit time.Duration,
) error {
	over := make(chan struct{})  // BLPOP has returned
	freed := make(chan struct{}) // interrupt has returned
	stop := context.AfterFunc(ctx, func() {
		defer close(freed)
		c.interrupt(commands, over)
	})
	bound, cancel := context.WithTimeout(context.Background(), limit+grace)
	defer cancel()
	// Not client.BLPop, which rounds up to whole seconds.
	err := c.client.Do(bound, "BLPOP", signal, strconv.FormatFloat(limit.Seconds(), 'f', 3, 64)).Err()
	close(over)
	if !stop() {
		<-freed
	}
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// interrupt ends the running BLPOP: by CLIENT UNBLOCK, so that a signal popped at this very
// moment still arrives, else by closing the connection.
func (c *connection) interrupt(commands goredis.Client, over <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		unblocked, err := commands.ClientUnblock(ctx, c.id.Load()).Result()
		if err != nil {
			_ = c.client.Close()
			return
		}
		if unblocked == 1 {
			return
		}
		select { // it has just returned, or has not begun to block
		case <-over:
			return
		case <-ticker.C:
		}
	}
}

// connections are a Locker's blocking connections that no waiter uses.
type connections struct {
	node goredis.Node

	mu   sync.Mutex
	free []*connection
}

// take returns a free connection, or a new one.
func (p *connections) take(ctx context.Context) (*connection, error) {
	p.mu.Lock()
	if last := len(p.free) - 1; last >= 0 {
		c := p.free[last]
		p.free = p.free[:last]
		p.mu.Unlock()
		return c, nil
	}
	p.mu.Unlock()
	return dial(ctx, p.node)
}

func (p *connections) put(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, c)
}

// open makes sure that there are n free connections.
func (p *connections) open(ctx context.Context, n int) error {
	p.mu.Lock()
	n -= len(p.free)
	p.mu.Unlock()
	return goredis.DialAll(ctx, n, func(ctx context.Context) error {
		c, err := dial(ctx, p.node)
		if err == nil {
			p.put(c)
		}
		return err
	})
}

func (p *connections) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var problems []error
	for _, c := range p.free {
		problems = append(problems, c.client.Close())
	}
	p.free = nil
	return errors.Join(problems...)
}
