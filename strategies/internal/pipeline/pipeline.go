package pipeline

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/goredis"
	"github.com/lockbench/lockbench/strategies/internal/indeterminate"
)

// Client is a node's client that sends EVAL, EVALSHA and SET NX, and all that is given to Do
// and Send, on one connection. All other commands go to the node's own client.
type Client struct {
	redis.UniversalClient // the node's own
	*Conn
}

// Close ends the connection after the commands that are in it. The node's own client stays open:
// commands after Close go there, so that leases can still be released.
func (c *Client) Close() error { return c.Conn.Close() }

// Over returns the config with a Client in place of every node's, and a function that closes
// them. If on is false it changes nothing. It does not talk to Redis.
func Over(config goredis.Config, on bool) (goredis.Config, func() error, error) {
	if !on {
		return config, func() error { return nil }, nil
	}
	var clients []*Client
	closeAll := func() error {
		var problems []error
		for _, c := range clients {
			problems = append(problems, c.Close())
		}
		return errors.Join(problems...)
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

// Refine adds the connection to the strategy's Info if the pipeline is on.
func Refine(info strategies.Info, on bool) strategies.Info {
	if on {
		info.Connections.PerInstance++
	}
	return info
}

// Open returns a Client of a node. It does not talk to Redis yet. The caller closes it.
func Open(node goredis.Node) (*Client, error) {
	conn, err := Dial(node, math.MaxInt64, "")
	if err != nil {
		return nil, err
	}
	return &Client{node.Client.(redis.UniversalClient), conn}, nil // Dial takes no other client
}

// send sends a command. If nobody waits for its answer any more, it gets the error.
func (c *Client) send(ctx context.Context, command *redis.Cmd) *redis.Cmd {
	if err := c.Send(ctx, command); err != nil {
		command.SetErr(err)
	}
	if err := command.Err(); redis.HasErrorPrefix(err, "READONLY") || redis.HasErrorPrefix(err, "MASTERDOWN") {
		c.Redial() // no longer a primary: its name may lead to another server
	}
	return command
}

// SetNX sets a key that does not exist, for a TTL of whole milliseconds.
func (c *Client) SetNX(ctx context.Context, key string, value any, ttl time.Duration) *redis.BoolCmd {
	if ttl < time.Millisecond {
		return c.UniversalClient.SetNX(ctx, key, value, ttl)
	}
	err := c.send(ctx, redis.NewCmd(ctx, "set", key, value, "px", ttl.Milliseconds(), "nx")).Err()
	if errors.Is(err, redis.Nil) {
		return redis.NewBoolResult(false, nil)
	}
	return redis.NewBoolResult(err == nil, err)
}

// Do sends a command in its words. The command must not block, because all callers would
// wait.
func (c *Client) Do(ctx context.Context, words ...any) *redis.Cmd {
	return c.send(ctx, redis.NewCmd(ctx, words...))
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
	return c.send(ctx, indeterminate.Script(ctx, name, script, keys, args))
}
