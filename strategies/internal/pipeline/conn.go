// Package pipeline sends the commands of all callers of a Locker on one connection. Commands
// that callers send at the same time are written and read together, which costs client and
// server fewer system calls. It is go-redis's AutoPipeline, full duplex: a command is written
// as soon as there is room and does not wait for earlier replies.
//
// AutoPipeline by itself may send a command again that Redis has carried out already, and
// ignores a caller's context. This package sends nothing twice, and a caller whose context
// ends returns at once. Its command cannot be withdrawn: Redis still carries it out, so a
// caller that does not want the result has to undo it.
//
// Client puts such a connection in the place of a go-redis client, for locks and libraries that do not
// know of it.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// Conn is such a connection; in a cluster it is one for each node.
type Conn struct {
	node    goredis.Node
	timeout time.Duration // for an answer

	mu       sync.RWMutex // nothing is put into the pipeline once it is closed
	closed   bool
	client   redis.UniversalClient // the client of the connection
	together *redis.AutoPipeliner
	redial   time.Time // when it was last dialled anew
	ending   sync.WaitGroup
	dialling *dialling
}

// dialling keeps why the last dial failed: go-redis dials again by itself, while callers whose time is
// over want to know.
type dialling struct{ err atomic.Pointer[error] }

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

func (d *dialling) watch(dial dialer) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		d.err.Store(&err)
		return conn, err
	}
}

// failure is why the last dial failed; nil if it did not. It is no dial's *net.OpError, which would say
// that nothing was sent: the command may still be, once a dial succeeds.
func (d *dialling) failure() error {
	err := d.err.Load()
	if err == nil || *err == nil {
		return nil
	}
	if dial, ok := errors.AsType[*net.OpError](*err); ok {
		return dial.Err
	}
	return *err
}

// Dial returns the Conn of a node. It does not talk to Redis yet. The caller closes it.
func Dial(node goredis.Node) (*Conn, error) {
	dialling := &dialling{}
	client, together, err := open(node, dialling)
	if err != nil {
		return nil, err
	}
	timeout := 3 * time.Second // go-redis's default
	if t := node.ReadTimeout(); t > 0 {
		timeout = t
	}
	return &Conn{node: node, timeout: timeout, client: client, together: together, dialling: dialling}, nil
}

func open(node goredis.Node, dialling *dialling) (redis.UniversalClient, *redis.AutoPipeliner, error) {
	client, err := goredis.Dial(node, func(o *redis.Options) {
		// Full duplex needs a pool of its own, with one connection: several would spread what
		// belongs together.
		o.PoolSize, o.PipelinePoolSize, o.MinIdleConns = 1, 1, 0
		o.MinRetryBackoff, o.MaxRetryBackoff = 50*time.Millisecond, time.Second // between dials
		if o.Dialer == nil {
			o.Dialer = redis.NewDialer(o)
		}
		o.Dialer = dialling.watch(o.Dialer)
	})
	if err != nil {
		return nil, nil, err
	}
	options := redis.DefaultAutoPipelineOptions()
	options.FullDuplex = true
	together, err := client.AsyncAutoPipelineWithOptions(options)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open a pipeline: %w", err), client.Close())
	}
	return client, together, nil
}

// redialAfter limits how often a server that refuses everything is dialled.
const redialAfter = 250 * time.Millisecond

// Redial makes later commands use a new connection: the server at the other end has said that
// it is not the right one. The commands before are answered on the old one. It does nothing
// within a quarter of a second after it has made a new connection.
func (c *Conn) Redial() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || time.Since(c.redial) < redialAfter {
		return
	}
	client, together, err := open(c.node, c.dialling)
	if err != nil {
		return // keep the old one
	}
	c.redial = time.Now()
	oldClient, oldTogether := c.client, c.together
	c.client, c.together = client, together
	c.ending.Go(func() { _ = errors.Join(oldTogether.Close(), oldClient.Close()) })
}

// Close ends the pipeline after the commands that are in it. The node's own client stays
// open: commands after Close go there, so that leases can still be released.
func (c *Conn) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.ending.Wait()
	err := errors.Join(c.together.Close(), c.client.Close())
	if err != nil && !errors.Is(err, net.ErrClosed) { // a broken connection may be closed already
		return fmt.Errorf("close a pipeline: %w", err)
	}
	return nil
}

// Send writes commands one after the other, perhaps with those of other callers in between,
// and returns when all are answered: each then has its own result or error. It returns an
// error only if ctx ends before, or if no answer comes within the client's ReadTimeout; the
// commands must not be read then.
//
// If ctx had ended before the call, that error is ctx's own and nothing has been sent.
// Otherwise the error wraps the cause: Redis may have carried the commands out, or may still
// do so. A command of a later Send for the same key comes after them, unless the connection
// broke.
func (c *Conn) Send(ctx context.Context, commands ...redis.Cmder) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var room [2]redis.AutoFuture
	sent := room[:0]
	c.mu.RLock()
	if c.closed {
		c.mu.RUnlock()
		for _, command := range commands {
			_ = c.node.Client.Process(ctx, indeterminate.Once{Cmder: command}) // the command has the error
		}
		return nil
	}
	for _, command := range commands {
		sent = append(sent, c.together.Submit(ctx, indeterminate.Once{Cmder: command}))
	}
	c.mu.RUnlock()
	wait, cancel := context.WithTimeoutCause(ctx, c.timeout, errNoAnswer)
	defer cancel()
	for i, future := range slices.Backward(sent) { // the last is answered last
		err := future.WaitContext(wait)
		if err != nil && err == wait.Err() { //nolint:errorlint // not an error of the command's
			cause := context.Cause(wait)
			if failure := c.dialling.failure(); failure != nil {
				cause = fmt.Errorf("%w: %w", cause, failure)
			}
			return fmt.Errorf("no answer to %s yet: %w", commands[i].Name(), cause)
		}
	}
	return nil
}

var errNoAnswer = errors.New("Redis does not answer") //nolint:staticcheck // a name
