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
	// grace is the time after the timeout of a BLPOP within which its reply must arrive. After that, the connection counts
	// as dead.
	grace = time.Second
	// dialing is the time limit for opening a connection.
	dialing = 5 * time.Second
)

// connection is one connection on which at most one waiter blocks at a time. It is a separate client with a pool of one
// connection, because go-redis has no other way to close a connection that is in use.
type connection struct {
	client redis.UniversalClient
	id     atomic.Int64 // for CLIENT UNBLOCK
	era    int          // the era of the connections when it was dialled
}

// block waits for a signal until limit has passed or ctx ends. It returns nil both after a signal and after limit.
// After an error, the connection cannot be used again.
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

// pop sends a BLPOP on the list with the timeout limit. It returns the popped value, or "" if the BLPOP timed out.
func (c *connection) pop(ctx context.Context, list string, limit time.Duration) (value string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit+grace)
	defer cancel()
	// pop does not use client.BLPop, which rounds the timeout up to whole seconds.
	reply, err := c.client.Do(ctx, "BLPOP", list, strconv.FormatFloat(limit.Seconds(), 'f', 3, 64)).StringSlice()
	switch {
	case errors.Is(err, redis.Nil):
		return "", nil
	case err == nil && len(reply) == 2:
		return reply[1], nil
	}
	return "", err
}

// interrupt ends the running BLPOP by CLIENT UNBLOCK. It does not close the connection, so that a signal popped at the
// same moment still arrives. If CLIENT UNBLOCK fails, interrupt closes the connection.
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
		select { // the BLPOP has just returned, or has not begun to block
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
