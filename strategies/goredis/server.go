package goredis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Server returns the first node for a strategy that cannot lock in a cluster, for the reason
// given. Its errors begin with the strategy's name.
func Server(c Config, strategy, noCluster string) (Node, error) {
	if err := c.Validate(1); err != nil {
		return Node{}, fmt.Errorf("%s: %w", strategy, err)
	}
	node := c.Nodes[0]
	if node.Clustered() {
		return Node{}, errors.New(strategy + ": " + noCluster)
	}
	return node, nil
}

// Load loads scripts, so that they can be called by their hashes.
func Load(ctx context.Context, client redis.UniversalClient, scripts ...*redis.Script) error {
	for _, script := range scripts {
		if err := script.Load(ctx, client).Err(); err != nil {
			return fmt.Errorf("load a script: %w", err)
		}
	}
	return nil
}
