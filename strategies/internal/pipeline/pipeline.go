// Package pipeline sends the commands of all callers of a Locker down one connection:
// what callers ask for at the same time is written and read together, which costs
// client and server fewer system calls. It is go-redis's AutoPipeline, full duplex: a
// command is written as soon as there is room and does not wait for the replies before.
//
// AutoPipeline by itself may send a command again that Redis has carried out already,
// and does not look at a caller's context. Here nothing is sent twice, and a caller whose
// context ends returns at once. Its command cannot be withdrawn any more: Redis carries it
// out when its turn comes, so a caller who does not want the result has to undo it.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
)

// Client is a node's client whose EVAL, EVALSHA and SET NX go down one connection, and
// all that is given to Send. Everything else goes where it went before.
type Client struct {
	redis.UniversalClient // the node's own

	node strategies.Node

	mu       sync.RWMutex // nothing is put into the pipeline once it is closed
	closed   bool
	line     redis.UniversalClient // the connection's; in a cluster one for each node
	together *redis.AutoPipeliner
	redial   time.Time // when it was last dialled anew
	ending   sync.WaitGroup
}

// Over returns the config with a Client in place of every node's, and what closes them;
// both are of no effect unless on. It does not talk to Redis.
func Over(config strategies.Config, on bool) (strategies.Config, func() error, error) {
	if !on {
		return config, func() error { return nil }, nil
	}
	var clients []*Client
	closeAll := func() error {
		var faults []error
		for _, c := range clients {
			faults = append(faults, c.Close())
		}
		return errors.Join(faults...)
	}
	config.Nodes = slices.Clone(config.Nodes)
	for i, node := range config.Nodes {
		client, err := Open(node)
		if err != nil {
			return config, nil, errors.Join(err, closeAll())
		}
		clients = append(clients, client)
		config.Nodes[i].Client = client
	}
	return config, closeAll, nil
}

// Refine counts the connection in what a strategy says of itself, if the pipeline is on.
func Refine(info strategies.Info, on bool) strategies.Info {
	if on {
		info.Connections.PerInstance++
	}
	return info
}

// Open returns a Client of a node. It does not talk to Redis yet. The caller closes it.
func Open(node strategies.Node) (*Client, error) {
	line, together, err := open(node)
	if err != nil {
		return nil, err
	}
	return &Client{UniversalClient: node.Client, node: node, line: line, together: together}, nil
}

func open(node strategies.Node) (redis.UniversalClient, *redis.AutoPipeliner, error) {
	line := node.Dial(func(o *redis.UniversalOptions) {
		// Full duplex needs a pool of its own, with one connection: more would only spread
		// what is to be gathered.
		o.PoolSize, o.PipelinePoolSize, o.MinIdleConns = 1, 1, 0
	})
	auto, ok := line.(interface {
		AsyncAutoPipelineWithOptions(*redis.AutoPipelineOptions) (*redis.AutoPipeliner, error)
	})
	if !ok {
		return nil, nil, errors.Join(fmt.Errorf("open a pipeline: %T has none", line), line.Close())
	}
	options := redis.DefaultAutoPipelineOptions()
	options.FullDuplex = true
	together, err := auto.AsyncAutoPipelineWithOptions(options)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open a pipeline: %w", err), line.Close())
	}
	return line, together, nil
}

// redialAfter keeps a server that refuses everything from being dialled all the time.
const redialAfter = 250 * time.Millisecond

// Redial has later commands go down a new connection, for when the server at the other end
// says that it is not the one they are for. The commands before are answered on the old
// one. It does nothing if it was called less than a quarter of a second ago.
func (c *Client) Redial() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || time.Since(c.redial) < redialAfter {
		return
	}
	line, together, err := open(c.node)
	if err != nil {
		return // the old one does as well
	}
	c.redial = time.Now()
	oldLine, oldTogether := c.line, c.together
	c.line, c.together = line, together
	c.ending.Go(func() { _ = errors.Join(oldTogether.Close(), oldLine.Close()) })
}

// Close ends the pipeline after the commands that are in it. The node's own client stays
// open: commands after Close go there, so that leases can still be released.
func (c *Client) Close() error {
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.mu.Unlock()
	if closed {
		return nil
	}
	c.ending.Wait()
	if err := errors.Join(c.together.Close(), c.line.Close()); err != nil {
		return fmt.Errorf("close a pipeline: %w", err)
	}
	return nil
}

// Send writes commands one after the other, those of other callers perhaps in between,
// and returns when all are answered: each then has its own result or error. It returns an
// error only if ctx ends before, and the commands must not be read then.
//
// If ctx had ended already, that error is ctx's own and nothing has been sent. Otherwise
// it is one that wraps it: Redis may have carried the commands out, or may still do so.
// A command of a later Send for the same key comes after them, unless the connection broke.
func (c *Client) Send(ctx context.Context, commands ...redis.Cmder) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var room [2]redis.AutoFuture
	sent := room[:0]
	c.mu.RLock()
	if c.closed {
		c.mu.RUnlock()
		for _, command := range commands {
			_ = c.UniversalClient.Process(ctx, command) // the command has the error
		}
		return nil
	}
	for _, command := range commands {
		sent = append(sent, c.together.Submit(ctx, once{command}))
	}
	c.mu.RUnlock()
	for i, future := range sent {
		err := future.WaitContext(ctx)
		if err != nil && err == ctx.Err() { //nolint:errorlint // not an error of the command's
			return fmt.Errorf("no answer to %s yet: %w", commands[i].Name(), err)
		}
	}
	return nil
}

// once is a command that is not sent again after a connection broke or an error reply
// came. (What a cluster's node has not carried out, since the key has moved, is.)
type once struct{ redis.Cmder }

// NoRetry forbids it, whatever the client's MaxRetries and MaxRedirects are.
func (once) NoRetry() bool { return true }

// send makes a command and sends it; one whose answer was not waited for is replaced.
func send[C redis.Cmder](ctx context.Context, c *Client, command func() C) C {
	sent := command()
	if err := c.Send(ctx, sent); err != nil {
		sent = command()
		sent.SetErr(err)
	}
	return sent
}

// SetNX sets a key that does not exist, for a TTL of whole milliseconds.
func (c *Client) SetNX(ctx context.Context, key string, value any, ttl time.Duration) *redis.BoolCmd {
	if ttl < time.Millisecond {
		return c.UniversalClient.SetNX(ctx, key, value, ttl)
	}
	return send(ctx, c, func() *redis.BoolCmd {
		return redis.NewBoolCmd(ctx, "set", key, value, "px", ttl.Milliseconds(), "nx")
	})
}

// Eval runs a script.
func (c *Client) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return c.script(ctx, "eval", script, keys, args)
}

// EvalSha runs a script that Redis knows.
func (c *Client) EvalSha(ctx context.Context, sha string, keys []string, args ...any) *redis.Cmd {
	return c.script(ctx, "evalsha", sha, keys, args)
}

func (c *Client) script(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	words := make([]any, 0, 3+len(keys)+len(args))
	words = append(words, name, script, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	words = append(words, args...)
	return send(ctx, c, func() *redis.Cmd {
		command := redis.NewCmd(ctx, words...)
		if len(keys) > 0 {
			command.SetFirstKeyPos(3) // which node of a cluster it is for
		}
		return command
	})
}
