package blpop

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/internal/bounded"
)

const (
	// grace is how late Redis may answer a BLPOP that has timed out before its connection counts as dead.
	grace = time.Second
	// dialing is how long a connection may take to open.
	dialing = 5 * time.Second
)

// connection is one connection on which one waiter at a time blocks. It is a
// client of its own with a pool of one, the only way to close a connection of
// go-redis while it is in use.
type connection struct {
	client redis.UniversalClient
	id     atomic.Int64 // for CLIENT UNBLOCK
	era    int          // of the connections when it was dialled
}

// block waits for a signal, for as long as limit and ctx allow. It returns nil with or
// without a signal; after an error the connection is of no use.
func (c *connection) block(ctx context.Context, commands redis.UniversalClient, calls *bounded.Calls, signal string,
	limit time.Duration,
) error {
	over := make(chan struct{})  // BLPOP has returned
	freed := make(chan struct{}) // interrupt has returned
	stop := context.AfterFunc(ctx, func() {
		defer close(freed)
		c.interrupt(commands, calls, over)
	})
	_, err := c.pop(context.Background(), signal, limit)
	close(over)
	if !stop() {
		<-freed
	}
	return err
}

// pop waits for as long as limit, and returns what it has popped, or "".
func (c *connection) pop(ctx context.Context, list string, limit time.Duration) (value string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	// Not client.BLPop, which rounds up to whole seconds.
	reply, err := c.client.Do(ctx, "BLPOP", list, strconv.FormatFloat(limit.Seconds(), 'f', 3, 64)).StringSlice()
	switch {
	case errors.Is(err, redis.Nil):
		return "", nil
	case err == nil && len(reply) == 2:
		return reply[1], nil
	}
	return "", err
}

// interrupt ends the running BLPOP: by CLIENT UNBLOCK, so that a signal popped at this very
// moment still arrives, else by closing the connection.
func (c *connection) interrupt(commands redis.UniversalClient, calls *bounded.Calls, over <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), lag/2)
	defer cancel()
	unblock := func() (unblocked int64, err error) {
		return bounded.Get(ctx, calls, func() (int64, error) {
			return commands.ClientUnblock(ctx, c.id.Load()).Result()
		})
	}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		unblocked, err := unblock()
		if err != nil {
			_ = c.client.Close()
			return
		}
		if unblocked == 1 {
			break
		}
		select { // it has just returned, or has not begun to block
		case <-over:
			return
		case <-ticker.C:
		}
	}
	select {
	case <-over:
	case <-time.After(lag): // the connection is silent
		_ = c.client.Close()
	}
}
